// What every storage decides, as pure functions over plain values: an adapter looks things up, asks here, and persists
// what comes back. So memory, SQLite, PostgreSQL and the simulator cannot disagree about what a change does.
//
//   storage-rules-1. Fencing is asked before anything else: who is not the newest claimer learns nothing but that (ST2).
//   storage-rules-2. A batch that is already in the journal is `committed` whatever became of the session since (ST3):
//       the one who asks again does not know that it was applied, and telling it `invalid` would make it undo what it
//       may not undo.
//   storage-rules-3. An acknowledged cancel stands on the row for good. What may still follow is decided by `cancel`,
//       not by the status, so that a pause in between does not wash it off (ST16).
//   storage-rules-4. An agent that has heard of its cancel says `cancelling`. One that says `working` or `waiting` has
//       not, nor one that is paused for want of a budget or by its mistake: its batch is kept, its waits are not, so
//       the session is due and hears of it even if its process dies now.
//   storage-rules-5. So with a pause: what its driver did before it heard of it is kept, and the session stays paused.
//   storage-rules-6. What a change does to sessions above and below is itself a list of changes, applied after it in
//       the same transaction.

import type { Schedule } from "./schedules.ts";
import type {
  ChangeResult,
  CommitBatch,
  CreateSession,
  Effect,
  FireSchedule,
  HeldAs,
  ImportSession,
  RequestCancel,
  SendSignal,
  SessionPatch,
  SetBudget,
} from "./changes.ts";
import { isReservedName } from "../journal/signal-names.ts";
import { LIMITS } from "../limits.ts";
import {
  findAccountProblem,
  NO_AMOUNT,
  openAccount,
  raise,
  releaseLost,
  sumOf,
  type Account,
} from "./budget.ts";
import { isHeldAs, NO_CLAIM, type Claim } from "./claims.ts";
import { movedAway } from "./moving.ts";
import {
  isAnsweredBy,
  isAwaited,
  isEnded,
  mayBecome,
  overdueAt,
  ownedBy,
  type CancelRequest,
  type Session,
  type SessionStatus,
} from "./session.ts";

// ---- creating ----------------------------------------------------------------------------------------------------

/**
 * @param parent the row of `change.parent`, when it has one that is stored.
 * @param forerunner the session it takes over from: who paid for that one pays for it.
 */
export function createSession(
  change: CreateSession,
  now: number,
  parent?: Session,
  forerunner?: Session,
): Session {
  const { sessionId, budget, shared, persistence, resumedFrom } = change;
  const above = (forerunner ?? parent)?.payers ?? [];
  const deadlineAt = Math.min(change.deadlineAt ?? Infinity, forerunner?.deadlineAt ?? Infinity);
  const placement = ownedBy(change.placement?.owner ?? parent?.placement?.owner, change.placement);
  return {
    sessionId,
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
    depth: change.depth ?? 0,
    children: 0,
    payers: budget === undefined ? above : [sessionId, ...above],
    ...(change.parent === undefined ? {} : { parent: change.parent }),
    ...(budget === undefined ? {} : { account: openAccount(budget) }),
    ...(shared === undefined ? {} : { shared }),
    ...(placement === undefined ? {} : { placement }),
    ...(persistence === undefined ? {} : { persistence }),
    ...(deadlineAt === Infinity ? {} : { deadlineAt }),
    ...(resumedFrom === undefined ? {} : { resumedFrom }),
    createdAt: now,
    updatedAt: now,
  };
}

/** What is looked up for a session that is made under a claim. */
export interface CreationLookups {
  /** The session of that claim. */
  asker(sessionId: string): { readonly session: Session; readonly claim: Claim } | undefined;
  /** Whether that one, which is there, remembers this id as one of a signal it took. */
  hasSeen(sessionId: string, id: string): boolean;
}

/**
 * What a session would not be created for, or `undefined`: a claim that is not held (ST49), a first batch that does not hold (ST25).
 * Asked before anything of it is stored.
 */
