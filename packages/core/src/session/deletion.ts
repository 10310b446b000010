// Which sessions a deletion takes, as a pure walk over what is stored (ST43).
//
//   deletion-1. It is all or nothing: whatever stands in the way is found before anything is removed.
//   deletion-2. Accounts of the deleted are gone, so nobody they pay for may be at work any more: none below, none that
//       took over, and none below these.

import type { ChangeResult, DeleteSession } from "./changes.ts";
import { childrenOf, goingOn, heirOf, paidBy, type FamilyLookups } from "./heirs.ts";
import { isEnded, type Session } from "./session.ts";

export interface DeletionDecision {
  readonly result: ChangeResult;
  /** What is to be removed, parents before their children. */
  readonly sessionIds: readonly string[];
}

export function decideDeletion(
  lookups: FamilyLookups,
  { sessionId, subtree }: DeleteSession,
): DeletionDecision {
  const session = lookups.session(sessionId);
  if (session === undefined) return refused({ status: "not_found" });
  // It lives elsewhere, and those below it that ended here are found when it comes back.
  if (session.move?.isDone === true)
    return { result: { status: "deleted", sessions: 1 }, sessionIds: [sessionId] };
  const found = new Set([sessionId]);
  for (const id of found) {
    const obstacle = goingOn(lookups, id) ?? belowHeir(lookups, id);
    if (obstacle !== undefined) {
      const { sessionId: goesOn, status } = obstacle;
      return refused({ status: "not_ended", sessionId: goesOn, sessionStatus: status });
    }
    const children = childrenOf(lookups, id);
    if (subtree === "refuse" && children.length > 0) return refused({ status: "has_children" });
    for (const child of children) found.add(child.sessionId);
  }
  return { result: { status: "deleted", sessions: found.size }, sessionIds: [...found] };
}

/** deletion-2. */
function belowHeir(lookups: FamilyLookups, sessionId: string): Session | undefined {
  const session = lookups.session(sessionId);
  const heir = session && heirOf(lookups, session);
  return heir && paidBy(lookups, heir).find(({ status }) => !isEnded(status));
}

function refused(result: ChangeResult): DeletionDecision {
  return { result, sessionIds: [] };
}
