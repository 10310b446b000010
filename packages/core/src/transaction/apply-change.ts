// `applyChange`: one change and everything that follows from it, in the transaction of a storage.
//
//   change ─► text rules ─► rules of its subject ─► writes to its own session ─► `cascade.ts`
//
// Every storage applies changes by this function, over its own `RowPort`. A change therefore has the same
// effect in memory, SQLite, PostgreSQL and the simulator.
//
// Everything that can refuse a change is asked before the change's first write, so a refusal needs no
// savepoint.

import { defined } from "../defined.ts";
import { AUDIT_START, findAuditProblem, nextAuditRow } from "../session/audit/audit-chain.ts";
import { decideBudget } from "../rules/budgets.ts";
import type {
  Audited,
  Change,
  ChangeResult,
  CommitBatch,
  CreateSession,
  FireSchedule,
  ImportedSession,
  ReleaseClaim,
  SendSignal,
  SetBudget,
  SetTitle,
} from "../session/changes.ts";
import type { PutSchedule, Schedule } from "../session/schedules.ts";
import { decideFire, replaceSchedule } from "../rules/firing.ts";
import { isEnded, type Session } from "../session/session.ts";
import { overdueAt } from "../rules/due.ts";
import type { PutDocument } from "../session/stored-documents.ts";
import { titleFrom, titleLine } from "../title.ts";
import { applyBatch, refuseBatch } from "../rules/batches.ts";
import { decideRelease, NO_CLAIM, releasedClaim } from "../rules/claims.ts";
import {
  createSession,
  findImportProblem,
  findTreeProblem,
  firstBatch,
  madeMark,
  refuseCreation,
} from "../rules/creation.ts";
import { detached, missingAnswers } from "../rules/detachment.ts";
import { deleteSession, removeEnded } from "./deletion.ts";
import { trimAudit } from "./trim-audit.ts";
import { decidePut, decideRemove } from "../rules/documents.ts";
import { keepEndedRun } from "./ended-runs.ts";
import { actOverdue, decideCancel, decidePause, type RowDecision } from "../rules/interruptions.ts";
import { decideBeginMove, decideEndMove, type Relatives } from "../rules/moving.ts";
import { decideSignal, DUPLICATE } from "../rules/signals.ts";
import { activeSuccessor, childrenOf, paidBy } from "./successors.ts";
import {
  findBatchTextProblem,
  findCreationTextProblem,
  findDocumentTextProblem,
  findImportTextProblem,
  findScheduleTextProblem,
  findSignalTextProblem,
} from "./texts.ts";
import { applyEffect, follow, isAlone, replaceRow, resume } from "./cascade.ts";
import { accountsOf, charge, chargeAgain, endRunOf, paidPart, unspentFor } from "./charges.ts";
import type { RowPort } from "./row-port.ts";
import { sessionIn, type Transaction } from "./transaction.ts";

const DONE = { status: "done" } as const satisfies ChangeResult;
const NOT_FOUND: ChangeResult = { status: "not_found" };

/** @param now epoch milliseconds. */
export function applyChange(rows: RowPort, change: Change, now: number): ChangeResult {
  return applyTo(transactionOn(rows, now), change);
}

/**
 * Act on a session whose time is up. The end of a graceful cancel ends it (ST17), and its deadline cancels it
 * (ST31). It resumes when a window of its budget has rolled on (ST53).
 */
export function applyOverdue(rows: RowPort, sessionId: string, now: number): void {
  const tx = transactionOn(rows, now);
  const before = sessionIn(tx, sessionId);
  if (before === undefined || overdueAt(before) > now) return;
  const after = actOverdue(before, now);
  if (after === undefined) resume(tx, sessionId);
  else replaceRow(tx, before, after);
}

function transactionOn(rows: RowPort, now: number): Transaction {
  const tx: Transaction = { rows, now, apply: (change, predecessor) => applyTo(tx, change, predecessor) };
  return tx;
}

