// A change and everything that follows from it, in one transaction (storage-rules-6). The same for every storage: an adapter that can do
// one thing to one session gets here what that means for others.
//
//   change ─► what it is for its own session ─► its charges ─► its effects ─► what is still held, at an end ─► consequences
//
// Each effect and each consequence is a change of its own, with all that follows from it, before the next one.
//
//   cascade-1. Nothing here is refused: what can be refused is, by the rules, before the first write. An effect or a
//       consequence that finds its target ended or gone does nothing (ST26).
//   cascade-2. A row is looked up anew after anything else was applied: what came in between may have changed it.
//   cascade-3. What concerns only the session itself asks for nothing more: a plain batch costs one comparison.
//   cascade-4. Families are as their rows say, and rows are brought in by users: whatever they name, each is gone
//       through once.
//
// Q… are promises of `consequences.ts`. It knows no claims, journals or entries, and no time but the one it is told.

import { positionIn } from "../ids.ts";
import { repliedRequest, REQUEST_PREFIX, requestIn } from "../journal/signal-names.ts";
import type { AuditRow } from "./audit.ts";
import type { Hash } from "../hash.ts";
import type { StoredDocument } from "./stored-documents.ts";
import type { Schedule } from "./schedules.ts";
import type {
  Audited,
  Change,
  ChangeResult,
  CommitBatch,
  CreateSession,
  DeleteSession,
  Effect,
  FireSchedule,
  ImportSession,
  ReleaseClaim,
  SeenSignals,
  SendSignal,
} from "./changes.ts";
import {
  admitAgain,
  applyCharges,
  remainingOf,
  settleAll,
  type Account,
  type Admission,
  type Charge,
  type Hold,
} from "./budget.ts";
import type { Amount, Remaining } from "../journal/amounts.ts";
import { AUDIT_START, findAuditProblem, nextAuditRow } from "./audit-chain.ts";
import {
  becameLow,
  consequencesOf,
  refuseRequest,
  tellAgain,
  tellEnd,
  tellLow,
  tellTaken,
  type CancelChildren,
} from "./consequences.ts";
import type { Claim } from "./claims.ts";
import { decideDeletion } from "./deletion.ts";
import { decidePut, decideRemove } from "./documents.ts";
import { keepClaimedRun, keepEndedRun, keepReleasedRun, removeEndedRuns } from "./ended-runs.ts";
import { childrenOf, goingOn, isForHeir, lastHeir, paidBy } from "./heirs.ts";
import { decideBeginMove, decideEndMove } from "./moving.ts";
import { isChildOf, isEnded, ownedBy, type Session, type SessionStatus } from "./session.ts";
import {
  actOverdue,
  decideBudget,
  decideCancel,
  decideFire,
  decidePause,
  decideResume,
  madeMark,
  replaceSchedule,
  type CancelDecision,
} from "./storage-rules.ts";

/** What an adapter does inside the transaction it began. Every write is seen by the reads after it. */
export interface CascadeDoor {
  session(sessionId: string): Session | undefined;
  /** The newest claim of a session that is stored. */
  claimOf(sessionId: string): Claim;
  /** Those that name it as their parent, in the order they were created. */
  children(sessionId: string): readonly ChildRow[];
  /** Sessions that are paused because this one's account is exhausted, in the order they were created. */
  exhaustedBy(payer: string): readonly string[];
  holds(sessionId: string): readonly Hold[];
  /** What is held for one task of it. A commit asks for the tasks it charges only, however many are open. */
  held(sessionId: string, task: number): Amount | undefined;
  schedule(scheduleId: string): Schedule | undefined;
  /** Whether a session that is there has this signal and nobody has read it. */
  isPending(sessionId: string, signalId: string): boolean;
  document(collection: string, id: string): StoredDocument | undefined;
  /** The newest; `undefined` before the first. */
  lastAudit(): Pick<AuditRow, "seq" | "hash"> | undefined;
  readonly hash: Hash;

  /** Each of these does what its change says to the session it names, and nothing that follows from it. */
  create(change: CreateSession, now: number, forerunner: Session | undefined): Applied;
  import(change: ImportSession): ChangeResult;
  send(change: SendSignal, now: number): ChangeResult;
  commitBatch(change: CommitBatch, now: number): Applied;
  release(change: ReleaseClaim): ChangeResult;

