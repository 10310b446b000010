// The conformance suite proves the rules for every adapter. These tests prove that the rules are pure, the
// order of their checks, and facts that no adapter shows from outside.

import { describe, expect, test } from "vitest";
import { LIMITS } from "../limits.ts";
import type { CommitBatch, CreateSession, RequestCancel, SendSignal } from "../session/changes.ts";
import { decideRelease, isHeld, NO_CLAIM, refuseClaim, type Claim } from "./claims.ts";
import { isAnsweredBy, type Session } from "../session/session.ts";
import { dueAt, lookAt } from "./due.ts";
import { applyBatch, refuseBatch, type BatchLookups } from "./batches.ts";
import { createSession } from "./creation.ts";
import { actOverdue, decideCancel } from "./interruptions.ts";
import { decideSignal } from "./signals.ts";

const creation: CreateSession = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
};

/** Frozen, so that a rule that changes its arguments throws. */
function row(more: Partial<Session> = {}): Session {
  return Object.freeze({ ...createSession(creation, 0), ...more });
}

const held: Claim = { token: 3, owner: "owner-1", until: 100, losses: 0 };
const batch: CommitBatch = {
  type: "commit_batch",
  sessionId: "ses-1",
  token: 3,
  firstSeq: 0,
  records: [{ type: "started", seq: 0, at: 1 }],
  entries: [],
  consumed: [],
};
const nothingHeld: BatchLookups = { holdsRecords: () => false, isPending: () => false };
const allHeld: BatchLookups = { holdsRecords: () => true, isPending: () => true };
const unasked: BatchLookups = {
  holdsRecords: () => expect.fail("looked up the journal"),
  isPending: () => expect.fail("looked up a signal"),
};

describe("claims", () => {
  test("a claim is held until the instant its lease ends", () => {
    expect(isHeld(held, 99)).toBe(true);
    expect(isHeld(held, 100)).toBe(false);
    expect(isHeld({ token: 3, until: Infinity, losses: 0 }, 0), "released").toBe(false);
    expect(isHeld(NO_CLAIM, -Infinity)).toBe(false);
  });

  test("a claim is refused while another owner holds it, and only then", () => {
    expect(refuseClaim(row(), held, { owner: "owner-2", now: 99 })).toEqual({
      status: "busy",
      owner: "owner-1",
    });
    expect(refuseClaim(row(), held, { owner: "owner-2", now: 100 })).toBeUndefined();
    expect(refuseClaim(row(), held, { owner: "owner-1", now: 99 })).toBeUndefined();
    expect(refuseClaim(row(), NO_CLAIM, { owner: "owner-2", now: 0 })).toBeUndefined();
  });

  test("the end of the session is reported before the holder of its claim", () => {
    const asked = { owner: "owner-2", now: 0 };
    expect(refuseClaim(row({ status: "failed" }), held, asked)).toEqual({
      status: "ended",
      sessionStatus: "failed",
    });
  });

  test("a session that was never claimed cannot be released", () => {
    expect(decideRelease(row(), NO_CLAIM, { token: NO_CLAIM.token })).toBe("fenced");
    expect(decideRelease(row(), held, { token: 3 })).toBe("released");
    expect(decideRelease(row(), held, { token: 2 })).toBe("fenced");
  });

  test("a release with ifUnchanged is fenced after the claim was used", () => {
    const given = row({ nextSeq: 4, updatedAt: 9 });
    const asked = { token: 3, ifUnchanged: { nextSeq: 4, updatedAt: 9 } };
    expect(decideRelease(given, held, asked)).toBe("released");
    expect(decideRelease({ ...given, updatedAt: 10 }, held, asked)).toBe("fenced");
    expect(decideRelease({ ...given, nextSeq: 5 }, held, asked)).toBe("fenced");
    expect(decideRelease(given, held, { ...asked, token: 2 })).toBe("fenced");
  });
});

