import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DurableFuture, type FutureOwner, type FutureType } from "./future.ts";
import { OpenItems, type OpenItem, type OpenTask } from "./open-items.ts";

const owner: FutureOwner = { closed: false, withdraw() {} };

describe("open items", () => {
  test("counts, what is due and when to wake agree with a plain list, whatever is added and removed", () => {
    const type = fc.constantFrom<FutureType>("task", "timer", "signal", "signal_ready", "input");
    const step = fc.oneof(
      fc.record({ add: type, at: fc.option(fc.nat(50), { nil: undefined }) }),
      fc.record({ remove: fc.nat(30) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(60), (steps, now) => {
        const open = new OpenItems();
        const model = new Map<number, OpenItem>();
        let next = 0;
        for (const each of steps) {
          if ("add" in each) {
            const added = item(next++, each.add, each.add === "timer" ? (each.at ?? 7) : each.at);
            open.add(added);
            model.set(added.future.id, added);
          } else {
            expect(open.remove(each.remove)).toBe(model.get(each.remove));
            model.delete(each.remove);
          }
        }
        const all = [...model.values()];
        const times = all.flatMap(({ at }) => at ?? []);
        expect(open.size).toBe(all.length);
        expect(open.taskCount).toBe(all.filter(({ task }) => task !== undefined).length);
        expect(open.waitCount).toBe(open.size - open.taskCount);
        expect(open.wakeAt).toBe(times.length === 0 ? undefined : Math.min(...times));
        const due = open.due(now);
        expect(due?.at).toBe(times.some((at) => at <= now) ? Math.min(...times) : undefined);
        // The first asked of those that are due at the same moment.
        if (due !== undefined) expect(due).toBe(all.find(({ at }) => at === due.at));
        expect(open.waits().map((wait) => wait.id)).toEqual(
          all.flatMap(({ task, future }) => (task === undefined ? future.id : [])),
        );
      }),
    );
  });

  test("a person is told what each wait is for, and tasks are not among them", () => {
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

function item(id: number, type: FutureType, at?: number): OpenItem {
  const future = new DurableFuture<unknown>(owner, type, id, type);
  const task = { id, kind: "work" } as OpenTask;
  return { future, ...(type === "task" ? { task } : {}), ...(at === undefined ? {} : { at }) };
}