  /** Store a row in place of the one before it, all but its account. With an end its pending signals are dropped. */
  replace(session: Session): void;
  setAccount(sessionId: string, account: Account): void;
  /** What it is to take for duplicates from now on. */
  addSeen(sessionId: string, seen: SeenSignals): void;
  /** `undefined` when nothing is held any more. */
  setHold(sessionId: string, task: number, amount: Amount | undefined): void;
  putSchedule(schedule: Schedule): ChangeResult;
  removeSchedule(scheduleId: string): void;
  /** Everything of a session that is its own: row, account, holds, claim, journal, entries, signals. */
  remove(sessionId: string): void;
  /** Answers why it cannot be kept as it is, or nothing. */
  putDocument(collection: string, document: StoredDocument): ChangeResult | undefined;
  removeDocument(collection: string, id: string): void;
  appendAudit(row: AuditRow): void;
  /** Listeners hear of it once the transaction is committed. `send` announces what it stores by itself. */
  announce(sessionId: string, awaited: boolean): void;
}

export interface ChildRow {
  readonly sessionId: string;
  readonly status: SessionStatus;
  readonly onEnd: "cancel" | "wait" | "leave";
  readonly owner: string | undefined;
}

/** What became of a change, and the rows before and after when it was applied. */
export interface Applied {
  readonly result: ChangeResult;
  readonly rows?: { readonly before: Session; readonly after: Session };
}

/** Apply a change with all that follows. */
export function applyChange(door: CascadeDoor, change: Change, now: number): ChangeResult {
  switch (change.type) {
    case "create_session":
      return create(door, change, now);
    case "import_session":
      return importSession(door, change, now);
    case "send_signal":
      return door.send(change, now);
    case "commit_batch":
      return commitBatch(door, change, now);
    case "release_claim":
      return keepReleasedRun(door, change, door.release(change), now);
    case "request_cancel":
      return decide(door, change.sessionId, now, (session) => decideCancel(session, change, now));
    case "pause_session":
      return decide(door, change.sessionId, now, (session) => decidePause(session, now));
    case "resume_session":
      return resume(door, change.sessionId, now);
    case "set_budget":
      return setBudget(door, change, now);
    case "put_schedule":
      return door.putSchedule(replaceSchedule(door.schedule(change.schedule.scheduleId), change.schedule));
    case "remove_schedule":
      if (door.schedule(change.scheduleId) === undefined) return NOT_FOUND;
      door.removeSchedule(change.scheduleId);
      return DONE;
    case "fire_schedule":
      return fire(door, change, now);
    case "delete_session":
      return deleteSession(door, change);
    case "begin_move":
      return decide(door, change.sessionId, now, (session) =>
        decideBeginMove(
          session,
          change,
          { family: familyOf(door, session), paid: paidFor(door, session) },
          now,
        ),
      );
    case "end_move":
      return decide(door, change.sessionId, now, (session) => decideEndMove(session, change, now));
    case "put_document": {
      const { result, document } = decidePut(door.document(change.collection, change.id), change, now);
      const refusal = document && door.putDocument(change.collection, document);
      return refusal ?? result;
    }
    case "remove_document": {
      const result = decideRemove(door.document(change.collection, change.id), change);
      if (result.status === "done") door.removeDocument(change.collection, change.id);
      return result;
    }
    case "audited":
      return applyAudited(door, change, now);
  }
}

/** Act on a session whose time is up, if it still is (ST17, ST31). */
export function applyOverdue(door: CascadeDoor, sessionId: string, now: number): void {
  const before = door.session(sessionId);
  const after = before === undefined ? undefined : actOverdue(before, now);
  if (before !== undefined && after !== undefined) replace(door, before, after, now);
}

// ---- one session -------------------------------------------------------------------------------------------------

function create(door: CascadeDoor, change: CreateSession, now: number, forerunner?: Session): ChangeResult {
  const { result, rows } = door.create(change, now, forerunner);
  const { sessionId, under } = change;
  if (rows !== undefined && under !== undefined)
    door.addSeen(under.sessionId, { ids: [madeMark(sessionId, under)], dedupKeys: [] }); // ST49.
  if (rows === undefined || change.first === undefined || isAlone(rows.before, rows.after, change.first))
    return result;
  const admissions = follow(door, rows.before, rows.after, now, change.first);
  return { ...result, ...paid(door, rows.after, admissions) };
}

