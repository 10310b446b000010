import {
  type ChangeResult,
  type CommitBatch,
  createSession,
  type NewEntry,
  type SealedSegment,
} from "@holdfast/core";
import { expect, test } from "vitest";
import { SessionClaim, withdrawn, type Submit } from "./session-claim.ts";

const NOTHING: SealedSegment = {
  firstSeq: 0,
  records: [],
  entries: [],
  consumed: [],
  effects: [],
  progress: undefined,
  enablesPersistence: false,
  newTasks: [],
  withdrawnTasks: [],
};

test("K6: a batch of an abandoned claim keeps the outcomes of tasks, and starts nothing", () => {
  const batch = {
    type: "commit_batch",
    sessionId: "s",
    token: 1,
    firstSeq: 5,
    records: [
      { type: "task_completed", seq: 5, task: 1, attempt: 1, at: 7, payload: "1" },
      { type: "schedule_task", seq: 6, id: 6, kind: "pay", hash: "h", retry: { maxAttempts: 1 } },
    ],
    entries: [],
    consumed: ["sig"],
    session: { status: "waiting" },
    charges: [
      { type: "settle", task: 1, used: { tokens: 1, costMicroUsd: 0, steps: 1, turns: 0 } },
      { type: "reserve", task: 6, amount: { tokens: 1, costMicroUsd: 0, steps: 1, turns: 0 } },
    ],
  } as unknown as CommitBatch;
  expect(withdrawn(batch)).toEqual({
    type: "commit_batch",
    sessionId: "s",
    token: 1,
    firstSeq: 5,
    records: [
      { type: "outcome_kept", seq: 5, at: 7, outcome: "task_completed", task: 1, attempt: 1, payload: "1" },
    ],
    entries: [],
    consumed: [],
    charges: [batch.charges![0]],
  });
});

// The hold of an attempt is all that tells the next process that it was begun.
test.each([
  ["an outcome that is kept", { type: "outcome_kept", outcome: "task_completed", payload: "1" }, true],
  ["a failure", { type: "attempt_failed", payload: "{}" }, true],
  ["a loss, which the next process finds again", { type: "attempt_lost" }, false],
] as const)(
  "an abandoned batch stores %s and the end of its hold together, or neither",
  (_what, ends, isKept) => {
    const record = { ...ends, seq: 5, task: 1, attempt: 1, at: 7 };
    const settle = { type: "settle", task: 1, used: { tokens: 1, costMicroUsd: 0, steps: 1, turns: 0 } };
    const rest = { type: "commit_batch", sessionId: "s", token: 1, firstSeq: 5, entries: [], consumed: [] };
    const batch = { ...rest, records: [record], charges: [settle] } as unknown as CommitBatch;
    expect(withdrawn(batch)).toEqual(
      isKept ? { ...rest, records: [record], charges: [settle] } : { ...rest, records: [] },
    );
  },
);

test("a conversation that is being stored is read from memory until it is", async () => {
  const answers: ((result: ChangeResult) => void)[] = [];
  const submit: Submit = (_change, onResult) => void answers.push(onResult);
  const agent = { name: "a", version: "1" };
  const row = {
    type: "create_session",
    sessionId: "s",
    agent,
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
  } as const;
  const claim = new SessionClaim(createSession({ ...row, persistence: "minimal" }, 0), 1, submit);
  const entry: NewEntry = { id: 0, index: 0, role: "user", turn: 0, content: "1" };
  const commit = (segment: Partial<SealedSegment>): Promise<ChangeResult> =>
    new Promise((resolve, reject) => {
      claim.commit(
        { segment: { ...NOTHING, ...segment }, patch: undefined, status: "working", charges: [] },
        resolve,
        reject,
      );
    });
  await commit({ entries: [entry] });
  const flushed = commit({ enablesPersistence: true });
  expect(claim.isMinimal).toBe(false);
  expect(claim.unstored(0)).toMatchObject([entry]);
  answers[0]!({ status: "committed", inbox: 0 });
  await flushed;
  expect(claim.unstored(0)).toBeUndefined();
});
