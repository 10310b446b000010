// `Refusal` is an error answer of the API: as problem+json (RFC 9457), or with the codes of gRPC and Connect.
//
//   - One table decides (`ERROR_TABLE` in core): a code has the same meaning over every protocol.
//   - An internal error is answered with a fixed text and the request's id. Stacks, statements, paths and
//     secrets appear only in the log.

import { randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  defined,
  ERROR_TABLE,
  HoldfastError,
  type ErrorCode,
  type ErrorDetails,
  type RpcCode,
} from "@holdfast/core";
import { ErrorDetailSchema } from "@holdfast/proto";

/** Makes the id of a request, for its answer and the log. */
export function newRequestId(): string {
  return `req_${randomUUID()}`;
}

/**
 * One mistake in a request, and its place: a JSON pointer into the body, or into the object of path and query
 * parameters.
 */
export interface FieldError {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
}

interface RefusalDetails extends ErrorDetails {
  readonly errors?: readonly FieldError[];
  readonly retryAfterMs?: number;
  /** Additional headers of the REST answer. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that the API or a service refuses. */
export class Refusal extends HoldfastError {
  override name = "Refusal";
  readonly errors: readonly FieldError[];
  readonly retryAfterMs: number | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, details: RefusalDetails = {}) {
    super(code, message, details);
    this.errors = details.errors ?? [];
    this.retryAfterMs = details.retryAfterMs;
    this.headers = details.headers ?? {};
  }
}

/** Further mistakes are only counted, so that an answer is not many times as large as its request. */
export const ERRORS_MAX = 100;

/** All mistakes of a request in one answer. */
export function invalid(errors: readonly FieldError[]): Refusal {
  const [first] = errors;
  const more = errors.length < 2 ? "" : ` (and ${errors.length - 1} more in "errors")`;
  return new Refusal("validation", `${first?.pointer ?? ""}: ${first?.message ?? "is not valid"}${more}`, {
    ...(first === undefined ? {} : { at: first.pointer }),
    fix: "correct the request, which changed nothing; see `/openapi.json` for what it may contain",
    errors: errors.slice(0, ERRORS_MAX),
  });
}

/** A problem of RFC 9457. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The request's id. */
  readonly instance: string;
  readonly code: ErrorCode;
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly errors?: readonly FieldError[];
}

export function toProblem(error: HoldfastError, requestId: string): Problem {
  const { code, message, at, got, expected, fix, errors } = partsOf(error);
  const status = ERROR_TABLE[code].http;
  return {
    type: `urn:holdfast:error:${code.replaceAll("_", "-")}`,
    title: code.replaceAll("_", " "),
    status,
    detail: message,
    instance: requestId,
    code,
    ...defined({ at, got, expected, fix }),
    ...(errors.length === 0 ? {} : { errors }),
  };
}

export function headersOf(error: HoldfastError): Record<string, string> {
  const retryAfterMs = retryAfterOf(error);
  return {
    ...(error instanceof Refusal ? error.headers : {}),
    ...(ERROR_TABLE[error.code].http === 401 ? { "WWW-Authenticate": "Bearer" } : {}),
    ...(retryAfterMs === undefined
      ? {}
      : { "Retry-After": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) }),
  };
}

export function toConnectError(error: HoldfastError, requestId: string): ConnectError {
  const { code, message, at, got, expected, fix, errors } = partsOf(error);
  const retryAfterMs = retryAfterOf(error);
  const detail = {
    desc: ErrorDetailSchema,
    value: {
      code,
      ...defined({ at, got, expected, fix }),
      requestId,
      errors: [...errors],
      ...(retryAfterMs === undefined ? {} : { retryAfterMs: Math.ceil(retryAfterMs) }),
    },
  };
  return new ConnectError(message, CONNECT_CODES[ERROR_TABLE[code].rpc], headersOf(error), [detail]);
}

const CONNECT_CODES: Readonly<Record<RpcCode, Code>> = {
  invalid_argument: Code.InvalidArgument,
  deadline_exceeded: Code.DeadlineExceeded,
  not_found: Code.NotFound,
  already_exists: Code.AlreadyExists,
  permission_denied: Code.PermissionDenied,
  resource_exhausted: Code.ResourceExhausted,
  failed_precondition: Code.FailedPrecondition,
  aborted: Code.Aborted,
  out_of_range: Code.OutOfRange,
  unimplemented: Code.Unimplemented,
  internal: Code.Internal,
  unavailable: Code.Unavailable,
  data_loss: Code.DataLoss,
  unauthenticated: Code.Unauthenticated,
  unknown: Code.Unknown,
};

/** Whether the cause is internal and must be found by the operator. */
export function isOurFault(error: HoldfastError): boolean {
  return ERROR_TABLE[error.code].http >= 500 && !(error instanceof Refusal);
}

/** The parts of an error that the caller may see. */
function partsOf(
  error: HoldfastError,
): Pick<Refusal, "code" | "message" | "at" | "got" | "expected" | "fix" | "errors"> {
  if (!isOurFault(error)) {
    const { code, message, at, got, expected, fix } = error;
    return { code, message, at, got, expected, fix, errors: error instanceof Refusal ? error.errors : [] };
  }
  const message =
    ERROR_TABLE[error.code].http === 503
      ? "the coordinator cannot do this now; try again"
      : "the coordinator failed; its log has the cause, under this request's id";
  return {
    code: error.code,
    message,
    at: undefined,
    got: undefined,
    expected: undefined,
    fix: undefined,
    errors: [],
  };
}

function retryAfterOf(error: HoldfastError): number | undefined {
  if (error instanceof Refusal && error.retryAfterMs !== undefined) return error.retryAfterMs;
  return ERROR_TABLE[error.code].http === 503 ? 1000 : undefined;
}
