// The policies of a task that are recorded with it: when it is tried again, and what a repeat of it does
// outside.

/**
 * The effect of a task on the outside world, and so what a repeat of it does there.
 *
 * `read` has no effect. `repeatable` has the same effect again. The receiver of a `keyed` one removes
 * duplicates by the task's idempotency key. Nobody removes those of a `once`, so an attempt of it that was
 * lost is never run again: the task ends as *uncertain*.
 */
export type EffectClass = (typeof EFFECT_CLASSES)[number];

export const EFFECT_CLASSES = ["read", "repeatable", "keyed", "once"] as const;

/** How often and when a task is tried again. Delays in milliseconds. */
export interface RetryPolicy {
  /** The number of all attempts, the first included, over all processes. */
  readonly maxAttempts?: number;
  /** The delay before the second attempt: 200 by default. */
  readonly initialDelayMs?: number;
  /** The factor by which the delay grows: 2 by default. */
  readonly factor?: number;
  /** The longest delay: 30,000 by default. */
  readonly maxDelayMs?: number;
  /** Errors with one of these names or codes are not tried again. */
  readonly nonRetryable?: readonly string[];
}
