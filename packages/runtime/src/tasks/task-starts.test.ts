// Tasks that run elsewhere, and outcomes that arrive while a batch is in flight.

import type { AgentContext, DurableFuture, TaskExecutor } from "@holdfast/core";
import { gate, storageWith, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

// H8. The hold of an attempt shows that it was started, which only a session with a payer has.
test("an attempt that was started is not started again if the clock shows its back-off as not over", async () => {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "flaky",
    run: async (ctx) =>
      ctx.run(
        "flaky",
        async ({ attempt }) => {
          attempts.push(attempt);
          if (attempt === 1) throw new Error("x");
          return new Promise(() => {});
        },
        { retry: { initialDelayMs: 1_000, maxAttempts: 2 } },
      ),
  });
  const openOver = (): Runtime => {
    const runtime = createRuntime({ storage, clock, agents: [agent], owner: "one", development: false });
    opened.push(runtime);
    return runtime;
  };
  const first = openOver();
  const { sessionId } = await first.start(agent, undefined, { budget: { maxSteps: 5 } });
  await clock.advance(1_000);
  expect(attempts).toEqual([1, 2]);
  vanishRuntime(first);
  clock.jump(-3_600_000);
  const handle = await openOver().resume(sessionId);
  await clock.advance(3_700_000);
  expect(attempts).toEqual([1, 2]);
  const message = expect.stringContaining("attempt 2 of 2 was running when its process ended") as unknown;
  expect(await handle.settled()).toMatchObject({ status: "failed", error: { message } });
});

// Its coordinator gives a claim back that shows no use, as if no runner had received it (claiming-1).
test("a retry of a session that was claimed again begins when a commit has confirmed the claim", async () => {
  const memory = new MemoryStorage();
  const held = gate();
  let isHeld = false;
  const storage = storageWith(memory, {
    async commit(group, now) {
      if (isHeld) await held.opened;
      return memory.commit(group, now);
    },
  });
  const clock = new TestClock();
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "flaky",
    run: async (ctx) =>
      ctx.run(
        "flaky",
        async ({ attempt }) => {
          attempts.push(attempt);
          if (attempt === 1) throw new Error("x");
          return attempt;
        },
        { retry: { initialDelayMs: 1_000, maxAttempts: 2 } },
      ),
  });
  const openOver = (): Runtime => {
    const runtime = createRuntime({ storage, clock, agents: [agent], owner: "one", development: false });
    opened.push(runtime);
    return runtime;
  };
  const first = openOver();
  const { sessionId } = await first.start(agent, undefined);
  await clock.advance(100); // Its failure is stored.
  vanishRuntime(first);
  const handle = await openOver().resume(sessionId);
  await turns(50);
  isHeld = true;
  await clock.advance(5_000);
  const begun = [...attempts];
  held.open();
  expect(await handle.result()).toBe(2);
  expect([begun, attempts]).toEqual([[1], [1, 2]]);
});

test("a task that runs elsewhere is found again, even if the answer comes while a batch is in flight", async () => {
  const memory = new MemoryStorage();
  const [held, known, done] = [gate(), gate<boolean>(), gate()];
  let isHeld = false;
  const storage = storageWith(memory, {
    async commit(group, now) {
      if (isHeld) await held.opened;
      return memory.commit(group, now);
    },
  });
  let started = 0;
  const queue: TaskExecutor = {
    ...queueOf(done.opened, () => void started++),
    isRunning: () => known.opened,
  };
  const agent = defineAgent({
    name: "far",
    run: async (ctx) => {
      const far = ctx.scheduleTask("far");
      ctx.appendEntry({ role: "user", content: await ctx.waitForSignal("go") });
      return far;
    },
  });
  const openOver = (): Runtime => {
    const runtime = createRuntime({ storage, queue, agents: [agent], owner: "one", development: false });
    opened.push(runtime);
    return runtime;
  };
  const first = openOver();
  const { sessionId } = await first.start(agent, undefined, { budget: { maxSteps: 5 } });
  await until(() => started === 1, "it was queued");
  vanishRuntime(first);
  const second = openOver();
  await second.signal(sessionId, "go", "went");
  await second.resume(sessionId);
  isHeld = true;
  await turns(20);
  known.open(true);
  await turns(20);
  isHeld = false;
  held.open();
  await turns(20);
  expect(started).toBe(2);
  done.open();
  expect(await second.handle(sessionId).result()).toBe(1);
});