describe("signals", () => {
  const signal: SendSignal = {
    type: "send_signal",
    sessionId: "ses-1",
    signalId: "sig-1",
    name: "go",
    payload: "1",
  };

  test("a stored signal raises the inbox of the row and leaves the rest", () => {
    const before = row({ status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }], inbox: 4 });
    expect(decideSignal(before, signal, { isSeen: () => false, pending: 0 }, 9)).toEqual({
      result: { status: "stored", order: 5, awaited: true },
      session: { ...before, inbox: 5, updatedAt: 9 },
    });
  });

  test("a signal above the limit is refused by the limit's name, and a duplicate stays a duplicate", () => {
    const pending = LIMITS.signalsPending;
    expect(decideSignal(row(), signal, { isSeen: () => false, pending: pending - 1 }, 9).result.status).toBe(
      "stored",
    );
    const refused = decideSignal(row(), signal, { isSeen: () => false, pending }, 9);
    expect(refused).toEqual({
      result: { status: "invalid", reason: expect.stringContaining("signalsPending") },
    });
    expect(decideSignal(row(), signal, { isSeen: () => true, pending }, 9).result.status).toBe("duplicate");
  });

  test("a session that has ended answers so also for a signal that it once took", () => {
    const ended = row({ status: "completed" });
    const { result } = decideSignal(ended, signal, { isSeen: () => true, pending: 0 }, 9);
    expect(result).toEqual({ status: "ended", sessionStatus: "completed" });
  });

  test("a name answers signals and questions, not timers", () => {
    expect(isAnsweredBy([{ type: "signal", id: 0, name: "go" }], "go")).toBe(true);
    expect(isAnsweredBy([{ type: "input", id: 0, name: "answer:0", prompt: "?" }], "answer:0")).toBe(true);
    expect(isAnsweredBy([{ type: "signal", id: 0, name: "go" }], "other")).toBe(false);
    expect(isAnsweredBy([{ type: "timer", id: 0, at: 1 }], "go")).toBe(false);
  });
});

describe("cancelling", () => {
  const request: RequestCancel = {
    type: "request_cancel",
    sessionId: "ses-1",
    mode: "graceful",
    graceMs: 50,
  };

  test("a graceful cancel of a paused session removes the pause and keeps its work", () => {
    const before = row({
      status: "paused",
      pauseReason: "poison",
      wakeAt: 7,
      nextSeq: 4,
      turn: 2,
      output: "1",
    });
    const { session } = decideCancel(before, request, 10);
    expect(session).toEqual({
      ...createSession(creation, 0),
      status: "cancelling",
      nextSeq: 4,
      turn: 2,
      output: "1",
      inbox: 1,
      cancel: { mode: "graceful", deadlineAt: 60 },
      updatedAt: 10,
    });
    expect(session).not.toHaveProperty("pauseReason");
    expect(session).not.toHaveProperty("wakeAt");
  });

  test("a second graceful cancel changes no row, also when the agent paused after the first", () => {
    const cancel = { mode: "graceful", deadlineAt: 60 } as const;
    for (const status of ["cancelling", "paused"] as const) {
      expect(decideCancel(row({ status, cancel }), request, 20)).toEqual({
        result: { status: "requested", sessionStatus: status },
      });
    }
  });

  test("a deadline has passed at its time, not before, and acts only once", () => {
    const before = row({ status: "cancelling", cancel: { mode: "graceful", deadlineAt: 60 } });
    expect(actOverdue(before, 59)).toBeUndefined();
    const ended = actOverdue(before, 60);
    expect(ended).toMatchObject({ status: "cancelled", endedAt: 60 });
    expect(actOverdue(ended!, 61)).toBeUndefined();
    expect(actOverdue(row(), 1_000_000)).toBeUndefined();
  });
});