function applyTo(tx: Transaction, change: Change, predecessor?: Session): ChangeResult {
  const { rows, now } = tx;
  switch (change.type) {
    case "create_session":
      return create(tx, change, predecessor);
    case "import_session":
      return importSessions(tx, [change]);
    case "import_tree": {
      const problem = findTreeProblem(change);
      return problem === undefined
        ? importSessions(tx, change.sessions)
        : { status: "invalid", reason: `the tree of session ${change.sessionId} ${problem}` };
    }
    case "send_signal":
      return send(tx, change);
    case "commit_batch":
      return commit(tx, change);
    case "release_claim":
      return release(tx, change);
    case "request_cancel":
      return decide(tx, change.sessionId, (session) => decideCancel(session, change, now));
    case "pause_session":
      return decide(tx, change.sessionId, (session) => decidePause(session, now));
    case "resume_session":
      return resume(tx, change.sessionId);
    case "set_budget":
      return setBudget(tx, change);
    case "set_title":
      return setTitle(tx, change);
    case "put_schedule":
      return putSchedule(tx, change);
    case "remove_schedule":
      if (rows.ledger.schedule(change.scheduleId) === undefined) return NOT_FOUND;
      rows.ledger.removeSchedule(change.scheduleId);
      return DONE;
    case "fire_schedule":
      return fire(tx, change);
    case "delete_session":
      return deleteSession(rows, change);
    case "remove_ended":
      return removeEnded(rows, change);
    case "trim_audit":
      return trimAudit(rows.ledger, change, now);
    case "begin_move":
      return decide(tx, change.sessionId, (session) =>
        decideBeginMove(session, change, relativesOf(tx, session), now),
      );
    case "end_move":
      return decide(tx, change.sessionId, (session) => decideEndMove(session, change, now));
    case "put_document":
      return putDocument(tx, change);
    case "remove_document": {
      const result = decideRemove(rows.ledger.document(change.collection, change.id), change);
      if (result.status === "done") rows.ledger.removeDocument(change.collection, change.id);
      return result;
    }
    case "audited":
      return applyAudited(tx, change);
  }
}

// ---- sessions ----------------------------------------------------------------------------------------------------

function create(tx: Transaction, change: CreateSession, predecessor: Session | undefined): ChangeResult {
  const { rows, now } = tx;
  const { sessionId, claimFor, parent, under } = change;
  const problem = findCreationTextProblem(change);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  if (rows.exists(sessionId)) return { status: "exists" };
  const above = parent === undefined ? undefined : sessionIn(tx, parent.sessionId);
  const before = createSession(change, now, above, predecessor);
  const refusal = refuseCreation(change, before, {
    asker: (id) => rows.find(id),
    hasSeen: (id, signalId) => rows.hasSeen(id, { ids: [signalId], dedupKeys: [] }),
  });
  if (refusal !== undefined) return refusal;

  const first = firstBatch(change, NO_CLAIM.token);
  const after = first === undefined ? before : applyBatch(before, first, now);
  const { records = [], entries = [] } = first ?? {};
  const { token } = rows.insert({
    session: after,
    records,
    entries: entries.map((entry) => ({ ...entry, createdAt: now })),
    committedAt: now,
    ...(claimFor === undefined ? {} : { claimFor }),
    isImported: false,
  });
  // mutant: queued-task-made-twice
  if (under !== undefined)
    rows.update(under.sessionId, { seen: { ids: [madeMark(sessionId, under)], dedupKeys: [] } }); // ST49.
  const created = claimFor === undefined ? CREATED : { ...CREATED, token };
  if (first === undefined || isAlone(before, after, first)) return created;
  const admissions = follow(tx, before, after, first);
  endRunOf(tx, after);
  return { ...created, ...paidPart(tx, after, admissions) };
}

const CREATED = { status: "created" } as const;

/** ST32, ST52. Each session after its parent. */
function importSessions(tx: Transaction, sessions: readonly ImportedSession[]): ChangeResult {
  const { rows } = tx;
  const ids = new Set(sessions.map(({ sessionId }) => sessionId));
  for (const imported of sessions) {
    const { sessionId } = imported;
    if (rows.exists(sessionId)) return { status: "exists" };
    const problem = findImportProblem(imported) ?? findImportTextProblem(imported);
    if (problem !== undefined) return { status: "invalid", reason: `session ${sessionId} ${problem}` };
  }
  const isHere = (id: string): boolean => ids.has(id);
  for (const { session, records, entries } of sessions) {
    const row = titled(detached(session, isHere), titleFrom(session));
    rows.insert({ session: row, records, entries, committedAt: session.updatedAt, isImported: true });
  }
  for (const imported of sessions) {
    const { sessionId, signals = [], holds = [], seen } = imported;
    for (const signal of signals) send(tx, { type: "send_signal", sessionId, ...signal });
    for (const { task, amount } of holds) rows.update(sessionId, { hold: { task, amount } });
    if (seen !== undefined) rows.update(sessionId, { seen });
    // mutant: missing-answers-unsent
    for (const signal of missingAnswers(imported, isHere)) send(tx, signal);
  }
  return CREATED;
}