function importSession(door: CascadeDoor, change: ImportSession, now: number): ChangeResult {
  const { sessionId, signals = [], holds = [], seen } = change;
  const result = door.import(change);
  if (result.status !== "created") return result;
  for (const signal of signals) door.send({ type: "send_signal", sessionId, ...signal }, now);
  for (const { task, amount } of holds) door.setHold(sessionId, task, amount);
  if (seen !== undefined) door.addSeen(sessionId, seen);
  const session = door.session(sessionId);
  if (session !== undefined) tellEndsOf(door, session, now);
  return result;
}

/** consequences-1. A family may be brought in one by one, each as it stood at another time: who ended meanwhile told it elsewhere. */
function tellEndsOf(door: CascadeDoor, session: Session, now: number): void {
  const below = childrenOf(door, session.sessionId).map((child) => door.session(child.sessionId));
  for (const one of [session, ...below])
    if (one !== undefined && isEnded(one.status))
      for (const signal of tellEnd(one)) tell(door, one, signal, now);
}

/** Its parent and its children, those that are here. */
function familyOf(
  door: CascadeDoor,
  { sessionId, parent }: Session,
): readonly Pick<Session, "sessionId" | "status">[] {
  const above = parent === undefined ? undefined : door.session(parent.sessionId);
  const below = childrenOf(door, sessionId);
  return above === undefined ? below : [above, ...below];
}

/** Those that a session's account pays for besides it: that goes along with it, and would be there twice (moving-3). */
function paidFor(door: CascadeDoor, session: Session): readonly Session[] {
  return session.account === undefined ? [] : paidBy(door, session);
}

function commitBatch(door: CascadeDoor, batch: CommitBatch, now: number): ChangeResult {
  const { result, rows } = door.commitBatch(batch, now);
  if (result.status !== "committed") return result;
  if (rows === undefined) return answerAgain(door, batch, result);
  const { before, after } = rows;
  if (isEnded(after.status)) keepEndedRun(door, batch, after, now);
  if (isAlone(before, after, batch)) return result; // cascade-3.
  const admissions = follow(door, before, after, now, batch);
  const { inbox } = door.session(batch.sessionId) ?? after;
  return { ...result, inbox, ...paid(door, after, admissions) };
}

/** ST3. Of what was charged only the holds remain; what is not held may be asked for once more. */
function answerAgain(
  door: CascadeDoor,
  { sessionId, charges }: CommitBatch,
  result: ChangeResult & { readonly status: "committed" },
): ChangeResult {
  const session = door.session(sessionId);
  if (session === undefined || (charges === undefined && session.payers.length === 0)) return result;
  const isPaid = payersOf(door, session).size > 0;
  const admissions = charges === undefined ? undefined : admitAgain(charges, isPaid, door.holds(sessionId));
  return { ...result, ...paid(door, session, admissions) };
}

function decide(
  door: CascadeDoor,
  sessionId: string,
  now: number,
  rule: (session: Session) => CancelDecision,
): ChangeResult {
  const before = door.session(sessionId);
  if (before === undefined) return NOT_FOUND;
  const { result, session } = rule(before);
  if (session !== undefined) replace(door, before, session, now);
  return result;
}

/** An arrival that changes the row. */
function replace(door: CascadeDoor, before: Session, after: Session, now: number): void {
  if (isEnded(after.status)) keepClaimedRun(door, door.claimOf(after.sessionId), after, now);
  door.replace(after);
  door.announce(after.sessionId, true);
  follow(door, before, after, now);
}

function setBudget(
  door: CascadeDoor,
  change: Extract<Change, { type: "set_budget" }>,
  now: number,
): ChangeResult {
  const { sessionId } = change;
  const session = door.session(sessionId);
  if (session === undefined) return NOT_FOUND;
  const { result, account } = decideBudget(session, change, () =>
    paidBy(door, session).some(({ status }) => !isEnded(status)),
  );
  if (account === undefined) return result;
  if (!isEnded(session.status)) door.replace({ ...session, updatedAt: now });
  door.setAccount(sessionId, account);
  for (const exhausted of door.exhaustedBy(sessionId)) {
    const paused = door.session(exhausted);
    if (paused !== undefined && payersOf(door, paused).has(sessionId)) resume(door, exhausted, now);
  }
  return result;
}

