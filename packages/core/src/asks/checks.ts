// `checkMoment`, `checkTimeout`, `checkRetry`, `checkName`: checks of an author's values before they are
// recorded. Numbers come first, because NaN and Infinity have no JSON, and would stop or spin a timer that
// others share.

import { callerLine } from "../errors/author-line.ts";
import { UsageError } from "../errors/errors.ts";
import { isName } from "../ids.ts";
import { CHILD_ENDED, isReservedName } from "../journal/signal-names.ts";
import type { FaultMemory } from "../replay/fault-memory.ts";
import { timerWithoutTime } from "../replay/faults.ts";
import type { KernelParts } from "../replay/turn.ts";
import type { RetryPolicy } from "../journal/task-policy.ts";

/** Epoch milliseconds as an integer that every clock and storage can hold. @throws UsageError */
export function checkMoment(time: number): number {
  const at = typeof time === "number" ? Math.ceil(time) : NaN; // The sum of a text and a number is a text.
  if (Number.isSafeInteger(at)) return at;
  throw timerWithoutTime(time, callerLine());
}

/** The time at which a wait gives up; `Infinity` is never. @throws UsageError, which is remembered. */
export function momentAfter(
  { cursor, faults }: Pick<KernelParts, "cursor" | "faults">,
  ms: number | undefined,
): number | undefined {
  return ms === undefined || ms === Infinity ? undefined : faults.check(checkMoment, cursor.now + ms);
}

/** @throws UsageError, which is remembered, unless the value is a text of 1 to `max` characters. */
export function refuseUnlessText(faults: FaultMemory, value: unknown, what: string, max: number): void {
  if (typeof value === "string" && value !== "" && value.length <= max && value.isWellFormed()) return;
  const is = typeof value === "string" ? "a text that cannot be kept" : typeof value;
  const expected = `a text${max === Infinity ? "" : ` of 1 to ${max} characters`}`;
  throw faults.fail(new UsageError(`${what} is ${is}`, { expected }));
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

/** Refuses a name that no signal can have that an agent waits for. @throws UsageError */
export function checkAwaited(name: string): void {
  if (name !== CHILD_ENDED) checkName(name, "signal");
}

/** Refuses a name that an author cannot give. @throws UsageError */
export function checkName(name: string, what: string): void {
  // Names of other kinds stay a mistake of the code, which parks the session until it is corrected.
  if (what === "task" && typeof name !== "string")
    throw new UsageError("the name of a task is no text", {
      got: name === null ? "null" : typeof name,
      expected: 'a name, such as "charge the card"',
      fix: "call a task of defineTask by ctx.scheduleTask(task, input)",
    });
  if (isName(name) && !isReservedName(name)) return;
  const line = callerLine();
  throw new UsageError(`"${name}" cannot be the name of a ${what}`, {
    ...(line === undefined ? {} : { at: line }),
    expected: `1 to 200 letters, digits, spaces and . _ : / @ + -, not starting with "answer:", "child:", "child-end:", "request:" or "reply:"`,
  });
}
