// `HoldfastError` and its classes: every error of Holdfast, by the person or program that must act on it.
//
// A `code` is API: stable, snake_case, and listed in `ERROR_TABLE` with its meaning on the command line and
// in the API. Check errors with `code` or `X.is(e)`, never with `instanceof` across packages and never by
// text. Expected endings of domain operations (fenced, duplicate, ended) are values and not errors.
// Suspension is neither.

import { lineOf } from "./author-line.ts";

/** The details of an error: its place, the value found, the value expected, and the fix. All are optional. */
export interface ErrorDetails {
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly cause?: unknown;
}

/** The names that gRPC and Connect use. */
export type RpcCode =
  | "invalid_argument"
  | "deadline_exceeded"
  | "not_found"
  | "already_exists"
  | "permission_denied"
  | "resource_exhausted"
  | "failed_precondition"
  | "aborted"
  | "out_of_range"
  | "unimplemented"
  | "internal"
  | "unavailable"
  | "data_loss"
  | "unauthenticated"
  | "unknown";

interface ErrorRow {
  readonly exit: number;
  readonly http: number;
  readonly rpc: RpcCode;
}

/**
 * The meaning of each error code: the exit code of the command line, the status of REST, and the code of gRPC
 * and Connect. Exit code 0 is success, and 1 a session that failed. Errors that only an agent meets are not
 * for the API: they are 500 and `unknown` there.
 */