/** One that stands before a turn it could not pay pays for it now, or goes on standing there (B1). */
function resume(door: CascadeDoor, sessionId: string, now: number): ChangeResult {
  const before = door.session(sessionId);
  if (before?.status === "paused" && before.move === undefined && before.exhausted?.limit === "maxTurns") {
    const [turn] = charge(door, before, [{ type: "turn" }], now);
    if (turn?.status === "refused") {
      const { status: _, ...exhausted } = turn;
      door.replace({ ...before, exhausted, updatedAt: now });
      return { status: "requested", sessionStatus: "paused" };
    }
  }
  return decide(door, sessionId, now, (session) => decideResume(session, now));
}

function fire(door: CascadeDoor, change: FireSchedule, now: number): ChangeResult {
  const { scheduleId, effect } = change;
  const before = door.schedule(scheduleId);
  const { result, schedule } = decideFire(before, change);
  if (schedule === undefined) return result;
  const isSignal = effect.type === "send_signal";
  if (isSignal && isUnread(door, effect.sessionId, schedule)) {
    door.putSchedule(schedule);
    return result;
  }
  door.putSchedule(isSignal ? { ...schedule, unread: effect.signalId } : schedule);
  applyEffect(door, { owner: schedule.owner }, effect, now);
  return result;
}

/** By the session, or by who took over from it, which is sent what is for that one. */
function isUnread(door: CascadeDoor, sessionId: string, { unread }: Schedule): boolean {
  const reader = unread === undefined ? undefined : goingOn(door, sessionId);
  return reader !== undefined && door.isPending(reader.sessionId, unread!);
}

function deleteSession(door: CascadeDoor, change: DeleteSession): ChangeResult {
  const { result, sessionIds } = decideDeletion(door, change);
  // From below: nobody is left below one that is gone.
  for (const sessionId of sessionIds.toReversed()) {
    door.remove(sessionId);
    removeEndedRuns(door, sessionId);
  }
  return result;
}

/** ST42. */
function applyAudited(door: CascadeDoor, { change, audit }: Audited, now: number): ChangeResult {
  const problem = findAuditProblem(audit);
  if (problem !== undefined) return { status: "invalid", reason: problem };
  const result = change === undefined ? DONE : applyChange(door, change, now);
  const outcome = change === undefined ? (audit.outcome ?? DONE.status) : result.status;
  const { hash } = door;
  door.appendAudit(nextAuditRow(door.lastAudit() ?? AUDIT_START, audit, { outcome, at: now, hash }));
  return result;
}

// ---- what follows ------------------------------------------------------------------------------------------------

type Parts = Pick<CommitBatch, "effects" | "charges">;

/** Answers what became of the charges, when there were any. */
function follow(
  door: CascadeDoor,
  before: Session,
  after: Session,
  now: number,
  { effects, charges }: Parts = NO_PARTS,
): readonly Admission[] | undefined {
  const admissions = charges === undefined ? undefined : charge(door, after, charges, now);
  if (effects !== undefined) {
    const asking = { owner: after.placement?.owner, session: after };
    for (const effect of effects) applyEffect(door, asking, effect, now);
  }
  if (after.payers.length > 0 && isEnded(after.status) && !isEnded(before.status))
    charge(door, after, settleAll(door.holds(after.sessionId), after.error?.code === "session_lost"), now);
  if (isRaised(door, after)) {
    // Raised between the refusal and the pause: whoever raised it did not find it paused.
    resume(door, after.sessionId, now);
    if (door.session(after.sessionId)?.status !== "paused") return admissions;
  }
  for (const consequence of consequencesOf(before, after, now)) {
    if (consequence.type === "send_signal") tell(door, after, consequence, now);
    else cancelChildren(door, consequence, now);
  }
  return admissions;
}

/** Whether a session is paused for a limit that is not what it was when it ran into it. */
function isRaised(door: CascadeDoor, session: Session): boolean {
  const { status, exhausted } = session;
  if (status !== "paused" || exhausted === undefined) return false;
  const limits = payersOf(door, session).get(exhausted.payer)?.limits;
  return limits !== undefined && (limits[exhausted.limit] ?? Infinity) > exhausted.max;
}

/** ST36. Something is told to the parent, which was made later than a session that names it, if it is another owner's. */
function tell(door: CascadeDoor, from: Session, signal: SendSignal, now: number): void {
  if (isParentOf(door.session(signal.sessionId), from)) door.send(signal, now);
}

