// `momentOf`, `checkTimeout`, `checkRetry`: checks of an author's values before they are recorded. Numbers
// come first, because NaN and Infinity have no JSON, and would stop or spin a timer that others share.

import { UsageError } from "../errors/errors.ts";
import type { RetryPolicy } from "../journal/record.ts";

/**
 * Epoch milliseconds as an integer that every clock and storage can hold; `undefined` when `time` has none.
 */
export function momentOf(time: number): number | undefined {
  if (typeof time !== "number") return undefined; // The sum of a text and a number is a text.
  const at = Math.ceil(time);
  return Number.isSafeInteger(at) ? at : undefined;
}

/** A time-out, where `Infinity` means no time-out. @throws UsageError */
export function checkTimeout(timeoutMs: number | undefined, whose = "a task"): number | undefined {
  return checkPatience(timeoutMs, `${whose} cannot have a time-out of`);
}

/** How long a whole task may take, where `Infinity` means no limit. @throws UsageError */
export function checkDeadline(deadlineMs: number | undefined): number | undefined {
  return checkPatience(deadlineMs, "a task cannot have a deadline of");
}

function checkPatience(ms: number | undefined, refusal: string): number | undefined {
  if (ms === undefined || ms === Infinity) return undefined;
  if (Number.isFinite(ms) && ms > 0) return ms;
  throw new UsageError(`${refusal} ${ms} ms`, { expected: "a number of milliseconds above 0" });
}

/** The time that a cancelled session has for its own end, in whole milliseconds. @throws UsageError */
export function checkGrace(graceMs: number, whose: string): number {
  if (Number.isFinite(graceMs) && graceMs >= 0) return Math.ceil(graceMs);
  throw new UsageError(`${whose} cannot be given ${graceMs} ms to clean up`, {
    expected: "a finite number of milliseconds, 0 or more",
    fix: "use hard: true to end it at once",
  });
}

/** Only the policy's own fields, so that they can be recorded. @throws UsageError */
export function checkRetry(policy: RetryPolicy | undefined): RetryPolicy | undefined {
  if (policy === undefined) return undefined;
  const { maxAttempts, initialDelayMs, factor, maxDelayMs, nonRetryable } = policy;
  if (maxAttempts !== undefined && !(maxAttempts >= 1))
    throw badRetry("maxAttempts", maxAttempts, "1 or more");
  for (const [name, value] of Object.entries({ initialDelayMs, factor, maxDelayMs })) {
    if (value !== undefined && !(Number.isFinite(value) && value >= 0))
      throw badRetry(name, value, "a finite number, 0 or more");
  }
  return {
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(initialDelayMs === undefined ? {} : { initialDelayMs }),
    ...(factor === undefined ? {} : { factor }),
    ...(maxDelayMs === undefined ? {} : { maxDelayMs }),
    ...(nonRetryable === undefined ? {} : { nonRetryable: nonRetryable.map(String) }),
  };
}

function badRetry(field: string, got: unknown, expected: string): UsageError {
  return new UsageError(`a retry policy cannot have ${field}: ${String(got)}`, { expected });
}
