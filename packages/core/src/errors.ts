// Every error Holdfast raises, by who must act on it.
//
// A `code` is API: stable, snake_case, listed in `ERROR_TABLE` with the exit code of the command line. Check errors with
// `code` or `X.is(e)`, never with `instanceof` across packages and never by text. Expected endings of domain
// operations (fenced, duplicate, ended) are values, not errors; suspension is neither.

import { lineOf } from "./author-line.ts";

/** What happened, where, what was there, what was expected and how to mend it. The parts after `message` are optional. */
export interface ErrorDetails {
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly cause?: unknown;
}

/** Exit code of the command line for each error code. 0 is success, 1 a session that failed. */
export const ERROR_TABLE = {
  usage: 2,
  not_json: 2,
  unknown_task_kind: 2,
  invalid_input: 2,
  invalid_output: 1,
  invalid_signal: 1,
  invalid_state: 1,
  state_version: 11,
  agent_version: 11,
  child_failed: 1,
  budget_exceeded: 9,
  unknown_price: 9,
  limit_exceeded: 1,
  non_durable_await: 1,
  nondeterminism: 1,
  task_failed: 1,
  task_timeout: 1,
  wait_timed_out: 1,
  cancelled: 1,
  session_failed: 1,
  session_cancelled: 6,
  session_paused: 1,
  agent_error: 1,
  agent_not_found: 3,
  agent_invalid: 3,
  config_invalid: 3,
  session_not_found: 4,
  file_not_found: 2,
  session_exists: 6,
  session_claimed: 6,
  session_ended: 6,
  session_not_ended: 6,
  session_has_children: 6,
  locked: 6,
  storage_unavailable: 10,
  storage_full: 10,
  storage_readonly: 10,
  corrupt_record: 10,
  version_unsupported: 11,
  policy_denied: 12,
  model_auth: 5,
  model_unavailable: 7,
  internal: 70,
} as const;

export type ErrorCode = keyof typeof ERROR_TABLE;

/** The only base class. `name` is a field, so that it survives minification and reads well in traces. */
export class HoldfastError extends Error {
  override name = "HoldfastError";
  readonly code: ErrorCode;
  readonly at: string | undefined;
  readonly got: string | undefined;
  readonly expected: string | undefined;
  readonly fix: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.at = details.at;
    this.got = details.got;
    this.expected = details.expected;
    this.fix = details.fix;
  }

  /** Structural, so that it also holds across two copies of this package. */
  static is(value: unknown): value is HoldfastError {
    if (!isReadableError(value)) return false;
    const { code } = value as { readonly code?: unknown };
    return typeof code === "string" && Object.hasOwn(ERROR_TABLE, code);
  }
}

/** The caller's programmer must change the call. Never worth a retry. */
export class UsageError extends HoldfastError {
  override name = "UsageError";
  constructor(message: string, details: ErrorDetails & { readonly code?: ErrorCode } = {}) {
    super(details.code ?? "usage", message, details);
  }
}

/** What was asked for does not exist. */
export class NotFoundError extends HoldfastError {
  override name = "NotFoundError";
}

/** What was asked for contradicts what is so: ended, exists, claimed, locked. */
export class ConflictError extends HoldfastError {
  override name = "ConflictError";
}

/** Ours to wait out: retry with back-off. */
export class UnavailableError extends HoldfastError {
  override name = "UnavailableError";
}

/** A named limit of `limits.ts` was reached. */
export class LimitError extends HoldfastError {
  override name = "LimitError";
  constructor(limit: string, message: string, details: ErrorDetails = {}) {
    super("limit_exceeded", message, { expected: `at most the limit "${limit}"`, ...details });
  }
}

/** A task ended without an output: thrown at the agent's `await`. `cause` is the last attempt's, as an `Error` again. */
export class TaskFailedError extends HoldfastError {
  override name = "TaskFailedError";
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

/** A child ended without an output: thrown at `ctx.waitForChild`. `cause` is the error it failed with. */
export class ChildFailedError extends HoldfastError {
  override name = "ChildFailedError";
  readonly childId: string;
  /** How it ended. */
  readonly ending: "failed" | "cancelled" | "timed_out";

