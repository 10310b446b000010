// `dueAt`, `lookAt`, `overdueAt`: the times at which a session has something to do, or something is to be
// done to it, for every storage (ST18).

import type { Claim } from "./claims.ts";
import { isEnded, isLost, type Session } from "../session/session.ts";

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

type Timed = Pick<Session, "status" | "cancel" | "deadlineAt" | "move" | "exhausted" | "quota">;

/**
 * The time at which the storage's owner acts on a session without its agent. It is the end of its cancel, its
 * own deadline, or the time when it resumes without a person.
 */
export function overdueAt(session: Timed): number {
  // mutant: rolled-window-ignored
  return Math.min(endsAt(session), resumesAt(session) ?? Infinity);
}

/**
 * When a paused session resumes without a person. A window of its budget then has rolled on, or a provider's
 * usage limit is reset and the user asked for that.
 */
export function resumesAt({
  status,
  move,
  exhausted,
  quota,
}: Pick<Timed, "status" | "move" | "exhausted" | "quota">): number | undefined {
  // mutant: quota-never-reset
  return status === "paused" && move === undefined ? (exhausted?.until ?? quota?.resumesAt) : undefined;
}

/** The end of a session's cancel, or its deadline. */
export function endsAt(session: Timed): number {
  if (isEnded(session.status) || session.move !== undefined) return Infinity;
  const at = session.cancel?.deadlineAt ?? session.deadlineAt ?? Infinity;
  // A time that no integer column can hold never comes.
  return at > Number.MAX_SAFE_INTEGER ? Infinity : at;
}
