// `ERROR_TABLE`: the codes of our errors, and what each means on the command line and in the API.

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
export const ERROR_TABLE = tableOf({
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
  uncommitted_changes: { exit: 6, http: 409, rpc: "failed_precondition" },
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
  answered_otherwise: { exit: 6, http: 409, rpc: "failed_precondition" },
  session_not_ended: { exit: 6, http: 409, rpc: "failed_precondition" },
  session_has_children: { exit: 6, http: 409, rpc: "failed_precondition" },
  duplicate_runner: { exit: 6, http: 409, rpc: "already_exists" },
  idempotency_conflict: { exit: 6, http: 409, rpc: "already_exists" },
  no_matching_runner: { exit: 1, http: 409, rpc: "failed_precondition" },
  internal: { exit: 70, http: 500, rpc: "internal" },
});

/** The published type has the codes and not each number, which would be 10 KB. */
function tableOf<Code extends string>(
  rows: Readonly<Record<Code, ErrorRow>>,
): Readonly<Record<Code, ErrorRow>> {
  return rows;
}

/** The stable codes of errors. `docs/errors.md` says what each of them means. */
export type ErrorCode = keyof typeof ERROR_TABLE;
