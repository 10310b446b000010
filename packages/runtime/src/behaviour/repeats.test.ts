// K14: an agent that repeats a call with the same result causes a warning, and then a question.

import { journalOf, releaseClaim, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, type Agent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

let runtime: Runtime;
let storage: MemoryStorage;
afterEach(() => runtime.close());

function open(): Runtime {
  storage = new MemoryStorage();
  runtime = createRuntime({ storage, development: false });
  return runtime;
}

const looking = defineTask({ name: "look", guardRepeats: true, run: (what: string) => `nothing at ${what}` });
const trying = defineTask({
  name: "try",
  guardRepeats: true,
  retry: { maxAttempts: 1 },
  run: () => {
    throw new Error("no");
  },
});
const counting = { n: 0 };
const changing = defineTask({ name: "change", guardRepeats: true, run: () => counting.n++ });
const free = defineTask({ name: "free", run: () => 0 });
const tasks = [looking, trying, changing, free];

/** Asks the same thing so many times, in one life or in a turn each. */
function circle(times: number, { turns = false, task = "look" } = {}): Agent {
  const once = async (ask: () => Promise<unknown>): Promise<unknown> =>
    ask().catch((error: Error) => error.message);
  if (!turns) {
    return defineAgent({
      name: "circle",
      tasks,
      run: async (ctx) => {
        const seen: unknown[] = [];
        for (let n = 0; n < times; n++)
          seen.push(await once(async () => ctx.scheduleTask({ name: task }, "x")));
        return seen;
      },
    });
  }
  return defineAgent<unknown, unknown, number>({
    name: "circle",
    tasks,
    initial: () => 0,
    turn: async (ctx, n) => {
      await ctx.scheduleTask({ name: task }, "x");
      return n + 1 === times ? { done: n + 1 } : { state: n + 1 };
    },
  });
}

/** The number of the question it asks, once that is another than the one before. */
async function asked(sessionId: string, before?: number): Promise<number> {
  let question: number | undefined;
  await until(async () => {
    const session = await storage.reader.session(sessionId);
    question = session?.status === "input_required" ? session.waits[0]?.id : undefined;
    return question !== undefined && question !== before;
  }, "it asks");
  return question!;
}

/** Cancels the call that waits for the person's answer. */
const cancels = defineAgent({
  name: "cancels",
  tasks,
  run: async (ctx) => {
    for (let n = 0; n < 9; n++) await ctx.scheduleTask(looking, "x");
    const held = ctx.scheduleTask(looking, "x");
    const failure = held.catch((error: Error) => error.name);
    await ctx.waitForSignal("go");
    held.cancel();
    return [await failure, await ctx.waitForSignal("done")];
  },
});

describe("K14: the same call with the same result", () => {
  test("a repeat is no longer asked about once the agent cancels its task", async () => {
    open();
    const handle = await runtime.start(cancels, undefined);
    await asked(handle.sessionId);
    await handle.signal("go");
    await until(async () => (await handle.session()).status === "waiting", "it waits for the last signal");
    expect((await handle.session()).waits).toMatchObject([{ type: "signal", name: "done" }]);
    vanishRuntime(runtime);
    runtime = createRuntime({ storage, agents: [cancels], development: false });
    await releaseClaim(storage, handle.sessionId);
    const again = await runtime.resume(handle.sessionId);
    await again.signal("done", 1);
    expect(await again.result()).toEqual(["CancelledError", 1]);
  });

  test.each([false, true])(
    "a repeat is warned about at the fifth time and asked about at the tenth (in turns: %s)",
    async (turns) => {
      open();
      const handle = await runtime.start(circle(25, { turns }), undefined);
      let question: number | undefined;
      for (const number of [10, 20]) {
        question = await asked(handle.sessionId, question);
        const journal = await journalOf(storage, handle.sessionId);
        expect(journal.filter(({ type }) => type === "schedule_task")).toHaveLength(number);
        expect(journal.filter(({ type }) => type === "warned")).toHaveLength(number / 10);
        const [wait] = (await handle.session()).waits;
        expect(wait).toMatchObject({
          prompt: 'task "look" has had the same result 10 times, asked with the same input. May it go on?',
        });
        await handle.answer({ approved: true });
      }
      expect((await handle.settled()).status).toBe("completed");
    },
  );

  test("a checkpoint has twelve characters of each hash, since it has the counts of all calls", async () => {
    open();
    const handle = await runtime.start(circle(3, { turns: true }), undefined);
    await handle.result();
    const journal = await journalOf(storage, handle.sessionId);
    const counts = journal.flatMap((record) => (record.type === "checkpoint" ? record.repeats : []));
    const hash: unknown = expect.stringMatching(/^[\w-]{12}$/);
    expect(counts).toEqual([1, 2].map((count) => ({ call: hash, result: hash, count })));
  });

  test("a repeat that a person refuses fails its task, with the reason", async () => {
    open();
    const handle = await runtime.start(circle(11));
    const first = await asked(handle.sessionId);
    await handle.answer({ approved: false });
    // The eleventh is asked about again: nothing was allowed.
    await asked(handle.sessionId, first);
    await handle.answer({ approved: true });
    const seen = (await handle.result()) as string[];
    expect(seen.slice(8)).toEqual([
      "nothing at x",
      expect.stringContaining("a person did not let it go on"),
      "nothing at x",
    ]);
  });

  test("a repeat of a failure counts too, and its question replays in another process", async () => {
    open();
    const agent = circle(11, { task: "try" });
    const { sessionId } = await runtime.start(agent);
    await asked(sessionId);
    await runtime.close();
    runtime = createRuntime({ storage, development: false, agents: [agent] });
    const handle = await runtime.resume(sessionId);
    await handle.answer({ approved: true });
    expect(await handle.result()).toHaveLength(11);
    const journal = await journalOf(storage, sessionId);
    expect(journal.filter(({ type }) => type === "request_input")).toHaveLength(1);
    expect(journal.filter(({ type }) => type === "warned")).toHaveLength(1);
  });

  test("a repeat is counted on from the checkpoint in another process", async () => {
    open();
    const agent = defineAgent<unknown, unknown, number>({
      name: "turns",
      tasks,
      initial: () => 0,
      turn: async (ctx, n) => {
        if (n === 7) await ctx.waitForSignal("go");
        await ctx.scheduleTask(looking, "x");
        return n === 11 ? { done: n } : { state: n + 1 };
      },
    });
    const { sessionId } = await runtime.start(agent);
    await until(async () => (await storage.reader.session(sessionId))?.status === "waiting", "it waits");
    await runtime.close();
    runtime = createRuntime({ storage, development: false, agents: [agent] });
    const handle = await runtime.resume(sessionId);
    await handle.signal("go");
    await asked(sessionId);
    expect((await handle.session()).turn).toBe(9);
    await handle.answer({ approved: true });
    expect(await handle.result()).toBe(11);
  });

  test.each(["change", "free"])(
    "a call with another result, or without a guard, is no repeat (%s)",
    async (task) => {
      open();
      const handle = await runtime.start(circle(30, { task }));
      expect(await handle.result()).toHaveLength(30);
    },
  );

  test("a session goes on with a guard that its task got since, because the journal says which tasks are guarded", async () => {
    open();
    const patient = (guardRepeats: boolean): Agent =>
      defineAgent({
        name: "patient",
        tasks: [defineTask({ name: "ask", guardRepeats, run: () => "nothing" })],
        run: async (ctx) => {
          for (let n = 0; n < 12; n++) await ctx.scheduleTask({ name: "ask" }, "x");
          return ctx.waitForSignal("go");
        },
      });
    const before = await runtime.start(patient(false), undefined, { sessionId: "old" });
    await until(async () => (await before.session()).status === "waiting", "it waits");
    await runtime.close();
    runtime = createRuntime({ storage, development: false, agents: [patient(true)] });
    const handle = await runtime.resume("old");
    await handle.signal("go");
    expect(await handle.settled()).toMatchObject({ status: "completed" });
  });
});
