import { createSession } from "@holdfast/core/internal";
import type { ChangeResult, NewEntry, SealedSegment } from "@holdfast/core";
import { expect, test } from "vitest";
import { SessionClaim, type Submit } from "./session-claim.ts";

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