/** Whether one that is named as the parent is: it is of the same owner, or of none. */
function isParentOf(named: Session | undefined, { parent, placement }: Session): boolean {
  if (named === undefined || named.sessionId !== parent?.sessionId) return false;
  const owner = named.placement?.owner;
  return owner === undefined || owner === placement?.owner;
}

function isAlone(before: Session, after: Session, { effects, charges }: Parts): boolean {
  return (
    effects === undefined &&
    charges === undefined &&
    after.payers.length === 0 &&
    (after.status === before.status || (!isEnded(after.status) && after.parent === undefined))
  );
}

/** Who asks for an effect. */
interface Asking {
  readonly owner: string | undefined;
  /** Absent for a schedule. */
  readonly session?: Session;
}

function applyEffect(door: CascadeDoor, asking: Asking, effect: Effect, now: number): void {
  const allowed = asking.owner === undefined ? effect : withinOwner(door, asking, effect);
  if (allowed === undefined) return;
  const { session: by } = asking;
  if (by !== undefined && isForStranger(door, by, allowed)) return;
  const isHeir = allowed.type === "create_session" && by?.handedOffTo === allowed.sessionId;
  const { status } = isHeir
    ? create(door, { ...allowed, agent: { ...fileOf(by), ...allowed.agent } }, now, by)
    : applyChange(door, allowed, now);
  const heir = status === "ended" && isForHeir(allowed) ? goingOn(door, allowed.sessionId) : undefined;
  if (heir !== undefined) return applyEffect(door, asking, { ...effect, sessionId: heir.sessionId }, now);
  if (status === "created") door.announce(effect.sessionId, true);
  if (status === "exists" && allowed.type === "create_session") refuseBirth(door, allowed, now);
  if (by === undefined) return;
  if (status === "created" && by.cancel !== undefined) {
    // consequences-2. It came to be after the cancel had reached all there were.
    const { sessionId } = effect;
    const graceMs = Math.max(0, by.cancel.deadlineAt - now);
    applyChange(door, { type: "request_cancel", sessionId, mode: "graceful", graceMs, cause: "parent" }, now);
  }
  const isUnheard = status === "ended" || status === "not_found";
  if (!isUnheard || effect.type !== "send_signal" || !effect.name.startsWith(REQUEST_PREFIX)) return;
  const { sessionId, signalId } = effect;
  const request = requestIn(signalId, by.sessionId);
  if (request !== undefined) door.send(refuseRequest(by.sessionId, request, sessionId, signalId), now); // consequences-4.
}

/** ST26. Whether what is asked of a child would reach a session that only has its id (consequences-5). */
function isForStranger(door: CascadeDoor, { sessionId }: Session, effect: Effect): boolean {
  const child = effect.type === "create_session" ? undefined : positionIn(effect.sessionId, sessionId);
  return child !== undefined && !isChildOf(door.session(effect.sessionId), { sessionId, child });
}

/** consequences-5, consequences-6. Who asks for a child that cannot be made: another session has its id, or it was made before. */
function refuseBirth(door: CascadeDoor, change: CreateSession, now: number): void {
  const { sessionId, parent } = change;
  const asking = parent && door.session(parent.sessionId);
  if (parent === undefined || asking === undefined) return;
  const { inbox } = asking;
  const child = door.session(sessionId);
  if (child === undefined || !isChildOf(child, parent) || !isAskedForAgain(child, change)) {
    for (const signal of tellTaken(parent, sessionId, inbox)) door.send(signal, now);
    return;
  }
  door.replace({ ...asking, children: asking.children - 1 }); // It is counted already.
  for (const { signalId, ...signal } of tellAgain(parent, lastHeir(door, child)))
    if (!door.isPending(parent.sessionId, signalId))
      door.send({ ...signal, signalId: `${signalId}:again:${inbox}` }, now);
}

/** By its seed, which a session that keeps no journal makes of what it asks for. */
function isAskedForAgain({ agent, seed }: Session, change: CreateSession): boolean {
  return agent.name === change.agent.name && seed === change.seed;
}

/** Where an agent's code is found again, which is where that of the agents it asks for is. */
function fileOf({ agent: { file } }: Session): Pick<Session["agent"], "file"> {
  return file === undefined ? {} : { file };
}

