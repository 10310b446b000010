// When a failed attempt is tried again. Pure: randomness and time are given.

import type { RecordedError } from "../errors/errors.ts";
import type { RetryPolicy } from "../journal/record.ts";

export const RETRY_DEFAULTS = { maxAttempts: 3, initialDelayMs: 200, factor: 2, maxDelayMs: 30_000 } as const;

/** No failure may ask for more patience than this. */
const RETRY_AFTER_MAX_MS = 24 * 60 * 60 * 1_000;

/**
 * The delay before the next attempt, or `undefined` when this was the last one.
 *
 * Full jitter over the upper half (AWS Architecture Blog, "Exponential Backoff and Jitter"): sessions that failed
 * together do not come back together.
 *
 * @param attempt the one that failed, from 1.
 * @param random in [0, 1).
 */
export function retryDelayMs(
  policy: RetryPolicy | undefined,
  attempt: number,
  failure: { readonly error: RecordedError; readonly retryable: boolean; readonly retryAfterMs?: number },
  random: number,
): number | undefined {
  const {
    maxAttempts = RETRY_DEFAULTS.maxAttempts,
    initialDelayMs = RETRY_DEFAULTS.initialDelayMs,
    factor = RETRY_DEFAULTS.factor,
    maxDelayMs = RETRY_DEFAULTS.maxDelayMs,
  } = policy ?? {};
  if (!failure.retryable || attempt >= maxAttempts) return undefined;
  const { name, code } = failure.error;
  if (policy?.nonRetryable?.some((listed) => listed === name || listed === code) === true) return undefined;
  const growth = Math.min(factor ** (attempt - 1), Number.MAX_VALUE); // Of no delay at all any multiple is none.
  const full = Math.min(maxDelayMs, initialDelayMs * growth);
  return Math.max(
    Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS),
    Math.round(full / 2 + (full / 2) * random),
  );
}

/**
 * Whether an attempt that died with its process is followed by another. A policy its author wrote counts every attempt
 * (H8), so `maxAttempts: 1` is at most once; without one, losing a process is nobody's fault and never uses them up.
 */
export function mayRetryLost(policy: RetryPolicy | undefined, attempt: number): boolean {
  return policy?.maxAttempts === undefined || attempt < policy.maxAttempts;
}
