// What every storage decides, as pure functions over plain values: an adapter looks things up, asks here, and persists
// what comes back. So memory, SQLite, PostgreSQL and the simulator cannot disagree about what a change does.
//
//   A1. Fencing is asked before anything else: who is not the newest claimer learns nothing but that (ST2).
//   A2. A batch that is already in the journal is `committed` whatever became of the session since (ST3): the one who
//       asks again does not know that it was applied, and telling it `invalid` would make it undo what it may not undo.
//   A3. An acknowledged cancel stands on the row for good. What may still follow is decided by `cancel`, not by the
//       status, so that a pause in between does not wash it off (ST16).
//   A4. An agent that has heard of its cancel says `cancelling`. One that says `working` or `waiting` has not: its batch
//       is kept, its waits are not, so the session is due and hears of it even if its process dies now.

import type {
  ChangeResult,
  ClaimResult,
  CommitBatch,
  CreateSession,
  RequestCancel,
  SendSignal,
  SessionPatch,
} from "../ports/storage.ts";
import { LIMITS } from "../limits.ts";
import {
  isAwaited,
  isCancelOverdue,
  isEnded,
  mayBecome,
  type Session,
  type SessionStatus,
  type Wait,
} from "./session.ts";

// ---- claims ------------------------------------------------------------------------------------------------------

/** Who may advance a session. Kept beside the session's row; where it lives is the adapter's affair. */
export interface Claim {
  /** Grows with every claim of the session, also over restarts (ST6). 0 before the first. */
  readonly token: number;
  /** Absent once released. */
  readonly owner?: string;
  /** End of the lease in epoch milliseconds; at that instant it has passed. */
  readonly until: number;
}

export const NO_CLAIM: Claim = { token: 0, until: -Infinity };

export function isHeld(claim: Claim, now: number): boolean {
  return claim.owner !== undefined && claim.until > now;
}

/**
 * Why a session cannot be claimed, or `undefined` when it can: the adapter then makes a claim with a higher token.
 *
 * The holder itself may claim again. It does so when the reply to its first claim was lost; the token it never saw is
 * fenced from then on. Refusing it would lock it out until its own lease passes, which under one owner is never.
 */
export function refuseClaim(
  session: Session,
  claim: Claim,
  asked: { readonly owner: string; readonly now: number },
): ClaimResult | undefined {
  if (isEnded(session.status)) return { status: "ended", sessionStatus: session.status };
  if (claim.owner === undefined || claim.owner === asked.owner || !isHeld(claim, asked.now)) return undefined;
  return { status: "busy", owner: claim.owner };
}

/** Releasing twice is releasing once; a claim that was taken over is not the caller's to release. */
export function decideRelease(claim: Claim, token: number): "released" | "fenced" {
  return token === claim.token && token !== NO_CLAIM.token ? "released" : "fenced";
}

// ---- creating ----------------------------------------------------------------------------------------------------

export function createSession(change: CreateSession, now: number): Session {
  return {
    sessionId: change.sessionId,
    agent: change.agent,
    input: change.input,
    status: "submitted",
    waits: [],
    nextSeq: 0,
    entryCount: 0,
    turn: 0,
    inbox: 0,
    seed: change.seed,
    flags: change.flags,
    format: change.format,
    createdAt: now,
    updatedAt: now,
  };
}

/** The batch that a session is created with, under the claim it is created with (ST25). */
export function firstBatch({ sessionId, first }: CreateSession, token: number): CommitBatch | undefined {
  if (first === undefined) return undefined;
  return { type: "commit_batch", sessionId, token, firstSeq: 0, consumed: [], ...first };
}

// ---- arrivals ----------------------------------------------------------------------------------------------------

/** What the adapter looked up for a signal. */
export interface SignalFacts {
  /** Whether the session has seen this id or this dedup key before, consumed or not. */
  readonly seen: boolean;
  /** Signals of the session that nobody has consumed yet. */
  readonly pending: number;
}

export type SignalDecision =
  | { readonly result: ChangeResult }
  | { readonly result: ChangeResult & { readonly status: "stored" }; readonly session: Session };

/**
 * Whether a signal is stored, and the row it leaves. Its `order` is in the result.
 *
 * A session that has ended answers `ended` also to what it once took: its signals and their ids need not be kept.
 */
export function decideSignal(
  session: Session,
  signal: SendSignal,
  facts: SignalFacts,
  now: number,
): SignalDecision {
  if (isEnded(session.status)) return { result: { status: "ended", sessionStatus: session.status } };
  if (facts.seen) return { result: { status: "duplicate" } };
  if (facts.pending >= LIMITS.signalsPending) {
    const reason = `session ${session.sessionId} has ${facts.pending} unconsumed signals, the limit "signalsPending"`;
    return { result: { status: "invalid", reason } };
  }
  const inbox = session.inbox + 1;
  return {
    result: { status: "stored", order: inbox, awaited: isAwaited(session, signal.name) },
    session: { ...session, inbox, updatedAt: now },
  };
}

