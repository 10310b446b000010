// `follow`: charges, effects and consequences of a change to one session, inside the same transaction.
//
//   charges ─► effects ─► release of reservations, at an end ─► consequences
//
// Each effect and each consequence is a change of its own. It is applied with all that follows from it before
// the next one begins.
//
//   cascade-1. Nothing here is refused: the rules refuse a change before its first write. An effect or a
//       consequence whose target has ended or does not exist does nothing (ST26).
//   - A row is found again after another change was applied, because that change may have written the row.
//   - A change that concerns only its own session costs one comparison here (`isAlone`).
//
// Labels consequences-N are rules of `../rules/consequences.ts`. The cascade does not know claims, journals
// or entries.

import { positionIn } from "../ids.ts";
import { repliedRequest, REQUEST_PREFIX } from "../journal/signal-names.ts";
import {
  consequencesOf,
  isUnwanted,
  refuseRequest,
  notifyTaken,
  type CancelChildren,
} from "../rules/consequences.ts";
import { keepClaimedRun } from "./ended-runs.ts";
import { decideResume } from "../rules/interruptions.ts";
import { activeSuccessor, childrenOf, isForSuccessor } from "./successors.ts";
import { usesOf, type Admission } from "../budget/budget.ts";
import type { ChangeResult, CommitBatch, CreateSession, Effect } from "../session/changes.ts";
import { isChildOf, isEnded, ownedBy, type Session } from "../session/session.ts";
import { accountsOf, charge, settleEnded } from "./charges.ts";
import { isParentOf, notifyParent } from "./notify-parent.ts";
import { sessionIn, type Transaction } from "./transaction.ts";

type Parts = Pick<CommitBatch, "effects" | "charges">;

const NO_PARTS: Parts = {};

/** Whether nothing follows for any other session. */
export function isAlone(before: Session, after: Session, { effects, charges }: Parts): boolean {
  return (
    effects === undefined &&
    charges === undefined &&
    after.payers.length === 0 &&
    (after.status === before.status || (!isEnded(after.status) && after.parent === undefined))
  );
}

/**
 * Apply what follows from a change of a row. Returns the admissions of the charges, if there were charges.
 */
export function follow(
  tx: Transaction,
  before: Session,
  after: Session,
  { effects, charges }: Parts = NO_PARTS,
): readonly Admission[] | undefined {
  const { sessionId } = after;
  const admissions = charges === undefined ? undefined : charge(tx, after, charges);
  if (effects !== undefined) {
    const by = { owner: after.placement?.owner, session: after };
    for (const effect of effects) applyEffect(tx, by, effect);
  }
  settleEnded(tx, before, after);
  if (isRaised(tx, after)) {
    // The limit was raised between the refusal and the pause, when the session was not paused yet.
    resume(tx, sessionId);
    if (sessionIn(tx, sessionId)?.status !== "paused") return admissions;
  }
  for (const consequence of consequencesOf(before, after, tx.now)) {
    if (consequence.type === "send_signal") notifyParent(tx, after, consequence);
    else cancelChildren(tx, consequence);
  }
  return admissions;
}

/** Store a row in place of the one before it, announce the session, and apply what follows. */
export function replaceRow(tx: Transaction, before: Session, after: Session): void {
  const { rows, now } = tx;
  const { sessionId } = after;
  if (isEnded(after.status)) keepClaimedRun(rows.ledger, rows.find(sessionId)!.claim, after, now);
  rows.update(sessionId, { session: after });
  rows.announce(sessionId, true);
  follow(tx, before, after);
}

/** Resume a paused session. A session that could not pay for its next turn pays now, or stays paused (B1). */
export function resume(tx: Transaction, sessionId: string): ChangeResult {
  const { rows, now } = tx;
  const before = sessionIn(tx, sessionId);
  // mutant: refused-turn-uncounted
  if (before?.status === "paused" && before.move === undefined && before.exhausted?.limit === "maxTurns") {
    const [turn] = charge(tx, before, [{ type: "turn" }]);
    if (turn?.status === "refused") {
      const { status: _, ...exhausted } = turn;
      rows.update(sessionId, { session: { ...before, exhausted, updatedAt: now } });
      return { status: "requested", sessionStatus: "paused" };
    }
  }
  const session = sessionIn(tx, sessionId);
  if (session === undefined) return { status: "not_found" };
  const decision = decideResume(session, now);
  if (decision.session !== undefined) replaceRow(tx, session, decision.session);
  return decision.result;
}

/** Whether the limit for which a session is paused was raised since, or its window was granted. */
function isRaised(tx: Transaction, session: Session): boolean {
  const { status, exhausted } = session;
  if (status !== "paused" || exhausted === undefined) return false;
  const account = accountsOf(tx.rows, session).get(exhausted.payer);
  if (account === undefined) return false;
  const use = usesOf(account, tx.now).find(
    ({ limit, per }) => limit === exhausted.limit && per === exhausted.per,
  );
  if (use === undefined || use.max > exhausted.max) return true;
  return use.per !== undefined && use.spent < exhausted.used;
}

// ---- effects -----------------------------------------------------------------------------------------------------

/** The cause of an effect. */
interface Origin {
  readonly owner: string | undefined;
  /** Absent for a schedule. */
  readonly session?: Session;
}