describe("batches", () => {
  test("a fenced batch learns nothing else, and costs no look-up", () => {
    const ended = row({ status: "completed", nextSeq: 5 });
    for (const token of [-1, 0, 2, 4]) {
      expect(refuseBatch(ended, held, { ...batch, token, consumed: ["x"] }, unasked)).toEqual({
        status: "fenced",
      });
    }
    expect(refuseBatch(row(), NO_CLAIM, { ...batch, token: NO_CLAIM.token }, unasked)).toEqual({
      status: "fenced",
    });
  });

  test("a batch that the journal holds is committed, whatever became of session and claim", () => {
    const released: Claim = { token: 3, until: -Infinity, losses: 0 };
    const answer = { status: "committed", inbox: 6 };
    expect(refuseBatch(row({ nextSeq: 1, inbox: 6 }), held, batch, allHeld)).toEqual(answer);
    expect(refuseBatch(row({ nextSeq: 1, inbox: 6, status: "cancelled" }), held, batch, allHeld)).toEqual(
      answer,
    );
    expect(refuseBatch(row({ nextSeq: 1, inbox: 6 }), released, batch, allHeld)).toEqual(answer);
  });

  test("an ended session refuses a batch before anything is looked up", () => {
    const refusal = refuseBatch(row({ status: "failed" }), held, { ...batch, consumed: ["sig-1"] }, unasked);
    expect(refusal).toEqual({
      status: "invalid",
      reason: "session ses-1 has ended as failed",
      endedAs: "failed",
    });
  });

  test("the journal is read only where it reaches as far as the batch", () => {
    expect(refuseBatch(row(), held, batch, unasked)).toBeUndefined();
    const longer = { ...batch, records: [...batch.records, { type: "started", seq: 1, at: 1 } as const] };
    expect(refuseBatch(row({ nextSeq: 1 }), held, longer, unasked)).toMatchObject({ status: "invalid" });
    expect(refuseBatch(row({ nextSeq: 1 }), held, { ...batch, records: [] }, unasked)).toMatchObject({
      status: "invalid",
    });
  });

  test("a thousand consumed signals are each looked up once", () => {
    let asked = 0;
    const lookups: BatchLookups = { ...nothingHeld, isPending: () => ++asked > 0 };
    const consumed = Array.from({ length: 1_000 }, (_, i) => `sig-${i}`);
    expect(refuseBatch(row(), held, { ...batch, consumed }, lookups)).toBeUndefined();
    expect(asked).toBe(1_000);
  });

  test("reasons name the session and both sides", () => {
    const reason = (more: Partial<CommitBatch>, session = row()) => {
      const refusal = refuseBatch(session, held, { ...batch, ...more }, nothingHeld);
      expect(refusal?.status).toBe("invalid");
      return refusal?.status === "invalid" ? refusal.reason : "";
    };
    expect(reason({ firstSeq: 4 })).toMatch(/ses-1 has a journal of 0 records, and the batch begins at 4/);
    expect(reason({ records: [{ type: "started", seq: 2, at: 1 }] })).toMatch(/record 2 where 0 is next/);
    expect(reason({ consumed: ["sig-9"] })).toMatch(/no pending signal sig-9/);
    expect(reason({ consumed: ["sig-9", "sig-9"] })).toMatch(/twice/);
    expect(reason({ session: { status: "submitted" } }, row({ status: "working" }))).toMatch(
      /is working and cannot become submitted/,
    );
    const cancel = { mode: "graceful", deadlineAt: 9 } as const;
    expect(reason({ session: { status: "completed" } }, row({ status: "cancelling", cancel }))).toMatch(
      /cancellation was acknowledged/,
    );
  });

  test("applying a batch makes a new row and leaves the old one", () => {
    const waits = Object.freeze([{ type: "timer", id: 0, at: 9 } as const]);
    const before = row({ status: "waiting", waits, wakeAt: 9, turn: 1, output: "1" });
    const after = applyBatch(before, { ...batch, session: { status: "working", waits: [] } }, 20);
    expect(after).toEqual({
      ...createSession(creation, 0),
      status: "working",
      turn: 1,
      output: "1",
      nextSeq: 1,
      updatedAt: 20,
    });
    expect(after).not.toHaveProperty("wakeAt");
    expect(before).toMatchObject({ status: "waiting", waits, wakeAt: 9, nextSeq: 0 });
  });

  test("a batch without a patch changes the journal's length and nothing else", () => {
    const before = row({ status: "paused", pauseReason: "by_user", wakeAt: 9 });
    expect(applyBatch(before, batch, 20)).toEqual({ ...before, nextSeq: 1, updatedAt: 20 });
  });
});

describe("due sessions", () => {
  const waiting = row({ status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }], wakeAt: 50 });
  const cancel = { mode: "graceful", deadlineAt: 30 } as const;

  test("an unclaimed session is due by its own state", () => {
    expect(dueAt(row(), NO_CLAIM, false)).toBe(-Infinity);
    expect(dueAt(waiting, NO_CLAIM, false)).toBe(50);
    expect(dueAt(waiting, NO_CLAIM, true)).toBe(-Infinity);
    expect(dueAt(row({ status: "paused" }), NO_CLAIM, true)).toBe(Infinity);
    expect(dueAt(row({ status: "cancelled" }), NO_CLAIM, true)).toBe(Infinity);
  });

  test("a claimed session is not due before its lease ends, and a released one is due as if it had never been claimed", () => {
    expect(dueAt(row(), held, false)).toBe(100);
    expect(dueAt(waiting, { ...held, until: 20 }, false)).toBe(50);
    expect(dueAt(row(), { ...held, until: Infinity }, true)).toBe(Infinity);
    expect(dueAt(row(), { token: 3, until: 100, losses: 0 }, false)).toBe(-Infinity);
  });

  test("a session that is being cancelled is examined at its deadline, whether claimed or paused or not", () => {
    expect(lookAt(row({ status: "cancelling", cancel }), held, false)).toBe(30);
    expect(lookAt(row({ status: "paused", cancel }), NO_CLAIM, false)).toBe(30);
    expect(lookAt(row({ status: "cancelling", cancel }), NO_CLAIM, false)).toBe(-Infinity);
    expect(lookAt(row({ status: "cancelled", cancel }), NO_CLAIM, false)).toBe(Infinity);
    expect(lookAt(waiting, NO_CLAIM, false)).toBe(50);
  });
});