export function refuseCreation(
  change: CreateSession,
  now: number,
  lookups: CreationLookups,
): ChangeResult | undefined {
  const { claimFor, under } = change;
  if (under !== undefined) {
    const asker = lookups.asker(under.sessionId);
    if (asker === undefined || !isHeldAs(asker.session, asker.claim, under)) return { status: "fenced" };
    if (lookups.hasSeen(under.sessionId, madeMark(change.sessionId, under))) return { status: "duplicate" };
  }
  const token = claimFor === undefined ? NO_CLAIM.token : NO_CLAIM.token + 1;
  const first = firstBatch(change, token);
  if (first === undefined) return undefined;
  return refuseBatch(createSession(change, now), { ...NO_CLAIM, ...claimFor, token }, first, NOTHING_YET);
}

/** What the session of a claim remembers of one that was made under it, as if it were a signal's id (ST49). */
export function madeMark(sessionId: string, { token }: HeldAs): string {
  return `made:${token}:${sessionId}`;
}

/** What there is to look up for a session that does not exist yet. */
const NOTHING_YET: BatchLookups = { holdsRecords: () => false, isPending: () => false };

/** Why a session cannot be imported, or `undefined` when it can. */
export function findImportProblem({
  sessionId: asked,
  session,
  records,
  entries,
  holds,
}: ImportSession): string | undefined {
  const { sessionId, nextSeq, entryCount, checkpointSeq, account, payers } = session;
  if (sessionId !== asked) return `is the row of ${sessionId}, to be stored as ${asked}`;
  if (records.length !== nextSeq) return `has ${records.length} records and says it has ${nextSeq}`;
  if (entries.length !== entryCount) return `has ${entries.length} entries and says it has ${entryCount}`;
  const problem = findRecordProblem(
    { ...session, nextSeq: 0, entryCount: 0 },
    { firstSeq: 0, records, entries },
  );
  if (problem !== undefined) return problem;
  const last = records.findLast(({ type }) => type === "checkpoint")?.seq;
  if (last !== checkpointSeq) return `says its last checkpoint is at ${checkpointSeq}, and it is at ${last}`;
  const held = sumOf(holds ?? []);
  const reserved = account?.reserved ?? NO_AMOUNT;
  if (held.tokens !== reserved.tokens || held.costMicroUsd !== reserved.costMicroUsd)
    return "has something else reserved than what comes along as held for its tasks";
  const overcharged = account === undefined ? undefined : findAccountProblem(account);
  if (overcharged !== undefined) return overcharged;
  if (payers.includes(sessionId) !== (account !== undefined))
    return account === undefined
      ? "pays for itself and has no budget"
      : "has a budget and does not pay for itself";
  return session.inbox === 0 ? undefined : "has an inbox, and signals are not imported";
}

/** The batch that a session is created with, under the claim it is created with (ST25). */
export function firstBatch({ sessionId, first }: CreateSession, token: number): CommitBatch | undefined {
  if (first === undefined) return undefined;
  return { type: "commit_batch", sessionId, token, firstSeq: 0, consumed: [], ...first };
}

/** What is said of a session that nothing changes any more, here (ST15, ST45). */
function findFinal(session: Session): ChangeResult | undefined {
  if (isEnded(session.status)) return { status: "ended", sessionStatus: session.status };
  return movedAway(session);
}

// ---- arrivals ----------------------------------------------------------------------------------------------------

/** What a session remembers of a dedup key: it counts for signals of one name (ST9). */
export function dedupMark(name: string, dedupKey: string): string {
  return JSON.stringify([name, dedupKey]);
}

/** The name and the key of a mark. */
export function readDedupMark(mark: string): readonly [name: string, dedupKey: string] {
  return JSON.parse(mark) as [string, string];
}