test.each([undefined, { maxSteps: 9 }])(
  "with the budget %o a back-off outlives its process",
  async (budget) => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const retry = { initialDelayMs: 60_000, maxDelayMs: 60_000 };
    const attempts: number[] = [];
    const agent = defineAgent({
      name: "flaky",
      run: async (ctx) =>
        ctx.run(
          "flaky",
          ({ attempt }) => {
            attempts.push(attempt);
            if (attempt === 1) throw new Error("not now");
            return "done";
          },
          { retry },
        ),
    });
    const openOver = (): Runtime => {
      const runtime = createRuntime({ storage, clock, agents: [agent], owner: "one", development: false });
      opened.push(runtime);
      return runtime;
    };
    const first = openOver();
    const { sessionId } = await first.start(agent, undefined, budget && { budget });
    await until(() => attempts.length === 1, "the first attempt");
    await turns(5);
    vanishRuntime(first);
    const second = openOver();
    await second.resume(sessionId);
    await clock.advance(29_999);
    expect(attempts).toEqual([1]);
    await clock.advance(30_001);
    expect(await second.handle(sessionId).result()).toBe("done");
    expect(attempts).toEqual([1, 2]);
  },
);

/** Ends each attempt once it is done. */
function queueOf(done: Promise<void>, onStart = (): void => {}, onRecorded = (): void => {}): TaskExecutor {
  return {
    describe: () => ({}),
    kinds: () => [],
    start(_attempt, onEnd) {
      onStart();
      void done.then(() => onEnd({ status: "completed", output: "1" }));
      return { abort() {}, leave() {}, recorded: onRecorded };
    },
    close: async () => {},
  };
}

const leaving: readonly (readonly [string, (ctx: AgentContext, far: DurableFuture<unknown>) => unknown])[] = [
  ["cancelled it", async (ctx, far) => (far.cancel(), ctx.waitForSignal("never"))],
  ["checkpointed without it", async (ctx) => ctx.checkpoint(1, { openTasks: "cancel" })],
  ["ended without it", () => "done"],
  ["failed beside it", () => Promise.reject(new Error("beside"))],
];

test.each(leaving)(
  "an outcome that arrives when its agent has %s is released, as it will never be needed",
  async (_how, leave) => {
    const memory = new MemoryStorage();
    const [held, done] = [gate(), gate()];
    let [isHeld, recorded] = [false, 0];
    const storage = storageWith(memory, {
      async commit(group, now) {
        if (isHeld) await held.opened;
        return memory.commit(group, now);
      },
    });
    const agent = defineAgent({
      name: "leaves",
      run: async (ctx) => {
        if (ctx.turn > 0) return ctx.waitForSignal("never");
        const far = ctx.scheduleTask("far");
        far.catch(() => {});
        await ctx.waitForSignal("go");
        isHeld = true;
        return leave(ctx, far);
      },
    });
    const queue = queueOf(done.opened, undefined, () => void recorded++);
    const runtime = createRuntime({ storage, queue, agents: [agent], development: false });
    opened.push(runtime);
    const session = await runtime.start(agent);
    await session.signal("go");
    await until(() => isHeld, "its last batch is in flight");
    await turns(5);
    done.open();
    await turns(5);
    expect(recorded).toBe(0); // The withdrawal of the task is not stored yet.
    held.open();
    await turns(10);
    expect(recorded).toBe(1);
  },
);
