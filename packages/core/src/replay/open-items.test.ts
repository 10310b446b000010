import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DurableFuture, type FutureOwner, type FutureType } from "./future.ts";
import { OpenItems, type OpenItem, type OpenTask } from "./open-items.ts";

const owner: FutureOwner = { closed: false, withdraw() {}, fail: (fault) => fault };

describe("open items", () => {
  test("counts, due items and wake-up time agree with a plain list, whatever is added and removed", () => {
    const type = fc.constantFrom<FutureType>("task", "timer", "signal", "signal_ready", "input");
    const time = fc.option(fc.nat(50), { nil: undefined });
    const name = fc.constantFrom("a", "b", "c", "d");
    const step = fc.oneof(
      fc.record({ add: type, at: time, cancelAt: time, name, sheltered: fc.boolean() }),
      fc.record({ remove: fc.nat(30) }),
      fc.record({ arrives: name }),
      fc.record({ consumed: name }),
      fc.constant({ look: true }),
      fc.constant({ cancel: true }),
      fc.constant({ shelter: true }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.nat(60), (steps, now) => {
        const open = new OpenItems();
        const model = new Map<number, OpenItem>();
        const pending = new Set<string>();
        let next = 0;
        const isToBeCancelled = ({ task, sheltered }: OpenItem): boolean =>
          open.isCancelled && !open.onlySheltered && task === undefined && sheltered !== true;
        const check = (): void => {
          const all = [...model.values()];
          const timed = all.filter((each) => each.at !== undefined && !open.hangs(each));
          const cancels = open.isCancelled ? [] : all.filter(({ cancelAt }) => cancelAt !== undefined);
          const due = earliest(timed, ({ at }) => at);
          const unanswered = earliest(cancels, ({ cancelAt }) => cancelAt);
          const times = [due?.at ?? Infinity, unanswered?.cancelAt ?? Infinity];
          expect(open.size).toBe(all.length);
          expect(open.taskCount).toBe(all.filter(({ task }) => task !== undefined).length);
          expect(open.waitCount).toBe(open.size - open.taskCount);
          expect(open.wakeAt ?? Infinity).toBe(Math.min(...times));
          expect(open.due(now)).toBe((due?.at ?? Infinity) <= now ? due : undefined);
          expect(open.unanswered(now)).toBe(
            (unanswered?.cancelAt ?? Infinity) <= now ? unanswered : undefined,
          );
          expect(open.firstAnswered(isToBeCancelled, pending)).toBe(
            all.find((each) => {
              const isAnswered = each.name !== undefined && pending.has(each.name) && !open.hangs(each);
              return isAnswered || isToBeCancelled(each);
            }),
          );
          expect(open.waits().map((wait) => wait.id)).toEqual(
            all.flatMap(({ task, future }) => (task === undefined ? future.id : [])),
          );
          expect(open.waits()).toBe(open.waits());
        };
        for (const each of steps) {
          if ("add" in each) {
            const added = asked(next++, each);
            open.add(added);
            model.set(added.future.id, added);
          } else if ("remove" in each) {
            expect(open.remove(each.remove)).toBe(model.get(each.remove));
            model.delete(each.remove);
          } else if ("arrives" in each) {
            if (!pending.has(each.arrives)) open.noteArrived(each.arrives);
            pending.add(each.arrives);
          } else if ("consumed" in each) pending.delete(each.consumed);
          else if ("look" in each) check();
          else if ("shelter" in each) open.onlySheltered = true;
          else {
            // As the kernel does: open items that are not sheltered are dropped with the request.
            open.isCancelled = true;
            for (const [id, { task, sheltered }] of model) {
              if (task !== undefined || sheltered === true) continue;
              open.remove(id);
              model.delete(id);
            }
          }
        }
        check();
      }),
      { numRuns: 1_000 },
    );
  });

  test("a delivery among 2,000 timers and waits examines none of the others", () => {
    const open = new OpenItems();
    let reads = 0;
    const count = 2_000;
    for (let id = 0; id < count; id++) {
      const { future } = item(id, id % 2 === 0 ? "timer" : "signal");
      open.add({
        future,
        get at() {
          reads++;
          return id % 2 === 0 ? id : undefined;
        },
        get name() {
          reads++;
          return `n${id}`;
        },
      });
    }
    const pending = new Set<string>();
    for (let id = 0; id < count; id += 2) {
      pending.add(`n${id + 1}`);
      open.noteArrived(`n${id + 1}`);
      expect(open.firstAnswered(() => false, pending)?.future.id).toBe(id + 1);
      expect(open.wakeAt).toBe(id);
      expect(open.due(count)?.future.id).toBe(id);
      open.remove(id);
      open.remove(id + 1);
    }
    expect(reads).toBeLessThan(20 * count);
  });

  test("the list of waits says what each wait is for, and leaves out tasks", () => {
    const open = new OpenItems();
    open.add(item(0, "task"));
    open.add(item(1, "timer", 500));
    open.add({ ...item(2, "signal", 900), name: "go" });
    open.add({ ...item(3, "signal_ready"), name: "stop" });
    open.add({ ...item(4, "input"), name: "answer:4", prompt: "May I?" });
    expect(open.waits()).toEqual([
      { type: "timer", id: 1, at: 500 },
      { type: "signal", id: 2, name: "go", until: 900 },
      { type: "signal", id: 3, name: "stop" },
      { type: "input", id: 4, name: "answer:4", prompt: "May I?" },
    ]);
  });
});

/** Among items of the same time, the item that was asked for first. */
function earliest(
  items: readonly OpenItem[],
  timeOf: (item: OpenItem) => number | undefined,
): OpenItem | undefined {
  const times = items.flatMap((each) => timeOf(each) ?? []);
  return items.find((each) => timeOf(each) === Math.min(...times));
}

interface Asked {
  readonly add: FutureType;
  readonly at: number | undefined;
  readonly cancelAt: number | undefined;
  readonly name: string;
  readonly sheltered: boolean;
}

/** Tasks have no times, and only questions end their session. */
function asked(id: number, { add, at, cancelAt, name, sheltered }: Asked): OpenItem {
  if (add === "task") return item(id, add);
  if (add === "timer") return { ...item(id, add, at ?? 7), sheltered };
  return { ...item(id, add, at), ...(add === "input" ? { cancelAt } : {}), name, sheltered };
}

function item(id: number, type: FutureType, at?: number): OpenItem {
  const future = new DurableFuture<unknown>(owner, type, id, type);
  const task = { id, kind: "work" } as OpenTask;
  return { future, ...(type === "task" ? { task } : {}), ...(at === undefined ? {} : { at }) };
}
