// `Departure`: how a session left this process, and the trace event for that.

import {
  recordError,
  type HoldfastError,
  type JsonText,
  type PauseReason,
  type RecordedError,
  type TraceBody,
} from "@holdfast/core";

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
  | { readonly type: "abandoned"; readonly error: HoldfastError | undefined };

export function departureEvent(departure: Departure): TraceBody {
  if (departure.type === "paused") {
    return { type: "session_ended", status: "paused", error: recordError(departure.fault) };
  }
  const { error } = departure;
  const recorded = error === undefined ? {} : { error: recordError(error) };
  return departure.type === "ended"
    ? { type: "session_ended", status: departure.status, ...recorded }
    : { type: "session_released", ...recorded };
}