/** ST35, ST36. The effect as its owner's; `undefined` when it would reach another's session. */
function withinOwner(door: CascadeDoor, { owner, session }: Asking, effect: Effect): Effect | undefined {
  if (effect.type === "create_session") {
    const placement = ownedBy(owner, effect.placement);
    return placement === undefined ? effect : { ...effect, placement };
  }
  const target = door.session(effect.sessionId);
  if (session !== undefined && isParentOf(target, session)) return effect;
  return target === undefined || target.placement?.owner === owner ? effect : undefined;
}

/** @param above those that had ended and were gone through: rows that were made elsewhere may go round (cascade-4). */
function cancelChildren(
  door: CascadeDoor,
  consequence: CancelChildren,
  now: number,
  above: ReadonlySet<string> = new Set(),
): void {
  const { all, request } = consequence;
  if (above.has(consequence.sessionId)) return;
  const seen = new Set([...above, consequence.sessionId]);
  for (const { sessionId, status, onEnd } of childrenOf(door, consequence.sessionId)) {
    if (consequence.isEnd && !isEnded(status)) refuseRequests(door, sessionId, consequence.sessionId, now);
    if (!all && onEnd === "leave") continue;
    if (!isEnded(status)) applyChange(door, { type: "request_cancel", sessionId, ...request }, now);
    // Below one that has ended there may be some that were left to go on.
    else if (all) cancelChildren(door, { ...consequence, sessionId }, now, seen);
  }
}

/** consequences-4. What a child waits for and its parent, which has ended, will not answer. */
function refuseRequests(door: CascadeDoor, childId: string, parentId: string, now: number): void {
  for (const wait of door.session(childId)?.waits ?? []) {
    const request = wait.type === "signal" ? repliedRequest(wait.name) : undefined;
    if (request !== undefined) door.send(refuseRequest(childId, request, parentId), now);
  }
}

// ---- charges -----------------------------------------------------------------------------------------------------

function charge(
  door: CascadeDoor,
  session: Session,
  charges: readonly Charge[],
  now: number,
): readonly Admission[] {
  const { sessionId } = session;
  const payers = payersOf(door, session);
  if (charges.length === 0) return [];
  if (payers.size === 0) return admitAgain(charges, false, []);
  const charged = applyCharges({ payers, held: (task) => door.held(sessionId, task) }, charges);
  for (const [task, amount] of charged.holds) door.setHold(sessionId, task, amount);
  for (const [payer, account] of charged.payers) {
    if (account === payers.get(payer)) continue;
    const isNews = becameLow(account);
    const stored = isNews ? { ...account, low: true } : account;
    door.setAccount(payer, stored);
    const row = isNews ? goingOn(door, payer) : undefined;
    if (row !== undefined) for (const signal of tellLow(row, stored)) tell(door, row, signal, now);
  }
  return charged.admissions;
}

/** The accounts that pay for a session, nearest first. One whose session is not here, or is another owner's (ST36), pays nothing. */
function payersOf(
  door: Pick<CascadeDoor, "session">,
  { payers, placement }: Pick<Session, "payers" | "placement">,
): ReadonlyMap<string, Account> {
  const accounts = new Map<string, Account>();
  for (const payer of payers) {
    const row = door.session(payer);
    if (row?.account === undefined) continue;
    const { owner } = row.placement ?? {};
    if (owner === undefined || owner === placement?.owner) accounts.set(payer, row.account);
  }
  return accounts;
}

/** What is left to spend for a session, when anybody pays for it. */
export function remainingFor(
  door: Pick<CascadeDoor, "session">,
  session: Pick<Session, "payers" | "placement">,
): Remaining | undefined {
  return session.payers.length === 0 ? undefined : remainingOf(payersOf(door, session).values());
}

function paid(
  door: CascadeDoor,
  session: Session,
  admissions: readonly Admission[] | undefined,
): { readonly admissions?: readonly Admission[]; readonly remaining?: Remaining } {
  const remaining = remainingFor(door, session);
  return {
    ...(admissions === undefined ? {} : { admissions }),
    ...(remaining === undefined ? {} : { remaining }),
  };
}

const NO_PARTS: Parts = {};
const DONE = { status: "done" } as const satisfies ChangeResult;
const NOT_FOUND: ChangeResult = { status: "not_found" };