export const ERROR_TABLE = {
  usage: { exit: 2, http: 422, rpc: "invalid_argument" },
  not_json: { exit: 2, http: 422, rpc: "invalid_argument" },
  unknown_task_kind: { exit: 2, http: 422, rpc: "invalid_argument" },
  invalid_input: { exit: 2, http: 422, rpc: "invalid_argument" },
  invalid_output: { exit: 1, http: 500, rpc: "unknown" },
  invalid_signal: { exit: 1, http: 500, rpc: "unknown" },
  invalid_state: { exit: 1, http: 500, rpc: "unknown" },
  state_version: { exit: 11, http: 409, rpc: "failed_precondition" },
  agent_version: { exit: 11, http: 409, rpc: "failed_precondition" },
  child_failed: { exit: 1, http: 500, rpc: "unknown" },
  budget_exceeded: { exit: 9, http: 409, rpc: "failed_precondition" },
  unknown_price: { exit: 9, http: 422, rpc: "invalid_argument" },
  limit_exceeded: { exit: 1, http: 422, rpc: "resource_exhausted" },
  non_durable_await: { exit: 1, http: 500, rpc: "unknown" },
  nondeterminism: { exit: 1, http: 500, rpc: "unknown" },
  task_failed: { exit: 1, http: 500, rpc: "unknown" },
  task_timeout: { exit: 1, http: 500, rpc: "unknown" },
  wait_timed_out: { exit: 1, http: 500, rpc: "unknown" },
  cancelled: { exit: 1, http: 500, rpc: "unknown" },
  session_failed: { exit: 1, http: 500, rpc: "unknown" },
  session_cancelled: { exit: 6, http: 409, rpc: "failed_precondition" },
  session_paused: { exit: 1, http: 409, rpc: "failed_precondition" },
  session_lost: { exit: 1, http: 500, rpc: "unknown" },
  agent_error: { exit: 1, http: 500, rpc: "unknown" },
  external_agent_failed: { exit: 1, http: 500, rpc: "unknown" },
  restore_incomplete: { exit: 1, http: 500, rpc: "unknown" },
  secret_missing: { exit: 5, http: 409, rpc: "failed_precondition" },
  secret_key: { exit: 5, http: 409, rpc: "failed_precondition" },
  agent_not_found: { exit: 3, http: 404, rpc: "not_found" },
  agent_invalid: { exit: 3, http: 422, rpc: "invalid_argument" },
  config_invalid: { exit: 3, http: 422, rpc: "invalid_argument" },
  program_missing: { exit: 3, http: 422, rpc: "invalid_argument" },
  session_not_found: { exit: 4, http: 404, rpc: "not_found" },
  file_not_found: { exit: 2, http: 404, rpc: "not_found" },
  session_exists: { exit: 6, http: 409, rpc: "already_exists" },
  session_claimed: { exit: 6, http: 409, rpc: "aborted" },
  session_ended: { exit: 6, http: 409, rpc: "failed_precondition" },
  session_moved: { exit: 6, http: 409, rpc: "failed_precondition" },
  locked: { exit: 6, http: 409, rpc: "aborted" },
  storage_unavailable: { exit: 10, http: 503, rpc: "unavailable" },
  storage_full: { exit: 10, http: 503, rpc: "unavailable" },
  storage_readonly: { exit: 10, http: 503, rpc: "unavailable" },
  storage_lost: { exit: 10, http: 503, rpc: "unavailable" },
  corrupt_record: { exit: 10, http: 500, rpc: "data_loss" },
  version_unsupported: { exit: 11, http: 409, rpc: "failed_precondition" },
  policy_denied: { exit: 12, http: 403, rpc: "permission_denied" },
  model_auth: { exit: 5, http: 502, rpc: "unavailable" },
  quota_exceeded: { exit: 7, http: 429, rpc: "resource_exhausted" },
  model_unavailable: { exit: 7, http: 503, rpc: "unavailable" },
  // Errors by which the API of a coordinator refuses a call.
  validation: { exit: 2, http: 422, rpc: "invalid_argument" },
  malformed_json: { exit: 2, http: 400, rpc: "invalid_argument" },
  bad_request: { exit: 2, http: 400, rpc: "invalid_argument" },
  bad_path: { exit: 2, http: 400, rpc: "invalid_argument" },
  bad_event_id: { exit: 2, http: 400, rpc: "out_of_range" },
  unauthenticated: { exit: 5, http: 401, rpc: "unauthenticated" },
  token_revoked: { exit: 5, http: 401, rpc: "unauthenticated" },
  insufficient_scope: { exit: 5, http: 403, rpc: "permission_denied" },
  forbidden: { exit: 5, http: 403, rpc: "permission_denied" },
  forbidden_origin: { exit: 5, http: 403, rpc: "permission_denied" },
  not_found: { exit: 4, http: 404, rpc: "not_found" },
  method_not_allowed: { exit: 2, http: 405, rpc: "unimplemented" },
  not_implemented: { exit: 2, http: 501, rpc: "unimplemented" },
  request_timeout: { exit: 7, http: 408, rpc: "deadline_exceeded" },
  conflict: { exit: 6, http: 409, rpc: "aborted" },
  run_terminal: { exit: 6, http: 409, rpc: "failed_precondition" },
  fenced: { exit: 6, http: 409, rpc: "aborted" },
  in_use: { exit: 6, http: 409, rpc: "failed_precondition" },
  unsupported_protocol: { exit: 11, http: 409, rpc: "failed_precondition" },
  too_large: { exit: 2, http: 413, rpc: "resource_exhausted" },
  unsupported_media_type: { exit: 2, http: 415, rpc: "invalid_argument" },
  headers_too_large: { exit: 2, http: 431, rpc: "resource_exhausted" },
  rate_limited: { exit: 7, http: 429, rpc: "resource_exhausted" },
  unavailable: { exit: 7, http: 503, rpc: "unavailable" },
  // Errors that a caller of the network meets, and that no answer of the API is.
  not_a_coordinator: { exit: 7, http: 500, rpc: "unknown" },
  cannot_listen: { exit: 7, http: 500, rpc: "unknown" },
  runner_not_found: { exit: 4, http: 404, rpc: "not_found" },
  token_not_found: { exit: 4, http: 404, rpc: "not_found" },
  schedule_not_found: { exit: 4, http: 404, rpc: "not_found" },
  question_not_found: { exit: 4, http: 404, rpc: "not_found" },
  session_not_ended: { exit: 6, http: 409, rpc: "failed_precondition" },
  session_has_children: { exit: 6, http: 409, rpc: "failed_precondition" },
  duplicate_runner: { exit: 6, http: 409, rpc: "already_exists" },
  idempotency_conflict: { exit: 6, http: 409, rpc: "already_exists" },
  no_matching_runner: { exit: 1, http: 409, rpc: "failed_precondition" },
  internal: { exit: 70, http: 500, rpc: "internal" },
} as const satisfies Readonly<Record<string, ErrorRow>>;

export type ErrorCode = keyof typeof ERROR_TABLE;

const DETAILS = ["got", "expected", "fix"] as const;