const NOT_FOUND = { status: "not_found" } as const satisfies ChangeResult;

/** Apply an effect of a session or of a schedule to another session. */
export function applyEffect(tx: Transaction, by: Origin, effect: Effect): void {
  const { rows, now } = tx;
  const allowed = by.owner === undefined ? effect : withinOwner(tx, by, effect);
  if (allowed === undefined) return;
  const { session } = by;
  if (session !== undefined && isForUnrelated(tx, session, allowed)) return;
  // mutant: unwanted-event-sent
  if (session !== undefined && allowed.type === "send_signal" && isUnwanted(session, allowed)) return;
  const isDetached = session?.detachedFrom?.sessionId === allowed.sessionId; // detachment-2.
  const isSuccessor = allowed.type === "create_session" && session?.handedOffTo === allowed.sessionId;
  const { status } = isSuccessor
    ? tx.apply({ ...allowed, agent: { ...fileOf(session), ...allowed.agent } }, session)
    : isDetached
      ? NOT_FOUND
      : tx.apply(allowed);
  const successor =
    status === "ended" && isForSuccessor(allowed) ? activeSuccessor(rows, allowed.sessionId) : undefined;
  if (successor !== undefined) return applyEffect(tx, by, { ...effect, sessionId: successor.sessionId });
  if (status === "created") rows.announce(effect.sessionId, true);
  if (status === "exists" && allowed.type === "create_session") refuseChild(tx, allowed);
  if (session === undefined) return;
  if (status === "created" && session.cancel !== undefined) {
    // consequences-2. The cancel reached all sessions of its time; this one was created after it.
    const graceMs = Math.max(0, session.cancel.deadlineAt - now);
    const { sessionId } = effect;
    tx.apply({ type: "request_cancel", sessionId, mode: "graceful", graceMs, cause: "parent" });
  }
  const isUndelivered = status === "ended" || status === "not_found";
  if (!isUndelivered || effect.type !== "send_signal" || !effect.name.startsWith(REQUEST_PREFIX)) return;
  const { sessionId, signalId } = effect;
  const request = positionIn(signalId, session.sessionId);
  if (request !== undefined) tx.apply(refuseRequest(session.sessionId, request, sessionId)); // consequences-4.
}

/** A session's code is found where its predecessor's is. */
function fileOf({ agent: { file } }: Session): Pick<Session["agent"], "file"> {
  return file === undefined ? {} : { file };
}

/** ST26. Whether an effect on a child would reach a session that only has the child's id (consequences-5). */
function isForUnrelated(tx: Transaction, { sessionId }: Session, effect: Effect): boolean {
  const child = effect.type === "create_session" ? undefined : positionIn(effect.sessionId, sessionId);
  return child !== undefined && !isChildOf(sessionIn(tx, effect.sessionId), { sessionId, child });
}

/**
 * consequences-5. Notify a session that another session has its child's id. If it is the child, the batch of
 *     an
 * ephemeral session was sent again, and the first one counted the child already.
 */
function refuseChild(tx: Transaction, { sessionId, parent }: CreateSession): void {
  const asking = parent && sessionIn(tx, parent.sessionId);
  if (parent === undefined || asking === undefined) return;
  if (isChildOf(sessionIn(tx, sessionId), parent))
    // mutant: resent-child-counted
    tx.rows.update(parent.sessionId, { session: { ...asking, children: asking.children - 1 } });
  else for (const signal of notifyTaken(parent, sessionId)) tx.apply(signal);
}

/** ST35, ST36. The effect with its owner; `undefined` when it would reach another owner's session. */
function withinOwner(tx: Transaction, { owner, session }: Origin, effect: Effect): Effect | undefined {
  if (effect.type === "create_session") {
    // mutant: foreign-owner-claimed
    const placement = ownedBy(owner, effect.placement);
    return placement === undefined ? effect : { ...effect, placement };
  }
  const target = sessionIn(tx, effect.sessionId);
  if (session !== undefined && isParentOf(target, session)) return effect;
  // mutant: foreign-session-reached
  return target === undefined || target.placement?.owner === owner ? effect : undefined;
}

// ---- consequences ------------------------------------------------------------------------------------------------

function cancelChildren(tx: Transaction, consequence: CancelChildren): void {
  const { all, request } = consequence;
  for (const { sessionId, status, onEnd } of childrenOf(tx.rows, consequence.sessionId)) {
    if (consequence.isEnd && !isEnded(status)) refuseRequests(tx, sessionId, consequence.sessionId);
    if (!all && onEnd === "leave") continue;
    if (!isEnded(status)) tx.apply({ type: "request_cancel", sessionId, ...request });
    // An ended child may have left children that are still active.
    else if (all) cancelChildren(tx, { ...consequence, sessionId });
  }
}

/** consequences-4. Answer the requests of a child that its parent, which has ended, will not answer. */
function refuseRequests(tx: Transaction, childId: string, parentId: string): void {
  for (const wait of sessionIn(tx, childId)?.waits ?? []) {
    const request = wait.type === "signal" ? repliedRequest(wait.name) : undefined;
    if (request !== undefined) tx.apply(refuseRequest(childId, request, parentId));
  }
}
