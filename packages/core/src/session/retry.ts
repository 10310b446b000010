// `retryDelayMs`, `mayRetryLost`: when a failed attempt is tried again. Pure: randomness and time are
// arguments.

import { DAY_MS } from "../units.ts";
import type { RecordedError } from "../errors/recorded-error.ts";
import type { EffectClass, RetryPolicy } from "../journal/task-policy.ts";

export const RETRY_DEFAULTS = { maxAttempts: 3, initialDelayMs: 200, factor: 2, maxDelayMs: 30_000 } as const;

/** The longest delay that a failure may ask for. */
const RETRY_AFTER_MAX_MS = DAY_MS;

/**
 * The delay before the next attempt, or `undefined` when this was the last one.
 *
 * Full jitter over the upper half (AWS Architecture Blog, "Exponential Backoff and Jitter"): sessions that
 * failed together do not come back together.
 *
 * @param attempt number of the failed attempt, from 1.
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
  const { name, code, data } = failure.error;
  const listed = [name, code, data?.["code"]].filter((one) => one !== undefined).map(String);
  if (policy?.nonRetryable?.some((one) => listed.includes(one)) === true) return undefined;
  const growth = Math.min(factor ** (attempt - 1), Number.MAX_VALUE); // A delay of zero stays zero.
  const full = Math.min(maxDelayMs, initialDelayMs * growth);
  return Math.max(
    Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS),
    Math.round(full / 2 + (full / 2) * random),
  );
}

/**
 * Whether another attempt follows an attempt that died with its process. A policy that the author wrote
 * counts every attempt (H8), apart from those that an orderly stop hands over. Without such a policy, lost
 * attempts do not count, because they are not the task's fault. An effect that happens `once` is never repeated.
 */
export function mayRetryLost(
  {
    retry: policy,
    effect,
  }: { readonly retry: RetryPolicy | undefined; readonly effect: EffectClass | undefined },
  attempt: number,
): boolean {
  // mutant: lost-effect-repeated
  if (effect === "once") return false;
  // mutant: attempts-unlimited
  return policy?.maxAttempts === undefined || attempt < policy.maxAttempts;
}
