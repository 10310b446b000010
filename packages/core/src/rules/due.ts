// `dueAt`, `lookAt`: the time from which a session has something to do, for every storage (ST18).

import type { Claim } from "./claims.ts";
import { isLost, overdueAt, type Session } from "../session/session.ts";

/**
 * The time from which a session has something to do that no process is doing (ST18). `-Infinity` is now, and
 * `Infinity` is never without an arrival. A claimed session is its holder's until the lease has passed.
 *
 * @param answered whether a signal that the session waits for is pending.
 */
export function dueAt(session: Session, claim: Claim, answered: boolean): number {
  const readyAt = readyFrom(session, answered);
  return claim.owner === undefined ? readyAt : Math.max(readyAt, claim.until);
}

function readyFrom(session: Session, answered: boolean): number {
  if (session.move !== undefined) return Infinity;
  // The next process that claims it finds that it is lost, whatever it waits for. Its own driver has it
  // claimed.
  if (isLost(session) && session.status !== "paused") return -Infinity;
  switch (session.status) {
    case "submitted":
    case "working":
      return -Infinity;
    case "cancelling":
      // During its clean-up it waits like any other session; before that it has no waits (batches-4).
      if (session.waits.length === 0) return -Infinity;
      return answered ? -Infinity : (session.wakeAt ?? Infinity);
    case "waiting":
    case "input_required":
      // mutant: answered-wait-not-due
      return answered ? -Infinity : (session.wakeAt ?? Infinity);
    case "paused":
    case "completed":
    case "failed":
    case "cancelled":
      return Infinity;
  }
}

/** The next time at which `due` must examine a session: it is due then, or its deadline has passed. */
export function lookAt(session: Session, claim: Claim, answered: boolean): number {
  return Math.min(dueAt(session, claim, answered), overdueAt(session));
}
