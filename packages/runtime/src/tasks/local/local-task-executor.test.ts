import type { AttemptOutcome, TaskAttempt } from "@holdfast/core";
import { gate, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { defineTask } from "../../agents/define.ts";
import { LocalTaskExecutor } from "./local-task-executor.ts";

describe("an attempt ends exactly once, and never within the call that starts or aborts it", () => {
  test("an attempt ends by its handler, its time-out or its abort, whichever comes first", async () => {
    for (const first of ["handler", "timeout", "abort"] as const) {
      const clock = new TestClock();
      const executor = new LocalTaskExecutor({ clock });
      const work = gate<string>();
      const ends: string[] = [];
      const running = executor.start(attemptOf({ closure: () => work.opened, timeoutMs: 100 }), (outcome) =>
        ends.push(endOf(outcome)),
      );
      const steps = {
        handler: async () => work.open("done"),
        timeout: () => clock.advance(100),
        abort: async () => running.abort("stop"),
      };
      await turns(2);
      expect(ends).toEqual([]);
      const firstStep = steps[first]();
      if (first === "abort") expect(ends).toEqual([]); // Not within the call.
      await firstStep;
      await turns(2);
      for (const [name, step] of Object.entries(steps)) if (name !== first) await step();
      await turns(2);
      expect(ends, first).toEqual([
        { handler: "completed", timeout: "task_timeout", abort: "aborted" }[first],
      ]);
      expect(clock.armed).toBe(0);
      await executor.close();
    }
  });

  test("local-task-executor-4: closing waits for a handler that looks at its abort signal, for a while, and for no other", async () => {
    for (const [heeds, isPatient] of [
      [true, true],
      [true, false],
      [false, true],
    ]) {
      const clock = new TestClock();
      const executor = new LocalTaskExecutor({ clock });
      const swept = gate();
      const steps: string[] = [];
      const closure = async (task: unknown): Promise<void> => {
        if (heeds === true) void (task as { readonly signal: AbortSignal }).signal;
        await swept.opened;
        steps.push("swept");
      };
      executor.start(attemptOf({ closure }), (outcome) => steps.push(endOf(outcome)));
      const closed = executor.close().then(() => steps.push("closed"));
      await turns(5);
      if (isPatient === true) swept.open();
      else await clock.advance(10_000);
      await closed;
      swept.open();
      await turns(5);
      const last = heeds === true && isPatient === true ? ["swept", "closed"] : ["closed", "swept"];
      expect(steps).toEqual(["aborted", ...last]);
      expect(clock.armed).toBe(0);
    }
  });

  test("an attempt that is aborted while it waits for a slot never begins, even if a slot comes free at once", async () => {
    const executor = new LocalTaskExecutor({ clock: new TestClock(), concurrency: 1 });
    const began: number[] = [];
    const ends: string[] = [];
    const attempts = [1, 2, 3].map((n) =>
      executor.start(
        attemptOf({
          closure: async () => {
            began.push(n);
            await gate().opened;
          },
        }),
        (outcome) => ends.push(endOf(outcome)),
      ),
    );
    for (const attempt of attempts) attempt.abort("the session is over");
    await turns(2);
    expect(ends).toEqual(["aborted", "aborted", "aborted"]);
    expect(began).toEqual([1]);
  });

  test("the outcome of a handler that returns at once is reported later", async () => {
    const executor = new LocalTaskExecutor({
      clock: new TestClock(),
      tasks: [defineTask({ name: "now", run: () => 1 })],
    });
    const ends: string[] = [];
    executor.start(attemptOf({ kind: "now" }), (outcome) => ends.push(endOf(outcome)));
    expect(ends).toEqual([]);
    await turns(1);
    expect(ends).toEqual(["completed"]);
  });

  test("tokens after the end of an attempt are ignored", async () => {
    const deltas: unknown[] = [];
    const executor = new LocalTaskExecutor({ clock: new TestClock() });
    let late = () => {};
    executor.start(
      attemptOf({
        closure: (task) => {
          const { streamToken } = task as { streamToken(text: string): void };
          streamToken.call(task, "in time");
          late = () => streamToken.call(task, "late");
        },
        onDelta: (delta) => deltas.push(delta),
      }),
      () => {},
    );
    await turns(1);
    late();
    expect(deltas).toEqual([{ type: "token", text: "in time" }]);
  });
});

test("closing aborts running and waiting attempts, and resolves when none is left", async () => {
  const clock = new TestClock();
  const executor = new LocalTaskExecutor({ clock, concurrency: 1 });
  const ends: string[] = [];
  let aborted = false;
  for (let i = 0; i < 3; i++) {
    executor.start(
      attemptOf({
        closure: (task) => {
          (task as { signal: AbortSignal }).signal.addEventListener("abort", () => (aborted = true));
          return new Promise(() => {});
        },
      }),
      (outcome) => ends.push(`${i} ${endOf(outcome)}`),
    );
  }
  await turns(1);
  await Promise.all([executor.close(), clock.advance(10_000)]);
  expect(ends.sort()).toEqual(["0 aborted", "1 aborted", "2 aborted"]);
  expect(aborted).toBe(true);
});

test("two different tasks of one name are refused, the same one twice is not", () => {
  const task = defineTask({ name: "same", run: () => 1 });
  const executor = new LocalTaskExecutor({ clock: new TestClock(), tasks: [task, task] });
  expect(() => executor.register(defineTask({ name: "same", run: () => 2 }))).toThrow(/two different tasks/);
  expect(executor.kinds()).toEqual(["same"]);
});

// Another process may hold the session by the time that storage answers.
test("O10: an attempt that is aborted while its conversation is read does not begin", async () => {
  let begun = 0;
  const executor = new LocalTaskExecutor({
    clock: new TestClock(),
    tasks: [defineTask({ name: "read", run: () => void begun++ })],
  });
  const read = gate<readonly []>();
  const asked = { hasConversation: true, input: '{"$conversation":1}', conversation: () => read.opened };
  const ends: string[] = [];
  const running = executor.start(attemptOf({ kind: "read", ...asked }), (outcome) =>
    ends.push(endOf(outcome)),
  );
  running.abort("let go of");
  read.open([]);
  await turns(5);
  expect({ begun, ends }).toEqual({ begun: 0, ends: ["aborted"] });
});

test("conversations in an input are resolved where the task runs, at any depth, and nothing else is touched", async () => {
  let seen: unknown;
  const executor = new LocalTaskExecutor({
    clock: new TestClock(),
    tasks: [defineTask({ name: "read", run: (input) => void (seen = input) })],
  });
  const entry = { id: "s-1", parentId: null, role: "user", turnId: "0", content: "hi" };
  const input = {
    a: [{ $conversation: 1 }],
    none: { $conversation: null },
    not: { $conversation: 1, more: 2 },
    ["__proto__x"]: 1,
  };
  executor.start(
    attemptOf({
      kind: "read",
      input: JSON.stringify(input),
      hasConversation: true,
      conversation: async (leaf) => (leaf === null ? [] : [entry]),
    }),
    () => {},
  );
  await turns(3);
  expect(seen).toEqual({ ...input, a: [[entry]], none: [] });
});

function attemptOf(changes: Partial<TaskAttempt>): TaskAttempt {
  return {
    sessionId: "ses_x",
    taskId: "ses_x-0",
    kind: "t",
    input: undefined,
    attempt: 1,
    claimToken: 1,
    idempotencyKey: "ses_x-0",
    effect: undefined,
    timeoutMs: undefined,
    deadlineAt: undefined,
    traceparent: undefined,
    closure: undefined,
    hasConversation: false,
    within: (work) => work(),
    conversation: async () => [],
    onDelta: () => {},
    ...changes,
  };
}

function endOf(outcome: AttemptOutcome): string {
  return outcome.status === "failed" ? (outcome.error.code ?? outcome.error.name) : outcome.status;
}