/** What the adapter looked up for a signal. */
export interface SignalFacts {
  /** Whether the session has seen this id, or this dedup key with this name, before, consumed or not. */
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
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  if (facts.seen) return { result: { status: "duplicate" } };
  // What sessions tell each other is bounded by how many there are, and an end that is not heard would be waited for for ever.
  // What is waited for is consumed at once, so a full inbox does not lock it out.
  const awaited = isAwaited(session, signal.name);
  const isConsumedAtOnce = awaited && isAnsweredBy(session.waits, signal.name);
  if (facts.pending >= LIMITS.signalsPending && !isReservedName(signal.name) && !isConsumedAtOnce) {
    const reason = `session ${session.sessionId} has ${facts.pending} unconsumed signals, the limit "signalsPending"`;
    return { result: { status: "invalid", reason } };
  }
  const inbox = session.inbox + 1;
  return {
    result: { status: "stored", order: inbox, awaited },
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
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  const inbox = session.inbox + 1;
  const why = whyOf(request);
  if (request.mode === "hard") {
    const cancel: CancelRequest = { ...why, ...whyOf(session.cancel), mode: "hard", deadlineAt: now };
    return changed({ ...endSession(session, now), inbox, cancel });
  }
  if (session.cancel !== undefined) return { result: { status: "requested", sessionStatus: session.status } };
  const cancel: CancelRequest = { mode: "graceful", deadlineAt: now + request.graceMs, ...why };
  const { wakeAt: _wakeAt, pauseReason: _pauseReason, exhausted: _exhausted, ...rest } = session;
  return changed({ ...rest, status: "cancelling", waits: [], inbox, cancel, updatedAt: now });
}

function changed(session: Session): CancelDecision {
  return { result: { status: "requested", sessionStatus: session.status }, session };
}

/** Who is cancelled for a reason and then at once is cancelled for that reason. */
function whyOf({ reason, cause, exhausted }: Why = {}): Why {
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(cause === undefined ? {} : { cause }),
    ...(exhausted === undefined ? {} : { exhausted }),
  };
}

type Why = Pick<CancelRequest, "reason" | "cause" | "exhausted">;

/**
 * The row of a session whose time is up, or `undefined` when it is not: after a graceful cancel it ends (ST17), at its own
 * deadline it is cancelled gracefully (ST31). Listeners hear of it.
 */
export function actOverdue(session: Session, now: number): Session | undefined {
  if (overdueAt(session) > now) return undefined;
  if (session.cancel !== undefined) return endSession(session, now);
  const { sessionId } = session;
  const graceMs = LIMITS.cancelGraceMs;
  return decideCancel(
    session,
    { type: "request_cancel", sessionId, mode: "graceful", graceMs, cause: "deadline" },
    now,
  ).session;
}

function endSession(session: Session, now: number): Session {
  const { wakeAt: _wakeAt, pauseReason: _pauseReason, exhausted: _exhausted, ...rest } = session;
  return { ...rest, status: "cancelled", waits: [], endedAt: now, updatedAt: now };
}

// ---- pausing -----------------------------------------------------------------------------------------------------

/** A session that ends or is being cancelled is not paused: a deadline is running. Paused twice is paused once. */
export function decidePause(session: Session, now: number): CancelDecision {
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  if (session.cancel !== undefined || session.status === "paused")
    return { result: { status: "requested", sessionStatus: session.status } };
  const { wakeAt: _wakeAt, ...rest } = session;
  const inbox = session.inbox + 1;
  return changed({ ...rest, status: "paused", pauseReason: "by_user", inbox, updatedAt: now });
}

/**
 * It is due, and its agent goes on: to its end, when it was being cancelled, as it then stands on nothing (storage-rules-3). Otherwise what it stood
 * on is kept until its agent stands again: it would be answered while it is paused, and so it is now.
 */
export function decideResume(session: Session, now: number): CancelDecision {
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  if (session.status !== "paused") return { result: { status: "requested", sessionStatus: session.status } };
  const {
    wakeAt: _wakeAt,
    pauseReason: _pauseReason,
    exhausted: _exhausted,
    error: _error,
    ...rest
  } = session;
  const stands =
    session.cancel === undefined
      ? ({ status: "working" } as const)
      : ({ status: "cancelling", waits: [] } as const);
  return changed({ ...rest, ...stands, inbox: session.inbox + 1, updatedAt: now });
}

