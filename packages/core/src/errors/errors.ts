// `HoldfastError` and its classes: every error of Holdfast, by the person or program that must act on it.
//
// A `code` is API: stable, snake_case, and listed in `ERROR_TABLE` (`error-table.ts`) with its meaning on the
// command line and in the API. Check errors with `code` or `X.is(e)`, never with `instanceof` across packages
// and never by text. Expected endings of domain operations (fenced, duplicate, ended) are values and not
// errors. Suspension is neither.

import { ERROR_TABLE, type ErrorCode } from "./error-table.ts";
import { isOwnError, OWN_ERROR } from "./own-error.ts";
import { DETAILS, errorFrom, recordError, type RecordedError } from "./recorded-error.ts";

/** The details of an error: its place, the value found, the value expected, and the fix. All are optional. */
export interface ErrorDetails {
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly cause?: unknown;
}

/**
 * The base class of all errors of Holdfast. `code` says which error it is. `name` is a field, so that it
 * survives minification.
 */
export class HoldfastError extends Error {
  override name = "HoldfastError";
  /** The stable code, by which programs tell errors apart. */
  readonly code: ErrorCode;
  // Declared only, so that unknown details are absent: Node shows every field of an uncaught error.
  /** The place that the error is about: a file with its line, an option, a field. */
  declare readonly at?: string | undefined;
  /** The value or name that was given. */
  declare readonly got?: string | undefined;
  /** The values or names that are accepted. */
  declare readonly expected?: string | undefined;
  /** The next step that puts it right. */
  declare readonly fix?: string | undefined;

  constructor(code: ErrorCode, message: string, { cause, ...details }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    for (const name of ["at", ...DETAILS] as const)
      if (details[name] !== undefined) Object.assign(this, { [name]: details[name] });
  }

  /** The mark of our errors. */
  get [OWN_ERROR](): true {
    return true;
  }

  /**
   * Whether a value is an error of the class that is asked. Our errors bear a mark, and classes are told by
   * name, so that it also holds across two copies of this package. A foreign error with a code of ours is
   * none. An error of ours that was recorded and read again is a `HoldfastError`. It has none of the fields
   * of its class and is therefore of no other.
   */
  static is<T>(this: abstract new (...args: never) => T, value: unknown): value is T {
    if (!isReadableError(value) || !isOwnError(value)) return false;
    const { code } = value as { readonly code?: unknown };
    if (typeof code !== "string" || !Object.hasOwn(ERROR_TABLE, code)) return false;
    if ((this as unknown) === HoldfastError || value instanceof this) return true;
    return value.name === this.name && Object.getPrototypeOf(value) !== Error.prototype;
  }
}

/** The call cannot be right, and its author must change it. A repetition never helps. */
export class UsageError extends HoldfastError {
  override name = "UsageError";
  constructor(message: string, details: ErrorDetails & { readonly code?: ErrorCode } = {}) {
    super(details.code ?? "usage", message, details);
  }
}

/** The thing that was asked for does not exist. */
export class NotFoundError extends HoldfastError {
  override name = "NotFoundError";
}

/** The request contradicts the present state: ended, exists, claimed, locked. */
export class ConflictError extends HoldfastError {
  override name = "ConflictError";
}

/** The call may succeed later: the caller waits, and repeats the call with back-off. */
export class UnavailableError extends HoldfastError {
  override name = "UnavailableError";
}

/** A named limit was reached. */
export class LimitError extends HoldfastError {
  override name = "LimitError";
  /** The name of the limit, such as `depth`. */
  readonly limit: string;

  constructor(limit: string, message: string, details: ErrorDetails = {}) {
    super("limit_exceeded", message, { expected: `at most the limit "${limit}"`, ...details });
    this.limit = limit;
  }
}

/**
 * A task ended without an output: thrown at the agent's `await`. `cause` is the last attempt's error, as an
 * `Error` again.
 */
export class TaskFailedError extends HoldfastError {
  override name = "TaskFailedError";
  declare readonly cause: Error & Readonly<Record<string, unknown>>;
  readonly taskId: string;
  readonly kind: string;
  readonly attempts: number;

  constructor(task: { taskId: string; kind: string; attempts: number }, recorded: RecordedError) {
    const times = task.attempts === 1 ? "" : ` after ${task.attempts} attempts`;
    super("task_failed", `task "${task.kind}" failed${times}: ${recorded.message}`, {
      cause: errorFrom(recorded),
    });
    this.taskId = task.taskId;
    this.kind = task.kind;
    this.attempts = task.attempts;
  }
}

/**
 * The last attempt of a task was lost with its process, and nobody knows its outcome. `cause` has the same
 * name.
 */
export class AttemptLostError extends TaskFailedError {
  override name = "AttemptLostError";
}

/**
 * The attempt was lost, or was cut off by a time-out, and its task's effect happens at most `once`. Look
 * before doing it again.
 */
export class UncertainEffectError extends AttemptLostError {
  override name = "UncertainEffectError";
}

/** A child ended without an output: thrown at `ctx.waitForChild`. `cause` is the error it failed with. */
export class ChildFailedError extends HoldfastError {
  override name = "ChildFailedError";
  /** The session of the child. */
  readonly childId: string;
  /** The way in which the child ended. */
  readonly ending: ChildEnding;

