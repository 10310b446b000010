// The session of one queued attempt, as a runner runs it.

import { defined } from "@holdfast/core";
import { createRuntime, defineTask, MemoryStorage } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { releaseClaim, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { taskAgent, type QueuedInput } from "./task-agent.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

describe("task-agent-4: a queued attempt of a task with a deadline", () => {
  test("the handler does not begin after the deadline, and the failure is not retryable", async () => {
    const { begun, run } = stand();
    expect(await run(0)).toEqual({ status: "failed", error: TOO_LATE, retryable: false });
    expect(begun).toEqual([]);
  });

  test("the handler ends at the deadline, and the failure is not retryable", async () => {
    const { begun, clock, run } = stand();
    const output = run(1_000);
    await clock.advance(1_000);
    expect(await output).toEqual({ status: "failed", error: TOO_LATE, retryable: false });
    expect(begun).toEqual([1]);
  });

  test("an attempt that exceeds its own time limit is tried again", async () => {
    const { clock, run } = stand();
    const output = run(1_000, 10);
    await clock.advance(10);
    expect(await output).toMatchObject({ error: { code: "task_timeout" }, retryable: true });
  });
});

describe("task-agent-2: a queued attempt of an effect that happens once", () => {
  const queued = (effect?: "once"): QueuedInput => ({
    task: {
      sessionId: "s",
      taskId: "s-0",
      attempt: 1,
      idempotencyKey: "s-0",
      ...defined({ effect }),
    },
  });

  test.each([
    ["the definition", "once", undefined],
    ["the asking session", undefined, "once"],
  ] as const)(
    "an attempt that dies with its runner is uncertain by the class of %s, and not repeated",
    async (_whose, declared, asked) => {
      const storage = new MemoryStorage();
      let runs = 0;
      const agent = taskAgent(
        defineTask({
          name: "pay",
          ...defined({ effect: declared }),
          run: () => (runs++, new Promise<never>(() => {})),
        }),
      );
      const dying = createRuntime({ storage, clock: new TestClock(), development: false });
      await dying.start(agent, queued(asked), { sessionId: "t" });
      await until(() => runs === 1, "the attempt");
      vanishRuntime(dying);
      await releaseClaim(storage, "t");
      const runtime = createRuntime({ storage, clock: new TestClock(), agents: [agent], development: false });
      closing.push(() => runtime.close());
      const output = await (await runtime.resume("t")).result();
      expect(output).toMatchObject({
        status: "failed",
        error: { name: "UncertainEffectError" },
        retryable: false,
      });
      expect(runs).toBe(1);
    },
  );

  test("an error of it is not tried again, although the asking session does not know the class", async () => {
    const refusing = defineTask({
      name: "pay",
      effect: "once",
      run: () => {
        throw new Error("refused");
      },
    });
    const runtime = createRuntime({ storage: new MemoryStorage(), development: false });
    closing.push(() => runtime.close());
    const output = await (await runtime.start(taskAgent(refusing), queued())).result();
    expect(output).toMatchObject({ error: { message: "refused" }, retryable: false });
  });
});

const TOO_LATE = {
  name: "TaskTimeoutError",
  message: "did not end by its deadline",
  code: "task_timeout",
};

/** A runtime that has the agent of a task that never ends. */
function stand() {
  const clock = new TestClock();
  const begun: unknown[] = [];
  const agent = taskAgent(
    defineTask({ name: "work", run: (input) => (begun.push(input), new Promise<never>(() => {})) }),
  );
  const runtime = createRuntime({ storage: new MemoryStorage(), clock, development: false });
  closing.push(() => runtime.close());
  const run = async (leftMs: number, timeoutMs?: number): Promise<unknown> => {
    const deadlineAt = clock.now() + leftMs;
    const limits = { deadlineAt, ...defined({ timeoutMs }) };
    const task = { sessionId: "s", taskId: "s-0", attempt: 1, idempotencyKey: "s-0", ...limits };
    return (await runtime.start(agent, { input: 1, task })).result();
  };
  return { begun, clock, run };
}