function send(tx: Transaction, signal: SendSignal): ChangeResult {
  const { rows, now } = tx;
  const { sessionId, signalId, name, payload, dedupKey, spends } = signal;
  const stored = rows.find(sessionId);
  if (stored === undefined) return NOT_FOUND;
  const problem = findSignalTextProblem(signal);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  const seen = { ids: [signalId], dedupKeys: dedupKey === undefined ? [] : [[name, dedupKey] as const] };
  const before = stored.session;
  const { result, session } = decideSignal(
    before,
    signal,
    { isSeen: () => rows.hasSeen(sessionId, seen), pending: stored.pending.size },
    now,
  );
  const isPaying = spends !== undefined && before.payers.length > 0;
  const known = isPaying ? () => ({ ...DUPLICATE, unspent: unspentFor(rows, before, now) }) : () => DUPLICATE;
  if (result.status === "duplicate") return known();
  if (result.status !== "stored" || session === undefined) return result;
  const added = { signalId, name, payload, order: result.order, sentAt: now };
  if (!rows.update(sessionId, { session, signal: added, seen })) return known();
  rows.announce(sessionId, result.awaited);
  if (!isPaying) return result;
  charge(tx, session, [{ type: "spend", used: spends }]); // ST56.
  return { ...result, unspent: unspentFor(rows, session, now) };
}

function commit(tx: Transaction, batch: CommitBatch): ChangeResult {
  const { rows, now } = tx;
  const { sessionId } = batch;
  const stored = rows.find(sessionId);
  if (stored === undefined) return NOT_FOUND;
  const { session: before, claim, pending } = stored;
  const refusal = refuseBatch(before, claim, batch, {
    holdsRecords: (asked) => rows.holdsRecords(asked),
    isPending: (signalId) => pending.has(signalId),
  });
  if (refusal?.status === "committed") return answerAgain(tx, before, batch, refusal);
  if (refusal !== undefined) return refusal;
  const problem = findBatchTextProblem(batch);
  if (problem !== undefined) return { status: "invalid", reason: `session ${sessionId}: ${problem}` };

  const after = applyBatch(before, batch, now);
  rows.commit(batch, after, now);
  if (isEnded(after.status)) keepEndedRun(rows.ledger, batch, after, now);
  const committed = { status: "committed", inbox: after.inbox } as const;
  if (isAlone(before, after, batch)) return committed;
  const admissions = follow(tx, before, after, batch);
  endRunOf(tx, after);
  const { inbox } = sessionIn(tx, sessionId) ?? after;
  return { ...committed, inbox, ...paidPart(tx, after, admissions) };
}

/** ST3. The answer to a batch that is committed already. */
function answerAgain(
  tx: Transaction,
  session: Session,
  { charges }: CommitBatch,
  committed: ChangeResult & { readonly status: "committed" },
): ChangeResult {
  if (charges === undefined && session.payers.length === 0) return committed;
  const admissions = charges === undefined ? undefined : chargeAgain(tx.rows, session, charges);
  return { ...committed, ...paidPart(tx, session, admissions) };
}

function release({ rows, now }: Transaction, change: ReleaseClaim): ChangeResult {
  const { sessionId } = change;
  const stored = rows.find(sessionId);
  if (stored === undefined) return NOT_FOUND;
  const { session, claim } = stored;
  const status = decideRelease(session, claim, change);
  if (status !== "released") return { status };
  rows.update(sessionId, { claim: releasedClaim(claim, change.isLost) });
  keepEndedRun(rows.ledger, change, session, now);
  return { status };
}

function decide(tx: Transaction, sessionId: string, rule: (session: Session) => RowDecision): ChangeResult {
  const before = sessionIn(tx, sessionId);
  if (before === undefined) return NOT_FOUND;
  const { result, session } = rule(before);
  if (session !== undefined) replaceRow(tx, before, session);
  return result;
}

