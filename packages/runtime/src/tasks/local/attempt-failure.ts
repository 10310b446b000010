// `attemptFailure`: a thrown value as the outcome of an attempt, and whether another attempt can help.

import {
  HoldfastError,
  PauseError,
  recordError,
  type AttemptOutcome,
  type ErrorCode,
  type PauseRequest,
} from "@holdfast/core";

/** Codes of our errors that a retry cannot fix. */
const FINAL_CODES: ReadonlySet<ErrorCode> = new Set([
  "not_json",
  "invalid_input",
  "invalid_output",
  "limit_exceeded",
  "unknown_task_kind",
  "usage",
  "policy_denied",
  "model_auth",
  "quota_exceeded",
  "secret_missing",
]);

/**
 * The outcome of an attempt that threw this. Never throws.
 *
 * @param redact as for `recordError`.
 */
export function attemptFailure(
  thrown: unknown,
  redact?: (text: string) => string,
): Extract<AttemptOutcome, { readonly status: "failed" }> {
  const error = recordError(thrown, redact);
  // A foreign error with a code of the same text says nothing of a retry.
  const final =
    error.name === "NonRetryableError" || (HoldfastError.is(thrown) && FINAL_CODES.has(thrown.code));
  const retryAfterMs = retryAfterOf(thrown);
  const pause = pauseOf(thrown);
  return {
    status: "failed",
    error,
    retryable: !final && pause === undefined,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(pause === undefined ? {} : { pause }),
  };
}

/** The delay before a retry that a thrown value asks for. Never throws, whatever was thrown. */
function retryAfterOf(thrown: unknown): number | undefined {
  try {
    const ms = (thrown as { retryAfterMs?: unknown } | null | undefined)?.retryAfterMs;
    return typeof ms === "number" && Number.isFinite(ms) && ms > 0 ? ms : undefined;
  } catch {
    return undefined;
  }
}

/** The pause that a thrown value asks for. Never throws, whatever was thrown. */
function pauseOf(thrown: unknown): PauseRequest | undefined {
  try {
    return PauseError.is(thrown) ? readPause(thrown.pause) : undefined;
  } catch {
    return undefined;
  }
}

/** A copy of what is known of a request, because it may come from another copy of this package. */
function readPause(pause: PauseRequest): PauseRequest | undefined {
  if (pause.reason === "auth_required" || pause.reason === "agent_fault") return { reason: pause.reason };
  if (pause.reason !== "quota" || typeof pause.pool !== "string") return undefined;
  const { pool, resetsAt, resumeAtReset } = pause;
  return {
    reason: "quota",
    pool,
    ...(Number.isSafeInteger(resetsAt) ? { resetsAt } : {}),
    ...(resumeAtReset === true ? { resumeAtReset } : {}),
  };
}
