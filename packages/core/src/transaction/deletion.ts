// `deleteSession`: the deletion of a session that is named (ST43). `removeEnded`: the removal of sessions that
// ended long ago (ST58).
//
//   - A deletion removes all sessions of the subtree or none: every obstacle is found before the first
//     removal.
//   - A deletion removes accounts as well. Every session that such an account pays for must have ended: all
//     below the deleted session, its successor, and all below the successor.

import { unlessCorrupt } from "../errors/damage.ts";
import type { ChangeResult, DeleteSession, RemoveEnded } from "../session/changes.ts";
import { childrenOf, activeSuccessor, successorOf, paidBy, type FamilyLookups } from "./successors.ts";
import { isEnded, type Session } from "../session/session.ts";
import { removeEndedRuns } from "./ended-runs.ts";
import type { RowPort } from "./row-port.ts";

export function deleteSession(rows: RowPort, change: DeleteSession): ChangeResult {
  const { result, sessionIds } = decideDeletion(rows, change);
  // Children first, so that a removed session never has stored children.
  for (const sessionId of sessionIds.toReversed()) remove(rows, sessionId);
  return result;
}

/** ST58. */
export function removeEnded(rows: RowPort, { sessionIds, endedBefore }: RemoveEnded): ChangeResult {
  let sessions = 0;
  for (const sessionId of sessionIds) {
    if (unlessCorrupt(() => isRemovable(rows, sessionId, endedBefore)) !== true) continue;
    remove(rows, sessionId);
    sessions++;
  }
  return { status: "deleted", sessions };
}

function remove(rows: RowPort, sessionId: string): void {
  rows.remove(sessionId);
  removeEndedRuns(rows.ledger, sessionId);
}

interface DeletionDecision {
  readonly result: ChangeResult;
  /** The sessions to remove, parents before their children. */
  readonly sessionIds: readonly string[];
}

function decideDeletion(lookups: FamilyLookups, { sessionId, subtree }: DeleteSession): DeletionDecision {
  const session = lookups.find(sessionId)?.session;
  if (session === undefined) return refused({ status: "not_found" });
  // The session lives in another storage. Its ended children stay, for when the session comes back.
  if (session.move?.isDone === true)
    return { result: { status: "deleted", sessions: 1 }, sessionIds: [sessionId] };
  const found = new Set([sessionId]);
  for (const id of found) {
    const obstacle = activeSuccessor(lookups, id) ?? belowSuccessor(lookups, id);
    if (obstacle !== undefined) {
      const { sessionId: activeId, status } = obstacle;
      return refused({ status: "not_ended", sessionId: activeId, sessionStatus: status });
    }
    const children = childrenOf(lookups, id);
    if (subtree === "refuse" && children.length > 0) return refused({ status: "has_children" });
    for (const child of children) found.add(child.sessionId);
  }
  return { result: { status: "deleted", sessions: found.size }, sessionIds: [...found] };
}

/** ST58. */
export function isRemovable(lookups: FamilyLookups, sessionId: string, endedBefore: number): boolean {
  const session = lookups.find(sessionId)?.session;
  if (session === undefined || !isEnded(session.status) || session.move !== undefined) return false;
  if ((session.endedAt ?? session.updatedAt) >= endedBefore) return false;
  const parent = session.parent && lookups.find(session.parent.sessionId)?.session;
  if (parent !== undefined && !isEnded(parent.status)) return false;
  return (
    decideDeletion(lookups, { type: "delete_session", sessionId, subtree: "refuse" }).sessionIds.length > 0
  );
}

function belowSuccessor(lookups: FamilyLookups, sessionId: string): Session | undefined {
  const session = lookups.find(sessionId)?.session;
  const successor = session && successorOf(lookups, session);
  return successor && paidBy(lookups, successor).find(({ status }) => !isEnded(status));
}

function refused(result: ChangeResult): DeletionDecision {
  return { result, sessionIds: [] };
}