export interface CancelDecision {
  readonly result: ChangeResult;
  /** The row it leaves; absent when nothing changes. Present, the request is an arrival: listeners hear of it. */
  readonly session?: Session;
}

/**
 * What a cancel request does.
 *
 * Graceful: `cancelling` until its deadline, standing on nothing, so that the agent is called and told. That holds for
 * sessions that were submitted, waiting or paused as well: their agents may have something to clean up, and an agent that
 * cannot run any more is overtaken by the deadline. Hard: `cancelled` at once, also after a graceful one.
 */
export function decideCancel(session: Session, request: RequestCancel, now: number): CancelDecision {
  if (isEnded(session.status)) return { result: { status: "ended", sessionStatus: session.status } };
  const inbox = session.inbox + 1;
  const reason = request.reason === undefined ? {} : { reason: request.reason };
  if (request.mode === "hard") {
    const cancel = { mode: "hard", deadlineAt: now, ...reason } as const;
    return changed({ ...endSession(session, "cancelled", now), inbox, cancel });
  }
  if (session.cancel !== undefined) return { result: { status: "requested", sessionStatus: session.status } };
  const cancel = { mode: "graceful", deadlineAt: now + request.graceMs, ...reason } as const;
  const { wakeAt: _wakeAt, pauseReason: _pauseReason, ...rest } = session;
  return changed({ ...rest, status: "cancelling", waits: [], inbox, cancel, updatedAt: now });
}

function changed(session: Session): CancelDecision {
  return { result: { status: "requested", sessionStatus: session.status }, session };
}

/** The row after a graceful cancel's time is up, or `undefined` when it is not (ST17). Listeners hear of it. */
export function endOverdue(session: Session, now: number): Session | undefined {
  return isCancelOverdue(session, now) ? endSession(session, "cancelled", now) : undefined;
}

function endSession(session: Session, status: "cancelled", now: number): Session {
  const { wakeAt: _wakeAt, pauseReason: _pauseReason, ...rest } = session;
  return { ...rest, status, waits: [], endedAt: now, updatedAt: now };
}

// ---- batches -----------------------------------------------------------------------------------------------------

/** What is looked up for a batch, each only when the answer depends on it. */
export interface BatchLookups {
  /** Whether the journal holds these very records, byte for byte, at the batch's `firstSeq`. */
  holdsRecords(batch: CommitBatch): boolean;
  isPending(signalId: string): boolean;
}

/** The answer to a batch that is not to be applied, or `undefined` for one that is. */
export function refuseBatch(
  session: Session,
  claim: Claim,
  batch: CommitBatch,
  lookups: BatchLookups,
): ChangeResult | undefined {
  if (batch.token !== claim.token || claim.token === NO_CLAIM.token) return { status: "fenced" }; // A1.
  if (isResent(session, batch, lookups)) return { status: "committed", inbox: session.inbox }; // A2.
  if (isEnded(session.status)) return invalid(session, `has ended as ${session.status}`);
  if (claim.owner === undefined) return { status: "fenced" };
  const problem =
    findRecordProblem(session, batch) ??
    findSignalProblem(batch, lookups) ??
    findPatchProblem(session, batch.session);
  return problem === undefined ? undefined : invalid(session, problem);
}

function invalid(session: Session, problem: string): ChangeResult {
  return { status: "invalid", reason: `session ${session.sessionId} ${problem}` };
}

/** A batch without records proves nothing by being there; sent again at the journal's end it does the same again. */
function isResent(session: Session, batch: CommitBatch, lookups: BatchLookups): boolean {
  const { firstSeq, records } = batch;
  if (firstSeq >= session.nextSeq || records.length === 0) return false;
  return firstSeq + records.length <= session.nextSeq && lookups.holdsRecords(batch);
}

function findRecordProblem(session: Session, batch: CommitBatch): string | undefined {
  const { firstSeq, records, entries } = batch;
  if (firstSeq !== session.nextSeq) {
    return `has a journal of ${session.nextSeq} records, and the batch begins at ${firstSeq} with others than it holds`;
  }
  let entryAt = 0;
  for (let i = 0; i < records.length; i++) {
    const record = records[i]!;
    if (record.seq !== firstSeq + i) return `got a record ${record.seq} where ${firstSeq + i} is next`;
    if (record.type !== "append_entry") continue;
    const entry = entries[entryAt];
    if (entry?.id !== record.id) return `got no entry for the append_entry command ${record.id}`;
    const index = session.entryCount + entryAt;
    if (entry.index !== index) return `got an entry numbered ${entry.index} where ${index} is next`;
    if (entry.parent !== undefined && entry.parent >= entry.id)
      return `got an entry ${entry.id} that hangs under a later one`;
    entryAt++;
  }
  return entryAt < entries.length
    ? `got an entry ${entries[entryAt]!.id} without its append_entry record`
    : undefined;
}

