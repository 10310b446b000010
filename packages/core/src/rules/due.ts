// From when on there is something to do for a session, as every storage tells it (ST18). storage-rules-4 is a promise of `storage-rules.ts`.

import type { Claim } from "./claims.ts";
import { isLost, overdueAt, type Session } from "../session/session.ts";

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
  if (session.move !== undefined) return Infinity;
  // Who looks after it finds that it is lost, whatever it waits for; its driver has it claimed.
  if (isLost(session) && session.status !== "paused") return -Infinity;
  switch (session.status) {
    case "submitted":
    case "working":
      return -Infinity;
    case "cancelling":
      // In its clean-up it waits like any other; before that it stands on nothing (storage-rules-4).
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

/** When `due` has to look at a session for the next time: it is due then, or its time is up. */
export function lookAt(session: Session, claim: Claim, answered: boolean): number {
  return Math.min(dueAt(session, claim, answered), overdueAt(session));
}
