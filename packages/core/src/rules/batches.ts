// `refuseBatch`, `applyBatch`: the rules for a batch that a claim holder commits.
//
//   - Fencing comes first: a caller that does not hold the newest claim learns nothing but that (ST2).
//   - A batch that is already in the journal is `committed`, whatever became of the session since (ST3). A
//     caller that sends a batch again does not know that it was applied; `invalid` would make the caller undo
//     what it must not undo.
//   - After an acknowledged cancel a session cannot become `completed` (ST16).
//   batches-4. An agent that has seen its cancel says `cancelling`. An agent that says `working`, `waiting`
//       or `input_required`, or pauses for a budget or a mistake, has not seen the cancel. The batch is then
//       kept without its waits. The session is due, and its agent sees the cancel even if the process dies
//       now.
//   batches-5. The same holds for a pause: the batch of a driver that has not seen the pause is kept, and the
//       session stays paused.

import { costAfter } from "../budget/session-cost.ts";
import type { ChangeResult, CommitBatch, Effect, SessionPatch } from "../session/changes.ts";
import {
  isEnded,
  mayBecome,
  type PauseReason,
  type Session,
  type SessionStatus,
} from "../session/session.ts";
import { NO_CLAIM, type Claim } from "./claims.ts";

/** Reads for a batch. Each is made only if the result depends on it. */
export interface BatchLookups {
  /** Whether the journal holds these very records, byte for byte, at the batch's `firstSeq`. */
  holdsRecords(batch: CommitBatch): boolean;
  isPending(signalId: string): boolean;
}

/** The result for a batch that is not applied; `undefined` for a batch that is. */
export function refuseBatch(
  session: Session,
  claim: Claim,
  batch: CommitBatch,
  lookups: BatchLookups,
): ChangeResult | undefined {
  // mutant: stale-token-accepted
  // First of all: the caller of an old claim learns nothing else.
  if (batch.token !== claim.token || claim.token === NO_CLAIM.token) return { status: "fenced" };
  // mutant: batch-applied-twice
  // The caller that sends it again does not know that it was applied.
  if (isResent(session, batch, lookups)) return { status: "committed", inbox: session.inbox };
  if (isEnded(session.status))
    return { ...invalid(session, `has ended as ${session.status}`), endedAs: session.status };
  if (claim.owner === undefined || session.move !== undefined) return { status: "fenced" };
  const problem =
    findRecordProblem(session, batch) ??
    findSignalProblem(batch, lookups) ??
    findEffectProblem(batch.effects) ??
    findPatchProblem(session, batch.session);
  return problem === undefined ? undefined : invalid(session, problem);
}

export function invalid(
  session: Session,
  problem: string,
): Extract<ChangeResult, { readonly status: "invalid" }> {
  return { status: "invalid", reason: `session ${session.sessionId} ${problem}` };
}

/**
 * Whether a batch was committed before. A batch without records is applied again, which changes nothing. The
 * batch of a minimal or ephemeral session is known by the signals that it consumes, because only the claim
 * holder consumes signals.
 */
function isResent(session: Session, batch: CommitBatch, lookups: BatchLookups): boolean {
  const { firstSeq, records, consumed } = batch;
  if (records.length === 0 && session.persistence !== undefined && !isEnded(session.status))
    // The end of a session drops its pending signals.
    return consumed.length > 0 && !consumed.some((signalId) => lookups.isPending(signalId));
  if (firstSeq >= session.nextSeq || records.length === 0) return false;
  return firstSeq + records.length <= session.nextSeq && lookups.holdsRecords(batch);
}

