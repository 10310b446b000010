// `Settled`, `Departure`: the outcome of a session for a process that is done with it, from its driver or its
// row.

import {
  decodeJson,
  errorFrom,
  HoldfastError,
  isEnded,
  resumesAt,
  type ErrorDetails,
  type RecordedError,
  type ReleaseClaim,
  type Session,
  type SessionPatch,
  recordError,
  type JsonText,
  type PauseReason,
  type TraceBody,
} from "@holdfast/core";
import { codeOf, sessionMoved, sessionNotFound, sessionPaused } from "./session-errors.ts";

/** How a session left this process. */
export type Departure =
  | {
      readonly type: "ended";
      readonly status: "completed" | "failed" | "cancelled";
      readonly output: JsonText | undefined;
      readonly error: RecordedError | undefined;
    }
  | { readonly type: "paused"; readonly reason: PauseReason; readonly fault: HoldfastError }
  /**
   * Storage refused a commit, the claim was lost, or the runtime closed: the session stays as its last commit
   * left it.
   */
  | {
      readonly type: "abandoned";
      readonly error: HoldfastError | undefined;
      /** The agent diverged from its journal, and a process with earlier code takes the session back. */
      readonly diverged?: true;
    };

/** The reason that the release of a claim names after a departure. */
export function reasonOf(departure: Departure): Pick<ReleaseClaim, "diverged"> {
  return departure.type === "abandoned" && departure.diverged === true ? { diverged: true } : {};
}

export function departureEvent(departure: Departure): TraceBody {
  if (departure.type === "paused") {
    return { type: "session_ended", status: "paused", error: recordError(departure.fault) };
  }
  if (departure.type === "ended") {
    const { status, error } = departure; // Recorded already.
    return { type: "session_ended", status, ...(error === undefined ? {} : { error }) };
  }
  const { error } = departure;
  return { type: "session_released", ...(error === undefined ? {} : { error: recordError(error) }) };
}

/** The outcome of a session when this process is done with it. */
export type Settled<Output = unknown> =
  | { readonly status: "completed"; readonly output: Output }
  | { readonly status: "failed"; readonly error: RecordedError }
  | {
      readonly status: "cancelled";
      readonly output: Output | undefined;
      readonly error: RecordedError | undefined;
    }
  | { readonly status: "paused"; readonly fault: HoldfastError }
  /** The session has not ended, but nothing more happens to it in this process. */
  | { readonly status: "released"; readonly error: HoldfastError | undefined };

export function settledBy(departure: Departure): Settled {
  if (departure.type === "paused") return { status: "paused", fault: departure.fault };
  if (departure.type === "abandoned") return { status: "released", error: departure.error };
  return ended(departure.status, departure.output, departure.error);
}

/** The departure of a session that a fault has ended or parked. */
export function faultedBy(
  { status, pauseReason: reason = "agent_fault", error }: SessionPatch,
  fault: HoldfastError,
): Departure {
  if (status === "paused") return { type: "paused", reason, fault };
  return { type: "ended", status: "failed", output: undefined, error };
}

export function settledAs(session: Session): Settled {
  if (session.status === "paused") return { status: "paused", fault: faultOf(session) };
  const error = session.error ?? (session.cancel?.mode === "hard" ? endedBy(session) : undefined);
  return ended(session.status as "completed", session.output, error);
}

/** Pauses that a row describes with more than its error. */
const ROW_PAUSES: ReadonlySet<PauseReason | undefined> = new Set([
  "budget_exceeded",
  "quota",
  "auth_required",
]);

/** Why a session is paused. */
function faultOf(session: Session): HoldfastError {
  const { pauseReason, error } = session;
  if (error === undefined || ROW_PAUSES.has(pauseReason)) return sessionPaused(session);
  const { code: _code, message, ...details } = error;
  return new HoldfastError(codeOf(error) ?? "session_paused", message, details);
}

/** The outcome of a session that is not driven here; `undefined` while it may still continue. */
export function leftAs(sessionId: string, session: Session | undefined): Settled | undefined {
  if (session === undefined) return { status: "released", error: sessionNotFound(sessionId) };
  const { status, move } = session;
  if (move?.isDone === true) return { status: "released", error: sessionMoved(sessionId, move.to) };
  // mutant: rolling-pause-settled
  const isPaused = status === "paused" && resumesAt(session) === undefined;
  return isEnded(status) || isPaused ? settledAs(session) : undefined;
}

/** The error of a session that storage has ended, without its agent. */
export function endedBy({ cancel }: Pick<Session, "cancel">): RecordedError {
  return { name: "CancelledError", message: cancel?.reason ?? "cancelled", code: "cancelled" };
}

function ended(
  status: "completed" | "failed" | "cancelled",
  output: string | undefined,
  error: RecordedError | undefined,
): Settled {
  switch (status) {
    case "completed":
      return { status, output: decodeJson(output) };
    case "failed":
      return { status, error: error ?? { name: "Error", message: "unknown" } };
    case "cancelled":
      return { status, output: decodeJson(output), error };
  }
}

export function outputOf<Output>(sessionId: string, settled: Settled<Output>): Output {
  switch (settled.status) {
    case "completed":
      return settled.output;
    case "failed":
      throw new HoldfastError("session_failed", `session ${sessionId} failed: ${settled.error.message}`, {
        ...detailsOf(settled.error),
        cause: errorFrom(settled.error),
      });
    case "cancelled":
      throw new HoldfastError("session_cancelled", `session ${sessionId} was cancelled`, {
        cause: settled.error === undefined ? undefined : errorFrom(settled.error),
      });
    case "paused":
      throw settled.fault;
    case "released":
      throw (
        settled.error ??
        new HoldfastError("session_paused", `session ${sessionId} is not over, and its process has stopped`)
      );
  }
}

function detailsOf({ at, got, expected, fix }: RecordedError): ErrorDetails {
  return {
    ...(at === undefined ? {} : { at }),
    ...(got === undefined ? {} : { got }),
    ...(expected === undefined ? {} : { expected }),
    ...(fix === undefined ? {} : { fix }),
  };
}
