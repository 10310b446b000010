// The requests of `queuedTasks` to a queue whose answers the test decides. Tests with a whole fleet are in
// holdfast/src/fleet.

import { HoldfastError, UnavailableError, type AttemptOutcome, type TaskAttempt } from "@holdfast/core";
import { countingRandom, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { queuedTasks, type TaskQueue } from "./queued-tasks.ts";

const AWAY = new UnavailableError("storage_unavailable", "the database was cut off");

describe("attempts that were requested and are not awaited", () => {
  // The first start request may still take effect, whatever the second one was answered.
  test("an attempt is cancelled when it is refused for good after a start request without an answer", async () => {
    const stand = open([AWAY, new HoldfastError("forbidden", "no"), undefined]);
    await stand.clock.advance(60_000);
    expect(stand.outcomes).toMatchObject([{ status: "failed", retryable: false }]);
    expect(stand.asked).toEqual(["start", "start", "start", "cancel", "remove"]);
    await stand.executor.close();
  });

  test("an attempt is left alone when another process holds the asking session", async () => {
    const stand = open([AWAY, new HoldfastError("fenced", "the caller does not hold session s")]);
    await stand.clock.advance(60_000);
    expect(stand.outcomes).toMatchObject([{ status: "failed", retryable: true }]);
    expect(stand.asked).toEqual(["start", "start"]);
    await stand.executor.close();
  });

  test("an unwanted attempt is cancelled once the coordinator answers again", async () => {
    const stand = open([AWAY, AWAY, AWAY, undefined]);
    await turns(5);
    stand.running.abort("withdrawn");
    await stand.clock.advance(60_000);
    expect(stand.outcomes).toEqual([{ status: "aborted" }]);
    expect(stand.asked).toEqual(["start", "start", "start", "start", "cancel", "remove"]);
    await stand.executor.close();
  });

  test("an attempt continues when the asking process ends", async () => {
    const stand = open([AWAY, undefined]);
    await turns(5);
    await stand.executor.close();
    await stand.clock.advance(60_000);
    expect(stand.outcomes).toEqual([{ status: "aborted" }]);
    expect(stand.asked).toEqual(["start"]);
    expect(stand.clock.armed).toBe(0);
  });

  test("the executor closes while the coordinator is away", async () => {
    const stand = open(Array.from({ length: 9 }, () => AWAY));
    await turns(5);
    stand.running.abort("withdrawn");
    await turns(5);
    await stand.executor.close();
    expect(stand.clock.armed).toBe(0);
  });

  test("an attempt that was never requested is not cancelled", async () => {
    const stand = open([]);
    stand.running.abort("withdrawn");
    await stand.clock.advance(60_000);
    expect(stand.asked).toEqual([]);
    await stand.executor.close();
  });
});

/** A queue that answers start requests with `starts` in order, and one attempt on it. */
function open(starts: readonly (HoldfastError | undefined)[]) {
  const clock = new TestClock();
  const asked: string[] = [];
  const outcomes: AttemptOutcome[] = [];
  const answers = [...starts];
  const queue: TaskQueue = {
    async start() {
      asked.push("start");
      const error = answers.shift();
      if (error !== undefined) throw error;
    },
    result: () => new Promise(() => {}),
    cancel: async () => void asked.push("cancel"),
    remove: async () => void asked.push("remove"),
  };
  const executor = queuedTasks({ queue, clock, random: countingRandom() });
  const running = executor.start(ATTEMPT, (outcome) => void outcomes.push(outcome));
  return { clock, asked, outcomes, executor, running };
}

const ATTEMPT: TaskAttempt = {
  sessionId: "s",
  taskId: "s-0",
  kind: "work",
  input: undefined,
  attempt: 1,
  claimToken: 1,
  idempotencyKey: "s-0",
  effect: undefined,
  timeoutMs: undefined,
  deadlineAt: undefined,
  traceparent: undefined,
  closure: undefined,
  hasConversation: false,
  conversation: async () => [],
  onDelta: () => {},
  within: (work) => work(),
};