function setBudget(tx: Transaction, change: SetBudget): ChangeResult {
  const { rows, now } = tx;
  const { sessionId } = change;
  const session = sessionIn(tx, sessionId);
  if (session === undefined) return NOT_FOUND;
  const { result, account } = decideBudget(session, change, now, () =>
    paidBy(rows, session).some(({ status }) => !isEnded(status)),
  );
  if (account === undefined) return result;
  if (!isEnded(session.status)) rows.update(sessionId, { session: { ...session, updatedAt: now } });
  rows.update(sessionId, { account });
  for (const exhausted of rows.exhaustedBy(sessionId)) {
    const paused = sessionIn(tx, exhausted);
    if (paused !== undefined && accountsOf(rows, paused).has(sessionId)) resume(tx, exhausted);
  }
  return result;
}

/** ST57. A title is no part of the work, so an ended session gets a new one as well. */
function setTitle({ rows }: Transaction, { sessionId, title }: SetTitle): ChangeResult {
  const session = rows.find(sessionId)?.session;
  if (session === undefined) return NOT_FOUND;
  if (session.move !== undefined) return { status: "moved", to: session.move.to };
  rows.update(sessionId, { session: titled(session, titleLine(title ?? "")) });
  return DONE;
}

function titled(session: Session, title: string | undefined): Session {
  if (title === session.title) return session;
  const { title: _, ...untitled } = session;
  return title === undefined ? untitled : { ...session, title };
}

/** The stored relatives of a session that is about to move. */
function relativesOf({ rows }: Transaction, session: Session): Relatives {
  const { sessionId, parent, account } = session;
  const above = parent === undefined ? undefined : rows.find(parent.sessionId)?.session;
  const below = childrenOf(rows, sessionId);
  return {
    family: above === undefined ? below : [above, ...below],
    // The account moves with the session, and would be in two places (moving-3).
    // mutant: payer-moves
    paid: account === undefined ? [] : paidBy(rows, session),
  };
}

// ---- schedules, documents, audit
// ---------------------------------------------------------------------------------

function putSchedule({ rows: { ledger } }: Transaction, { schedule: put }: PutSchedule): ChangeResult {
  const schedule = replaceSchedule(ledger.schedule(put.scheduleId), put);
  const problem = findScheduleTextProblem(schedule);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  ledger.putSchedule(schedule);
  return { ...DONE, schedule };
}

function fire(tx: Transaction, change: FireSchedule): ChangeResult {
  const { ledger } = tx.rows;
  const { scheduleId, effect } = change;
  const { result, schedule } = decideFire(ledger.schedule(scheduleId), change);
  if (schedule === undefined) return result;
  const isSignal = effect.type === "send_signal";
  const isSkipped = isSignal && isUnread(tx, effect.sessionId, schedule);
  ledger.putSchedule(isSignal && !isSkipped ? { ...schedule, unread: effect.signalId } : schedule);
  if (!isSkipped) applyEffect(tx, { owner: schedule.owner }, effect);
  return result;
}

/**
 * Whether the schedule's last signal is still unread by the session, or by the successor that received it.
 */
function isUnread({ rows }: Transaction, sessionId: string, { unread }: Schedule): boolean {
  // mutant: successor-unread-ignored
  const reader = unread === undefined ? undefined : activeSuccessor(rows, sessionId);
  return reader !== undefined && rows.find(reader.sessionId)?.pending.has(unread!) === true;
}

function putDocument({ rows: { ledger }, now }: Transaction, change: PutDocument): ChangeResult {
  const { collection, id } = change;
  const { result, document } = decidePut(ledger.document(collection, id), change, now);
  if (document === undefined) return result;
  const problem = findDocumentTextProblem(document);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  ledger.putDocument(collection, document);
  return result;
}

/** The row of a deletion says how many sessions are gone, which only the transaction knows. */
function removedIn(result: ChangeResult): string | undefined {
  return result.status === "deleted" ? JSON.stringify({ sessions: result.sessions }) : undefined;
}

/** ST42. Apply a change and append a row about it to the audit. */
function applyAudited(tx: Transaction, { change, audit }: Audited): ChangeResult {
  const problem = findAuditProblem(audit);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  const result = change === undefined ? DONE : tx.apply(change);
  if (result.status === "deleted" && result.sessions === 0) return result; // ST58. Nothing has happened.
  const outcome = change === undefined ? (audit.outcome ?? DONE.status) : result.status;
  const { ledger } = tx.rows;
  const details = audit.details ?? removedIn(result);
  ledger.appendAudit(
    nextAuditRow(
      ledger.lastAudit() ?? AUDIT_START,
      { ...audit, ...defined({ details }) },
      { outcome, at: tx.now, hash: ledger.hash },
    ),
  );
  return result;
}