  constructor(childId: string, ending: "failed" | "cancelled" | "timed_out", cause: unknown) {
    const error = cause as Partial<RecordedError> | null;
    const why = typeof error?.message === "string" ? `: ${error.message}` : "";
    const how = { failed: "failed", cancelled: "was cancelled", timed_out: "ran out of time" }[ending];
    super("child_failed", `child ${childId} ${how}${why}`, { cause });
    this.childId = childId;
    this.ending = ending;
  }
}

/** A wait's own `timeoutMs` passed. */
export class WaitTimeoutError extends HoldfastError {
  override name = "WaitTimeoutError";
  constructor(what: string) {
    super("wait_timed_out", `${what} timed out`);
  }
}

/** The session, or this one task or wait, is being cancelled. The agent may clean up. */
export class CancelledError extends HoldfastError {
  override name = "CancelledError";
  constructor(what: string, reason?: string) {
    super("cancelled", `${what} was cancelled${reason === undefined ? "" : `: ${reason}`}`);
  }
}

/** The agent asked for something else than its journal holds. The session parks; the journal is untouched. */
export class NondeterminismError extends HoldfastError {
  override name = "NondeterminismError";
  readonly sessionId: string;
  readonly seq: number;
  readonly recorded: string;
  readonly attempted: string;

  constructor(
    where: { sessionId: string; seq: number; line?: string | undefined; mayDrift?: boolean },
    recorded: string,
    attempted: string,
  ) {
    super("nondeterminism", `session ${where.sessionId} diverged from its journal at position ${where.seq}`, {
      ...(where.line === undefined ? {} : { at: where.line }),
      got: attempted,
      expected: recorded,
      fix:
        "usually the agent's code was changed, or it read a clock, randomness or other outside state that is not recorded. " +
        `Nothing was committed: resume with the old code${where.mayDrift === true ? ", or with --accept-drift, which lets the recorded result stand for the new input" : ""}`,
    });
    this.sessionId = where.sessionId;
    this.seq = where.seq;
    this.recorded = recorded;
    this.attempted = attempted;
  }
}

/** Stored bytes that cannot be what we wrote. An operator must act; never answered with a default. */
export class CorruptRecordError extends HoldfastError {
  override name = "CorruptRecordError";
  constructor(where: string, message: string, details: ErrorDetails = {}) {
    super("corrupt_record", `${message} (${where})`, { at: where, ...details });
  }
}

/** A promise of ours does not hold. Never caught to continue: the session is abandoned as it is. */
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

/** An error as it is recorded: plain data, bounded, the same for the process that saw it and the one that replays it. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** The place it is about, or where in the author's code it was thrown. */
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly cause?: RecordedError;
}

const ERROR_TEXT_MAX = 8_192;
const CAUSES_MAX = 4;
const DETAILS = ["got", "expected", "fix"] as const;

/** Any thrown value as a recorded error. Never throws, whatever it is given; long texts are cut with a mark. */
export function recordError(thrown: unknown, depth = 0): RecordedError {
  try {
    if (typeof thrown !== "object" || thrown === null) return { name: "Error", message: cut(String(thrown)) };
    const fields = thrown as Record<string, unknown>;
    const { name, message, code, cause } = fields;
    const at = typeof fields["at"] === "string" ? fields["at"] : authorLine(thrown);
    const details = DETAILS.filter((field) => typeof fields[field] === "string");
    return {
      name: typeof name === "string" && name !== "" ? cut(name) : "Error",
      message: cut(typeof message === "string" ? message : JSON.stringify(thrown)),
      ...(typeof code === "string" ? { code: cut(code) } : {}),
      ...(at === undefined ? {} : { at: cut(at) }),
      ...Object.fromEntries(details.map((field) => [field, cut(fields[field] as string)])),
      ...(cause !== undefined && cause !== null && depth < CAUSES_MAX
        ? { cause: recordError(cause, depth + 1) }
        : {}),
    };
  } catch {
    return { name: "Error", message: "an error that cannot be read" };
  }
}

/** Where it was thrown; errors of ours that are thrown into an agent have no stack (K3), and what is no Error neither. */
function authorLine(thrown: object): string | undefined {
  return thrown instanceof Error ? lineOf(thrown) : undefined;
}

/** A recorded error as one that can be thrown, the same in the process that saw it and in the one that replays it. */
export function errorFrom(recorded: RecordedError): Error {
  const { name, message, cause, ...details } = recorded;
  const error = new Error(message, cause === undefined ? undefined : { cause: errorFrom(cause) });
  return Object.assign(error, { name, ...details, stack: `${name}: ${message}` });
}

function cut(text: string): string {
  return text.length <= ERROR_TEXT_MAX
    ? text
    : `${text.slice(0, ERROR_TEXT_MAX)}… (${text.length} characters)`;
}

/**
 * Anything thrown as an error that can be read: itself, or its text where it is none. Never throws: what an agent throws
 * may have no text, and what throws in a handler of errors ends the process.
 */
export function toError(thrown: unknown): Error {
  return isReadableError(thrown) ? thrown : new Error(recordError(thrown).message);
}

function isReadableError(value: unknown): value is Error {
  try {
    if (!(value instanceof Error)) return false;
    const { name, message, stack = "", code, cause } = value as Error & { readonly code?: unknown };
    void [code, cause]; // Reading them did not throw.
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
  return ERROR_TABLE[error.code];
}