// ---- budgets -----------------------------------------------------------------------------------------------------

/**
 * The account with its limits replaced, and released of what lost attempts were charged where the change says so. Those below it
 * that are paused for want of a budget, and it itself, are then resumed by the caller, each by `decideResume`. An end closes no
 * account that others still pay from: only its owner is final.
 *
 * @param paysBelow whether a session below it goes on; asked only of one that has ended.
 */
export function decideBudget(
  session: Session,
  change: SetBudget,
  paysBelow: () => boolean,
): { readonly result: ChangeResult; readonly account?: Account } {
  const moved = movedAway(session);
  if (moved !== undefined) return { result: moved };
  const { sessionId, status, account, payers } = session;
  if (isEnded(status) && (account === undefined || !paysBelow()))
    return { result: { status: "ended", sessionStatus: status } };
  if (account === undefined) {
    const payer = payers.find((one) => one !== sessionId);
    const whose =
      payer === undefined ? "there is none to change" : `session ${payer} pays for it: change that one's`;
    return { result: invalid(session, `was started without a budget, so ${whose}`) };
  }
  const raised = raise(account, change.limits);
  return {
    result: { status: "requested", sessionStatus: status },
    account: change.releaseLost === true ? releaseLost(raised) : raised,
  };
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
  if (batch.token !== claim.token || claim.token === NO_CLAIM.token) return { status: "fenced" }; // storage-rules-1.
  if (isResent(session, batch, lookups)) return { status: "committed", inbox: session.inbox }; // storage-rules-2.
  if (isEnded(session.status)) return invalid(session, `has ended as ${session.status}`);
  if (claim.owner === undefined || session.move !== undefined) return { status: "fenced" };
  const problem =
    findRecordProblem(session, batch) ??
    findSignalProblem(batch, lookups) ??
    findEffectProblem(batch.effects) ??
    findPatchProblem(session, batch.session);
  return problem === undefined ? undefined : invalid(session, problem);
}

function invalid(session: Session, problem: string): ChangeResult {
  return { status: "invalid", reason: `session ${session.sessionId} ${problem}` };
}

/**
 * A batch without records proves nothing by being there; sent again at the journal's end it does the same again. One that consumes, of a
 * session of which only the row is stored (K11), is known by that: nobody but its claimer takes what the claimer was given.
 */
function isResent(session: Session, batch: CommitBatch, lookups: BatchLookups): boolean {
  const { firstSeq, records, consumed } = batch;
  if (records.length === 0 && session.persistence !== undefined && !isEnded(session.status))
    // An end drops what is pending.
    return consumed.length > 0 && !consumed.some((signalId) => lookups.isPending(signalId));
  if (firstSeq >= session.nextSeq || records.length === 0) return false;
  return firstSeq + records.length <= session.nextSeq && lookups.holdsRecords(batch);
}

