// `forkSession`: the points at which a session can be forked, and the contents of a fork.

import { describe, expect, test } from "vitest";
import { UsageError } from "../errors/errors.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { CreateSession } from "./changes.ts";
import { openAccount } from "../budget/budget.ts";
import { forkSession, isForkPending, parentAt, seedAt, type ForkRequest, type WholeSession } from "./fork.ts";
import type { Session } from "./session.ts";
import { createSession, findImportProblem } from "../rules/creation.ts";

type Draft = JournalRecord extends infer R ? (R extends unknown ? Omit<R, "seq"> : never) : never;

const STARTED: Draft = { type: "started", at: 1 };
const task = (id: number): Draft => ({ type: "schedule_task", id, kind: "t", hash: "h" });
const done = (id: number): Draft => ({ type: "task_completed", at: 2, task: id, attempt: 1, payload: "1" });
const entry = (id: number): Draft => ({ type: "append_entry", id, role: "user", hash: "h" });
const checkpoint = (id: number, turn: number, entryCount = 0): Draft => ({
  type: "checkpoint",
  id,
  at: 3,
  turn,
  entryCount,
  payload: `${turn}`,
});
const lost: Draft = { type: "attempt_lost", at: 4, task: 2, attempt: 1 };

const CREATION: CreateSession = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "a", version: "1", file: "/f.ts", traceparent: "00-1" },
  input: '"old"',
  seed: 7,
  flags: 0,
  format: 1,
};

function whole(drafts: readonly Draft[], more: Partial<Session> = {}): WholeSession {
  const records = drafts.map((draft, seq) => ({ ...draft, seq }));
  const entries = records
    .filter((record) => record.type === "append_entry")
    .map(({ id }, index) => ({ id, index, role: "user", turn: 0, content: `${id}`, createdAt: 5 }));
  const session: Session = {
    ...createSession(CREATION, 10),
    status: "working",
    nextSeq: records.length,
    entryCount: entries.length,
    ...more,
  };
  return { session, records, entries };
}

const REQUEST: ForkRequest = { sessionId: "ses-2", tasks: "rerun", seed: 99, now: 1_000 };

function fork(origin: WholeSession, request: Partial<ForkRequest> = {}) {
  const change = forkSession(origin, { ...REQUEST, ...request });
  expect(findImportProblem(change)).toBeUndefined();
  return change;
}

function refusal(origin: WholeSession, request: Partial<ForkRequest>): UsageError {
  try {
    fork(origin, request);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return error as UsageError;
  }
  throw new Error("it was not refused");
}

const TURNS = [STARTED, task(0), done(0), checkpoint(1, 1), STARTED, task(2), lost, done(2)];
const FAILED: Draft = { type: "fail", id: 3, payload: "{}" };

describe("fork-1: a point", () => {
  test("a point is wherever an event or a note follows, and the end", () => {
    const origin = whole(TURNS);
    const points = Array.from({ length: TURNS.length + 1 }, (_, at) => at).filter((at) => {
      try {
        return fork(origin, { at }).records.length === at;
      } catch {
        return false;
      }
    });
    expect(points).toEqual([0, 2, 4, 6, 7, 8]);
  });

  test("a checkpoint's own position is a point", () => {
    expect(fork(whole(TURNS), { at: 3 }).records).toHaveLength(4);
  });

  test.each([
    [1, "0, 2"],
    [5, "4, 6"],
    [9, "8"],
    [-1, "0"],
    [1.5, "0, 2"],
    [Number.NaN, "0"],
  ])("that does not exist names the nearest: %d", (at, nearest) => {
    const { message, expected } = refusal(whole(TURNS), { at });
    expect(message).toBe(`session ses-1 cannot be forked at ${at}`);
    expect(expected).toBe(`a position between two commits; the nearest: ${nearest}`);
  });

  test("the last checkpoint is the default point, or else the end", () => {
    expect(fork(whole(TURNS)).records).toHaveLength(4);
    expect(fork(whole([STARTED, task(0)])).records).toHaveLength(2);
  });
});

describe("fork-2: the end of a session is not part of a fork", () => {
  test.each<[string, readonly Draft[], number]>([
    ["it failed", [STARTED, task(0), done(0), task(1), done(1), FAILED], 4],
    ["it completed at once", [STARTED, { type: "complete", id: 0 }], 0],
    [
      "it was cancelled",
      [STARTED, task(0), { type: "cancel_requested", at: 2, deadlineAt: 9 }, task(1), done(1), FAILED],
      2,
    ],
    ["it was ended from outside", [STARTED, task(0)], 2],
  ])("%s", (_name, drafts, end) => {
    const origin = whole(drafts, { status: "failed" });
    expect(fork(origin).records).toHaveLength(end);
    if (end === drafts.length) return;
    const { got, expected } = refusal(origin, { at: end + 1 });
    expect(got).toContain(`from ${end} on the session was ending`);
    expect(expected).toContain(`nearest: ${end}`);
  });

  test("a checkpoint that knows of a cancel is no point", () => {
    const cancel: Draft = { type: "cancel_requested", at: 2, deadlineAt: 9 };
    const drafts = [STARTED, checkpoint(0, 1), STARTED, task(1), cancel, checkpoint(2, 2), STARTED];
    expect(fork(whole(drafts)).records).toHaveLength(2);
    expect(refusal(whole(drafts), { at: 5 }).expected).toContain("nearest: 4");
  });
});