export function findRecordProblem(
  session: Pick<Session, "nextSeq" | "entryCount">,
  batch: Pick<CommitBatch, "firstSeq" | "records" | "entries">,
): string | undefined {
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
    // mutant: entry-gap-accepted
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

export function findEffectProblem(effects: readonly Effect[] = []): string | undefined {
  for (const effect of effects) {
    if (effect.type !== "create_session") continue;
    const { sessionId, claimFor, first, under } = effect;
    // Nobody would receive the token of that claim.
    if (claimFor !== undefined || first !== undefined)
      return `cannot claim ${sessionId} in the batch that makes it`;
    if (under !== undefined) return `cannot make ${sessionId} under another claim than its own`;
  }
  return undefined;
}

function findPatchProblem(session: Session, patch: SessionPatch | undefined): string | undefined {
  if (patch === undefined) return undefined;
  const status = statusAfter(session, patch);
  // mutant: cancelled-completes
  // After an acknowledged cancel no session becomes `completed`.
  const isRefused = session.cancel !== undefined && status === "completed";
  if (isRefused || !mayBecome(session.status, status)) {
    const why = session.cancel === undefined ? "" : ", because its cancellation was acknowledged";
    return `is ${session.status} and cannot become ${status}${why}`;
  }
  const waits = patch.waits ?? session.waits;
  switch (status) {
    case "waiting":
      // mutant: wait-for-nothing
      return waits.length > 0 ? undefined : "cannot wait without naming what it waits for";
    case "input_required":
      return waits.some(({ type }) => type === "input")
        ? undefined
        : "cannot ask for input without naming the question";
    case "paused":
      return findPauseProblem(session, patch);
    default:
      return undefined;
  }
}

function findPauseProblem(session: Session, patch: SessionPatch): string | undefined {
  const reason = patch.pauseReason ?? session.pauseReason;
  if (reason === undefined) return "cannot pause without a reason";
  const exhausted = patch.exhausted ?? session.exhausted;
  if (reason === "budget_exceeded" && exhausted === undefined)
    return "cannot pause for want of a budget without naming the limit";
  return reason === "quota" && patch.quota === undefined && session.quota === undefined
    ? "cannot pause for a usage limit without naming what is limited"
    : undefined;
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
  for (const effect of batch.effects ?? []) if (createsChild(effect, session.sessionId)) next.children++;
  for (let i = records.length - 1; i >= 0; i--) {
    if (records[i]!.type !== "checkpoint") continue;
    // mutant: first-checkpoint-kept
    next.checkpointSeq = records[i]!.seq;
    break;
  }
  const cost = costAfter(session.cost, records);
  if (cost !== undefined) next.cost = cost;
  if (patch !== undefined) applyPatch(next, patch, now);
  return next;
}

function applyPatch(next: Mutable<Session>, patch: SessionPatch, now: number): void {
  const status = statusAfter(next, patch);
  const hasNoWaits = isEnded(status) || (status !== patch.status && status !== "paused"); // batches-4, batches-5.
  if (patch.waits !== undefined || hasNoWaits) {
    next.waits = hasNoWaits ? [] : (patch.waits ?? []);
    if (next.wakeAt !== undefined) delete next.wakeAt;
  }
  if (patch.wakeAt !== undefined && !hasNoWaits) next.wakeAt = patch.wakeAt;
  if (status !== "paused") {
    if (next.pauseReason !== undefined) delete next.pauseReason;
    if (next.exhausted !== undefined) delete next.exhausted;
    if (next.quota !== undefined) delete next.quota;
  } else if (patch.pauseReason !== undefined) {
    next.pauseReason = patch.pauseReason;
    if (patch.exhausted !== undefined) next.exhausted = patch.exhausted;
    if (patch.pauseReason !== "budget_exceeded" && next.exhausted !== undefined) delete next.exhausted;
    if (patch.quota !== undefined) next.quota = patch.quota;
    if (patch.pauseReason !== "quota" && next.quota !== undefined) delete next.quota;
  }
  if (patch.turn !== undefined) next.turn = patch.turn;
  if (patch.output !== undefined) next.output = patch.output;
  if (patch.error !== undefined && status === patch.status) next.error = patch.error;
  if (patch.progress !== undefined) next.progress = patch.progress;
  if (patch.handedOffTo !== undefined) next.handedOffTo = patch.handedOffTo;
  if (patch.persistence !== undefined) delete next.persistence;
  if (patch.resumedFrom !== undefined) next.resumedFrom = patch.resumedFrom;
  if (isEnded(status)) next.endedAt = now;
  next.status = status;
}

/** batches-4, batches-5. The status after a batch that asks for `patch.status`. */
function statusAfter(session: Pick<Session, "status" | "cancel">, patch: SessionPatch): SessionStatus {
  if (session.status === "paused" && !isEnded(patch.status)) return "paused";
  // mutant: pause-drops-cancel
  return session.cancel !== undefined && hasNotSeenCancel(patch) ? "cancelling" : patch.status;
}

/** batches-4. Whether the patch shows that the agent has not seen the cancel. */
function hasNotSeenCancel({ status, pauseReason }: SessionPatch): boolean {
  return ACTIVE.has(status) || (pauseReason !== undefined && BEFORE_CANCEL.has(pauseReason));
}

/** Whether an effect creates a child of this session. */
function createsChild(effect: Effect, sessionId: string): boolean {
  return effect.type === "create_session" && effect.parent?.sessionId === sessionId;
}

/** Pauses that are decided before the agent sees a cancel that came meanwhile. */
const BEFORE_CANCEL: ReadonlySet<PauseReason> = new Set([
  "budget_exceeded",
  "agent_fault",
  "quota",
  "auth_required",
]);
const ACTIVE: ReadonlySet<SessionStatus> = new Set(["submitted", "working", "waiting", "input_required"]);

type Mutable<T> = { -readonly [key in keyof T]: T[key] };