function findRecordProblem(
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

function findEffectProblem(effects: readonly Effect[] = []): string | undefined {
  for (const effect of effects) {
    if (effect.type !== "create_session") continue;
    const { sessionId, claimFor, first, under } = effect;
    // Whose token would nobody ever hear of?
    if (claimFor !== undefined || first !== undefined)
      return `cannot claim ${sessionId} in the batch that makes it`;
    if (under !== undefined) return `cannot make ${sessionId} under another claim than its own`;
  }
  return undefined;
}

function findPatchProblem(session: Session, patch: SessionPatch | undefined): string | undefined {
  if (patch === undefined) return undefined;
  const status = statusAfter(session, patch);
  const isRefused = session.cancel !== undefined && status === "completed"; // storage-rules-3.
  if (isRefused || !mayBecome(session.status, status)) {
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
      return findPauseProblem(session, patch);
    default:
      return undefined;
  }
}

function findPauseProblem(session: Session, patch: SessionPatch): string | undefined {
  const reason = patch.pauseReason ?? session.pauseReason;
  if (reason === undefined) return "cannot pause without a reason";
  const exhausted = patch.exhausted ?? session.exhausted;
  return reason === "budget_exceeded" && exhausted === undefined
    ? "cannot pause for want of a budget without naming the limit"
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
  for (const effect of batch.effects ?? []) if (isBirth(effect, session.sessionId)) next.children++;
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
  const standsOnNothing = isEnded(status) || (status !== patch.status && status !== "paused"); // storage-rules-4, storage-rules-5.
  if (patch.waits !== undefined || standsOnNothing) {
    next.waits = standsOnNothing ? [] : (patch.waits ?? []);
    if (next.wakeAt !== undefined) delete next.wakeAt;
  }
  if (patch.wakeAt !== undefined && !standsOnNothing) next.wakeAt = patch.wakeAt;
  if (status !== "paused") {
    if (next.pauseReason !== undefined) delete next.pauseReason;
    if (next.exhausted !== undefined) delete next.exhausted;
  } else if (patch.pauseReason !== undefined) {
    next.pauseReason = patch.pauseReason;
    if (patch.exhausted !== undefined) next.exhausted = patch.exhausted;
    if (patch.pauseReason !== "budget_exceeded" && next.exhausted !== undefined) delete next.exhausted;
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

/** storage-rules-4, storage-rules-5. What the session becomes when a batch asks for `patch.status`. */
function statusAfter(session: Pick<Session, "status" | "cancel">, patch: SessionPatch): SessionStatus {
  if (session.status === "paused" && !isEnded(patch.status)) return "paused";
  return session.cancel !== undefined && hasNotHeard(patch) ? "cancelling" : patch.status;
}

/** storage-rules-4. Whether this is what nobody says who has heard of a cancel: to spend more, or to mend a mistake, is nothing to wait for then. */
function hasNotHeard({ status, pauseReason }: SessionPatch): boolean {
  return GOES_ON.has(status) || pauseReason === "budget_exceeded" || pauseReason === "agent_fault";
}

/** Whether an effect makes a child of this session. */
function isBirth(effect: Effect, sessionId: string): boolean {
  return effect.type === "create_session" && effect.parent?.sessionId === sessionId;
}

const GOES_ON: ReadonlySet<SessionStatus> = new Set(["submitted", "working", "waiting", "input_required"]);

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

// ---- schedules ---------------------------------------------------------------------------------------------------

/**
 * A schedule as it is stored when it is put in place of one of its id (ST34). Where it is in its times is known here alone: whoever
 * puts it may have read it before it fired.
 */
export function replaceSchedule(known: Schedule | undefined, put: Schedule): Schedule {
  if (known === undefined) return put;
  const { lastAt = put.lastAt, unread = put.unread, createdAt } = known;
  const isSame = known.cron === put.cron && known.timeZone === put.timeZone;
  return {
    ...put,
    nextAt: isSame ? known.nextAt : put.nextAt,
    ...(lastAt === undefined ? {} : { lastAt }),
    ...(unread === undefined ? {} : { unread }),
    createdAt,
  };
}

/** Whether a schedule fires, and as what it is stored then (ST34). Its effect is the caller's to apply. */
export function decideFire(
  schedule: Schedule | undefined,
  { scheduleId, dueAt: firesAt, nextAt, effect }: FireSchedule,
): { readonly result: ChangeResult; readonly schedule?: Schedule } {
  if (schedule === undefined) return { result: { status: "not_found" } };
  if (schedule.nextAt !== firesAt) return { result: { status: "fenced" } };
  const problem = findEffectProblem([effect]);
  if (problem !== undefined)
    return { result: { status: "invalid", reason: `schedule ${scheduleId} ${problem}` } };
  return { result: { status: "done" }, schedule: { ...schedule, nextAt, lastAt: firesAt } };
}