function findSignalProblem({ consumed }: CommitBatch, lookups: BatchLookups): string | undefined {
  if (consumed.length > 1 && new Set(consumed).size < consumed.length) return "cannot consume a signal twice";
  const missing = consumed.find((signalId) => !lookups.isPending(signalId));
  return missing === undefined ? undefined : `has no pending signal ${missing} to consume`;
}

function findPatchProblem(session: Session, patch: SessionPatch | undefined): string | undefined {
  if (patch === undefined) return undefined;
  const status = statusAfter(session, patch);
  if (!mayBecome(session.status, status)) {
    const why = session.cancel === undefined ? "" : ", because its cancellation was acknowledged";
    return `is ${session.status} and cannot become ${status}${why}`;
  }
  const waits = patch.waits ?? session.waits;
  switch (status) {
    case "waiting":
      return waits.length > 0 ? undefined : "cannot wait without naming what it waits for";
    case "input_required":
      return waits.some(({ type }) => type === "input")
        ? undefined
        : "cannot ask for input without naming the question";
    case "paused":
      return (patch.pauseReason ?? session.pauseReason) !== undefined
        ? undefined
        : "cannot pause without a reason";
    default:
      return undefined;
  }
}

/** The row after a batch that `refuseBatch` did not refuse. */
export function applyBatch(session: Session, batch: CommitBatch, now: number): Session {
  const { records, session: patch } = batch;
  const next: Mutable<Session> = {
    ...session,
    nextSeq: batch.firstSeq + records.length,
    entryCount: session.entryCount + batch.entries.length,
    updatedAt: now,
  };
  for (let i = records.length - 1; i >= 0; i--) {
    if (records[i]!.type !== "checkpoint") continue;
    next.checkpointSeq = records[i]!.seq;
    break;
  }
  if (patch !== undefined) applyPatch(next, patch, now);
  return next;
}

function applyPatch(next: Mutable<Session>, patch: SessionPatch, now: number): void {
  const status = statusAfter(next, patch);
  const standsOnNothing = isEnded(status) || status !== patch.status; // A4.
  if (patch.waits !== undefined || standsOnNothing) {
    next.waits = standsOnNothing ? [] : (patch.waits ?? []);
    if (next.wakeAt !== undefined) delete next.wakeAt;
  }
  if (patch.wakeAt !== undefined && !standsOnNothing) next.wakeAt = patch.wakeAt;
  if (status !== "paused") {
    if (next.pauseReason !== undefined) delete next.pauseReason;
  } else if (patch.pauseReason !== undefined) {
    next.pauseReason = patch.pauseReason;
  }
  if (patch.turn !== undefined) next.turn = patch.turn;
  if (patch.output !== undefined) next.output = patch.output;
  if (patch.error !== undefined) next.error = patch.error;
  if (isEnded(status)) next.endedAt = now;
  next.status = status;
}

/** A4. What the session becomes when a batch asks for `patch.status`. */
function statusAfter(session: Pick<Session, "cancel">, patch: SessionPatch): SessionStatus {
  return session.cancel !== undefined && GOES_ON.has(patch.status) ? "cancelling" : patch.status;
}

const GOES_ON: ReadonlySet<SessionStatus> = new Set(["submitted", "working", "waiting", "input_required"]);

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

// ---- what is due -------------------------------------------------------------------------------------------------

/** Whether a signal of this name is what one of the waits stands for. */
export function isAnsweredBy(waits: readonly Wait[], signalName: string): boolean {
  return waits.some((wait) => (wait.type === "signal" || wait.type === "input") && wait.name === signalName);
}

/**
 * From when on there is something to do for a session that nobody else does (ST18): `-Infinity` for now, `Infinity` for
 * never without an arrival. A claimed one is its claimer's until the lease has passed.
 *
 * @param answered whether a signal that the session waits for is pending.
 */
export function dueAt(session: Session, claim: Claim, answered: boolean): number {
  const readyAt = readyFrom(session, answered);
  return claim.owner === undefined ? readyAt : Math.max(readyAt, claim.until);
}

function readyFrom(session: Session, answered: boolean): number {
  switch (session.status) {
    case "submitted":
    case "working":
      return -Infinity;
    case "cancelling":
      // In its clean-up it waits like any other; before that it stands on nothing (A4).
      if (session.waits.length === 0) return -Infinity;
      return answered ? -Infinity : (session.wakeAt ?? Infinity);
    case "waiting":
    case "input_required":
      return answered ? -Infinity : (session.wakeAt ?? Infinity);
    case "paused":
    case "completed":
    case "failed":
    case "cancelled":
      return Infinity;
  }
}

/** When `due` has to look at a session for the next time: it is due then, or its cancel is over. */
export function lookAt(session: Session, claim: Claim, answered: boolean): number {
  const at = dueAt(session, claim, answered);
  return session.cancel === undefined || isEnded(session.status)
    ? at
    : Math.min(at, session.cancel.deadlineAt);
}