describe("fork-3: nothing of a fork belongs to others", () => {
  const spent = { tokens: 5, costMicroUsd: 0, turns: 1, steps: 1 };
  test("a fork has no parent, children, signals, spend or trace, and a new budget and deadline", () => {
    const origin = whole(TURNS, {
      parent: { sessionId: "ses-0", child: 3, onEnd: "cancel" },
      depth: 2,
      children: 4,
      inbox: 6,
      payers: ["ses-1", "ses-0"],
      account: { limits: { maxTokens: 10 }, spent, reserved: spent, low: true },
      deadlineAt: 510,
      progress: "1",
      waits: [{ type: "timer", id: 2, at: 3 }],
      wakeAt: 3,
      cancel: { mode: "hard", deadlineAt: 2 },
      error: { name: "E", message: "m" },
      output: "1",
      endedAt: 20,
      status: "failed",
    });
    const { session } = fork(origin);
    expect(session).toEqual({
      sessionId: "ses-2",
      agent: { name: "a", version: "1", file: "/f.ts" },
      title: "old",
      input: '"old"',
      status: "working",
      waits: [],
      nextSeq: 4,
      checkpointSeq: 3,
      entryCount: 0,
      turn: 1,
      inbox: 0,
      seed: 7,
      flags: 0,
      format: 1,
      depth: 0,
      children: 0,
      payers: ["ses-2"],
      account: openAccount({ maxTokens: 10 }),
      deadlineAt: 1_500,
      fork: {
        origins: ["ses-1"],
        at: 4,
        seed: 99,
        tasks: "rerun",
        parent: { sessionId: "ses-0", child: 3, onEnd: "cancel" },
      },
      createdAt: 1_000,
      updatedAt: 1_000,
    });
  });

  // Without these the fork would have no owner, and would run on any runner.
  test("a fork keeps the owner, the demands and the priority", () => {
    const placement = { owner: "anna", demands: { os: "linux" }, priority: 2 };
    expect(fork(whole(TURNS, { placement })).session.placement).toEqual(placement);
    expect(fork(whole(TURNS)).session).not.toHaveProperty("placement");
  });

  test("a fork has the entries up to the point, with their parents", () => {
    const origin = whole([STARTED, entry(0), task(1), done(1), entry(2), task(3)]);
    expect(fork(origin, { at: 3 }).entries.map(({ id }) => id)).toEqual([0]);
    expect(fork(origin).entries.map(({ id }) => id)).toEqual([0, 2]);
  });
});

describe("fork-4: input and randomness", () => {
  const input = { text: '"new"' };
  test("another input is possible at a checkpoint and at 0, and nowhere else", () => {
    expect(fork(whole(TURNS), { input }).session.input).toBe('"new"');
    expect(fork(whole(TURNS), { at: 0, input }).session).toMatchObject({
      input: '"new"',
      status: "submitted",
    });
    expect(refusal(whole(TURNS), { at: 6, input })).toMatchObject({
      message: "a fork of session ses-1 at 6 cannot have another input",
      expected: "a checkpoint (the last one before is at 3), or 0",
    });
    expect(refusal(whole(TURNS), { at: 2, input }).expected).toBe("position 0");
  });

  test("a fork has the old randomness up to the point and its own after it, also as a fork of a fork", () => {
    const first = fork(whole([STARTED, task(0), done(0)]), { at: 2, seed: 11 });
    expect([seedAt(first.session, 0), seedAt(first.session, 2)]).toEqual([7, 11]);
    // The fork continued past a checkpoint, and is forked in the turn after it.
    const gone = whole(
      [STARTED, task(0), { type: "forked", at: 3, from: "ses-1", seed: 11, tasks: "rerun" }],
      {
        fork: first.session.fork!,
      },
    );
    const later = whole([STARTED, task(0), done(0), checkpoint(1, 1), STARTED, task(2)], {
      fork: first.session.fork!,
      sessionId: "ses-2",
    });
    expect(fork(gone).session.seed).toBe(7);
    expect(fork(later, { at: 6, sessionId: "ses-3" }).session).toMatchObject({
      seed: 11,
      fork: { origins: ["ses-2", "ses-1"], at: 6, seed: 99 },
    });
  });

  test("a fork is told once that it is a fork, if it runs through the origin's part", () => {
    const { session, records } = fork(whole([STARTED, task(0), done(0)]), { at: 2 });
    const forked: JournalRecord = { type: "forked", seq: 3, at: 3, from: "ses-1", seed: 99, tasks: "rerun" };
    const note: JournalRecord = { type: "warned", seq: 2, at: 3 };
    expect(isForkPending(session, 0, records)).toBe(true);
    expect(isForkPending(session, 0, [...records, note])).toBe(true);
    expect(isForkPending(session, 0, [...records, note, forked])).toBe(false);
    expect(isForkPending(session, 2, [])).toBe(false);
    expect(isForkPending(fork(whole(TURNS)).session, 4, [])).toBe(false);
  });

  test("a fork knows the origin's parent while it runs through the origin's part", () => {
    const parent = { sessionId: "ses-0", child: 3, onEnd: "cancel" } as const;
    const { session } = fork(whole([STARTED, task(0), done(0)], { parent }), { at: 2 });
    expect(parentAt(session, 0)).toEqual(parent);
    expect(parentAt(session, 2)).toBeUndefined();
    expect(parentAt({ parent }, 0)).toEqual(parent);
  });
});
