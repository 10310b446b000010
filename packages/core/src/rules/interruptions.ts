// `decideCancel`, `decidePause`, `decideResume`, `actOverdue`: the rules that interrupt a session and let it
// continue.
//
// An acknowledged cancel stays on the row. `cancel`, not the status, decides what may still follow, so a
// pause in between does not remove the cancel (ST16).

import { LIMITS } from "../limits.ts";
import type { ChangeResult, RequestCancel } from "../session/changes.ts";
import type { CancelRequest, Session } from "../session/session.ts";
import { endsAt } from "./due.ts";
import { findFinal } from "./signals.ts";

export interface RowDecision {
  readonly result: ChangeResult;
  /** The new row; absent when nothing changes. A new row is announced to listeners. */
  readonly session?: Session;
}

/**
 * The row after a cancel request.
 *
 * A graceful cancel makes the session `cancelling` until a deadline and drops its waits, so that its agent
 * runs and sees the cancel. This includes submitted, waiting and paused sessions, because their agents may
 * have something to clean up. If the agent cannot run, the deadline ends the session. A hard cancel makes the
 * session `cancelled` at once, also after a graceful one.
 */
export function decideCancel(session: Session, request: RequestCancel, now: number): RowDecision {
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
  const rest = withoutPause(session);
  return changed({ ...rest, status: "cancelling", waits: [], inbox, cancel, updatedAt: now });
}

/** The row without what says why it is paused, and until when. */
function withoutPause({
  wakeAt: _wakeAt,
  pauseReason: _pauseReason,
  exhausted: _exhausted,
  quota: _quota,
  ...rest
}: Session): Omit<Session, "wakeAt" | "pauseReason" | "exhausted" | "quota"> {
  return rest;
}

function changed(session: Session): RowDecision {
  return { result: { status: "requested", sessionStatus: session.status }, session };
}

/** The reason of a cancel. A hard cancel keeps the reason of the graceful cancel before it. */
function whyOf({ reason, cause, exhausted }: Why = {}): Why {
  return {
    ...(reason === undefined ? {} : { reason }),
    ...(cause === undefined ? {} : { cause }),
    ...(exhausted === undefined ? {} : { exhausted }),
  };
}

type Why = Pick<CancelRequest, "reason" | "cause" | "exhausted">;

/**
 * The row of a session whose time is up, or `undefined` when it is not. The time of a graceful cancel ends
 * the session (ST17). The session's own deadline cancels it gracefully (ST31).
 */
export function actOverdue(session: Session, now: number): Session | undefined {
  if (endsAt(session) > now) return undefined;
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
  const rest = withoutPause(session);
  return { ...rest, status: "cancelled", waits: [], endedAt: now, updatedAt: now };
}

/**
 * The row after a pause. A pause does not change a session that is being cancelled, because its deadline is
 * running. A session that is paused until its budget's window has rolled on, or until a usage limit is reset,
 * then waits for a person.
 */
export function decidePause(session: Session, now: number): RowDecision {
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  const { exhausted } = session;
  if (session.status === "paused" && exhausted?.until !== undefined) {
    const { until: _until, ...fixed } = exhausted;
    return changed({ ...session, exhausted: fixed, updatedAt: now });
  }
  if (session.status === "paused" && session.quota?.resumesAt !== undefined) {
    const { resumesAt: _resumesAt, ...quota } = session.quota;
    return changed({ ...session, quota, updatedAt: now });
  }
  if (session.cancel !== undefined || session.status === "paused")
    return { result: { status: "requested", sessionStatus: session.status } };
  const { wakeAt: _wakeAt, ...rest } = session;
  const inbox = session.inbox + 1;
  return changed({ ...rest, status: "paused", pauseReason: "by_user", inbox, updatedAt: now });
}

/**
 * The row after a resume: the session is due. A session that was being cancelled has no waits, so its agent
 * runs to its end. Any other session keeps its recorded waits until its agent blocks again, so that they can
 * still be answered.
 */
export function decideResume(session: Session, now: number): RowDecision {
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  if (session.status !== "paused") return { result: { status: "requested", sessionStatus: session.status } };
  const { error: _error, ...rest } = withoutPause(session);
  const resumed =
    session.cancel === undefined
      ? ({ status: "working" } as const)
      : ({ status: "cancelling", waits: [] } as const);
  return changed({ ...rest, ...resumed, inbox: session.inbox + 1, updatedAt: now });
}