  constructor(childId: string, ending: ChildEnding, cause: unknown) {
    const error = cause as Partial<RecordedError> | null;
    const why = typeof error?.message === "string" ? `: ${error.message}` : "";
    super("child_failed", `child ${childId} ${ENDED_AS[ending]}${why}`, { cause });
    this.childId = childId;
    this.ending = ending;
  }
}

const ENDED_AS = {
  failed: "failed",
  cancelled: "was cancelled",
  timed_out: "ran out of time",
  budget_exceeded: "was cancelled",
} as const;

/** `budget_exceeded`: cancelled because a budget said so (`onExhausted`). */
type ChildEnding = keyof typeof ENDED_AS;

/** A wait's own `timeoutMs` passed. */
export class WaitTimeoutError extends HoldfastError {
  override name = "WaitTimeoutError";
  constructor(what: string) {
    super("wait_timed_out", `${what} timed out`);
  }
}

/** The session, or one task or wait of it, is being cancelled. The agent may clean up. */
export class CancelledError extends HoldfastError {
  override name = "CancelledError";
  constructor(what: string, reason?: string) {
    super("cancelled", `${what} was cancelled${reason === undefined ? "" : `: ${reason}`}`);
  }
}

/** The agent's asks differ from its journal. The session parks, and the journal is untouched. */
export class NondeterminismError extends HoldfastError {
  override name = "NondeterminismError";
  readonly sessionId: string;
  readonly seq: number;
  readonly recorded: string;
  readonly attempted: string;

  constructor(
    where: {
      sessionId: string;
      seq: number;
      /** Where the replay began: after the last checkpoint, or at 0. */
      baseSeq: number;
      /** How many tasks have ended since. */
      ended: number;
      line?: string | undefined;
      mayDrift?: boolean;
    },
    recorded: string,
    attempted: string,
  ) {
    super("nondeterminism", `session ${where.sessionId} diverged from its journal at position ${where.seq}`, {
      ...(where.line === undefined ? {} : { at: where.line }),
      got: attempted,
      expected: recorded,
      fix:
        "usually the agent's code was changed, or it read a clock, randomness or other outside state that is not recorded. " +
        `Nothing was committed. Change this place by \`if (ctx.patched("NAME"))\` with the old code as its other side, and resume the session; or ${forkAdvice(where)}; or resume with the old code${where.mayDrift === true ? `, ${DRIFT_FIX}` : ""}`,
    });
    this.sessionId = where.sessionId;
    this.seq = where.seq;
    this.recorded = recorded;
    this.attempted = attempted;
  }
}

function forkAdvice(where: {
  readonly sessionId: string;
  readonly baseSeq: number;
  readonly ended: number;
}): string {
  const { sessionId, baseSeq, ended } = where;
  const from = baseSeq === 0 ? "at its start" : "at its last checkpoint";
  const tasks = ended === 1 ? "the task that has" : `the ${ended} tasks that have`;
  const repeated =
    ended === 0 ? "" : `, and runs ${tasks} ended since a second time, with their effects outside`;
  return `\`holdfast fork ${sessionId} --at ${baseSeq}\` begins ${from} with the new code${repeated}`;
}

const DRIFT_FIX = "or with --accept-drift, which lets the recorded result stand for the new input";

/** Whether a recorded divergence is one of inputs alone, which a person can accept. */
export function mayAcceptDrift(error: RecordedError | undefined): boolean {
  return error?.code === "nondeterminism" && error.fix?.endsWith(DRIFT_FIX) === true;
}

/** Stored bytes are not as we wrote them. An operator must act; no default takes their place. */
export class CorruptRecordError extends HoldfastError {
  override name = "CorruptRecordError";
  constructor(where: string, message: string, details: ErrorDetails = {}) {
    super("corrupt_record", `${message} (${where})`, { at: where, ...details });
  }
}

/** A promise of our own code does not hold. Never caught to continue: the session is abandoned as it is. */
export class InvariantError extends HoldfastError {
  override name = "InvariantError";
  constructor(message: string) {
    super("internal", message, {
      fix: "this is a defect of Holdfast: please report it with the journal of the session",
    });
  }
}

export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/**
 * Any thrown value as an error that can be read: the error itself, or the value's text. Never throws, because
 * an agent may throw a value without a text, and an exception in an error handler ends the process.
 */
export function toError(thrown: unknown): Error {
  return isReadableError(thrown) ? thrown : new Error(recordError(thrown).message);
}

function isReadableError(value: unknown): value is Error {
  try {
    if (!(value instanceof Error)) return false;
    const { name, message, stack = "", code, cause } = value as Error & { readonly code?: unknown };
    void [code, cause, isOwnError(value)]; // Reading them did not throw.
    return [name, message, stack].every((text) => typeof text === "string");
  } catch {
    return false;
  }
}

/** One function turns anything thrown into ours. Never throws. */
export function toHoldfastError(thrown: unknown): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  const error = toError(thrown);
  return new HoldfastError("internal", error.message, { cause: error });
}

/** One function turns ours into an exit code. */
export function exitCodeOf(error: HoldfastError): number {
  return ERROR_TABLE[error.code].exit;
}