/** The only base class. `name` is a field, so that it survives minification and reads well in traces. */
export class HoldfastError extends Error {
  override name = "HoldfastError";
  readonly code: ErrorCode;
  // Declared only, so that unknown details are absent: Node shows every field of an uncaught error.
  declare readonly at?: string | undefined;
  declare readonly got?: string | undefined;
  declare readonly expected?: string | undefined;
  declare readonly fix?: string | undefined;

  constructor(code: ErrorCode, message: string, { cause, ...details }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    for (const name of ["at", ...DETAILS] as const)
      if (details[name] !== undefined) Object.assign(this, { [name]: details[name] });
  }

  /**
   * Whether a value is an error of the class that is asked. The check is structural, by code and for the
   * classes below by name, so that it also holds across two copies of this package. An error that was
   * recorded and read again has both. It has none of the fields and is therefore of no class.
   */
  static is<T>(this: abstract new (...args: never) => T, value: unknown): value is T {
    if (!isReadableError(value)) return false;
    const { code } = value as { readonly code?: unknown };
    if (typeof code !== "string" || !Object.hasOwn(ERROR_TABLE, code)) return false;
    if ((this as unknown) === HoldfastError || value instanceof this) return true;
    return value.name === this.name && Object.getPrototypeOf(value) !== Error.prototype;
  }
}

/** The programmer of the caller must change the call. Never worth a retry. */
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

/** The caller waits and retries with back-off. */
export class UnavailableError extends HoldfastError {
  override name = "UnavailableError";
}

/** A named limit of `limits.ts` was reached. */
export class LimitError extends HoldfastError {
  override name = "LimitError";
  /** The name in `limits.ts`. */
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

/** The lost attempt was one of a task whose effect happens at most `once`. Look before doing it again. */
export class UncertainEffectError extends AttemptLostError {
  override name = "UncertainEffectError";
}

/** A child ended without an output: thrown at `ctx.waitForChild`. `cause` is the error it failed with. */
export class ChildFailedError extends HoldfastError {
  override name = "ChildFailedError";
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
        `Nothing was committed: resume with the old code${where.mayDrift === true ? `, ${DRIFT_FIX}` : ""}`,
    });
    this.sessionId = where.sessionId;
    this.seq = where.seq;
    this.recorded = recorded;
    this.attempted = attempted;
  }
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
 * An error as it is recorded: plain data, bounded, the same for the process that saw it and the one that
 * replays it.
 */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  /** The place that the error is about, or the place in the author's code where it was thrown. */
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly cause?: RecordedError;
}

const ERROR_TEXT_MAX = 8_192;
const CAUSES_MAX = 4;

/**
 * Any thrown value as a recorded error. Never throws, whatever the value; long texts are cut with a mark.
 *
 * @param redact called for each text before it is cut, so that no part of a secret stays. Must not throw.
 */
export function recordError(
  thrown: unknown,
  redact: (text: string) => string = (text) => text,
): RecordedError {
  return recordedError(thrown, (text) => cut(redact(text)), 0);
}

function recordedError(thrown: unknown, read: (text: string) => string, depth: number): RecordedError {
  try {
    if (typeof thrown !== "object" || thrown === null)
      return { name: "Error", message: read(String(thrown)) };
    const fields = thrown as Record<string, unknown>;
    const { name, message, code, cause } = fields;
    const at = typeof fields["at"] === "string" ? fields["at"] : authorLine(thrown);
    const details = DETAILS.filter((field) => typeof fields[field] === "string");
    return {
      name: typeof name === "string" && name !== "" ? read(name) : "Error",
      message: read(typeof message === "string" ? message : JSON.stringify(thrown)),
      ...(typeof code === "string" ? { code: read(code) } : {}),
      ...(at === undefined ? {} : { at: read(at) }),
      ...Object.fromEntries(details.map((field) => [field, read(fields[field] as string)])),
      ...(cause !== undefined && cause !== null && depth < CAUSES_MAX
        ? { cause: recordedError(cause, read, depth + 1) }
        : {}),
    };
  } catch {
    return { name: "Error", message: "an error that cannot be read" };
  }
}

/**
 * The place where it was thrown. Errors of ours that are thrown into an agent have no stack (K3), and other
 * values have none either.
 */
function authorLine(thrown: object): string | undefined {
  return thrown instanceof Error ? lineOf(thrown) : undefined;
}

/**
 * A recorded error as an error that can be thrown. It is the same in the process that saw it and in the
 * process that replays it.
 */
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
  return ERROR_TABLE[error.code].exit;
}
