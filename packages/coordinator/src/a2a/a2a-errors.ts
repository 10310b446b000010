// `toA2aError`: an error of ours as one of A2A 1.0, with its code, its place and its remedy in the metadata.
//
// An internal error has the fixed text and the request's id that every other protocol gives.

import {
  A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import { ERROR_TABLE, type ErrorCode, type HoldfastError } from "@holdfast/core";

import { toProblem } from "../call/refusal.ts";

type Made = new (options: {
  readonly message: string;
  readonly metadata: Record<string, string>;
}) => A2AError;

/** The errors that the protocol has. Any other mistake of the caller is one in the parameters. */
const OWN: { readonly [code in ErrorCode]?: Made } = {
  session_not_found: TaskNotFoundError,
  run_terminal: TaskNotCancelableError,
  session_ended: UnsupportedOperationError,
  session_moved: UnsupportedOperationError,
  answered_otherwise: UnsupportedOperationError,
  question_not_found: UnsupportedOperationError,
  agent_not_found: UnsupportedOperationError,
  not_implemented: UnsupportedOperationError,
};

export function toA2aError(error: HoldfastError, requestId: string): A2AError {
  const { code, detail, at, got, expected, fix, instance } = toProblem(error, requestId);
  const parts = [detail, expected === undefined ? "" : `expected: ${expected}`, fix ?? ""];
  const metadata = Object.fromEntries(
    Object.entries({ code, at, got, expected, fix, requestId: instance }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as Record<string, string>;
  return new (OWN[code] ?? (isMistake(error) ? RequestMalformedError : A2AError))({
    message: parts.filter((part) => part !== "").join("; "),
    metadata,
  });
}

/** The status of HTTP that says when or with which token to try again; 200 for what only this protocol answers. */
export function statusFor(error: HoldfastError): number {
  const { http } = ERROR_TABLE[error.code];
  return [401, 403, 429, 503].includes(http) ? http : 200;
}

function isMistake(error: HoldfastError): boolean {
  const { http } = ERROR_TABLE[error.code];
  return http >= 400 && http < 500 && statusFor(error) === 200;
}
