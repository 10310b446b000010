// The errors of an MCP server, by what a caller can do about them (`serverError`).
//
//   call-errors-1. `CallLostError` means that the call was sent and no answer came, so nobody knows whether it took effect. An error
//       that this file does not know counts as a loss.
//   call-errors-2. `CallUnsentError` means that the server has not begun with the call: it may be sent again, whatever it does.
//   call-errors-3. `SignInNeededError` means that the server wants a person to sign in. Some servers say so inside of a result.

import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client";

export class CallLostError extends Error {
  override name = "McpCallLostError";
}

class CallUnsentError extends Error {
  override name = "McpCallUnsentError";
}

/** A server that cannot be reached, does not speak MCP, or refuses a call. */
export class ServerFailedError extends Error {
  override name = "McpServerError";
}

export class SignInNeededError extends ServerFailedError {
  override name = "McpSignInNeededError";
}

/** A program says this of its end, and an older one ends at the question which version of MCP it speaks. */
export const ENDED = "its process ended";

/** The stream of a request ended before its answer came. The code is ours: servers use others. */
export const STREAM_LOST = -39_001;

/** A failure of the network before the request was sent. */
export class NotConnectedError extends Error {
  override name = "McpNotConnectedError";
}

const LOSSES: readonly SdkErrorCode[] = [
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.SendFailed,
];
/** HTTP: the server has refused the request before it began. */
const NOT_BEGUN = [408, 425, 429, 503];
/** A refusal is short. A long text with such words is about something else. */
const SIGN_IN_CHARS = 1_000;
const SIGN_IN =
  /\b(401|unauthori[sz]ed|invalid[_ ]token|token (has )?expired|not signed in|authentication (is )?required)\b/i;

/** The next step after a `SignInNeededError`. */
export function signInAdvice(server: string): string {
  return `A person must sign in to the MCP server ${server}: \`holdfast mcp login ${server}\`. Do not repeat the call before that.`;
}

type ErrorClass = new (message: string) => Error;

/** The class of an error of the SDK or of a transport. */
export function classOf(error: unknown): ErrorClass {
  if (error instanceof ServerFailedError) return ServerFailedError;
  if (error instanceof NotConnectedError) return CallUnsentError;
  if (error instanceof UnauthorizedError) return SignInNeededError;
  if (error instanceof SdkHttpError) return classOfStatus(error.status);
  if (error instanceof ProtocolError) return classOfAnswer(error);
  if (error instanceof SdkError) return LOSSES.includes(error.code) ? CallLostError : ServerFailedError;
  return CallLostError; // call-errors-1.
}

function classOfStatus(status: number): ErrorClass {
  if (status === 401) return SignInNeededError;
  if (status === 404 || NOT_BEGUN.includes(status)) return CallUnsentError; // 404: the server has forgotten the session of the protocol.
  return status >= 500 ? CallLostError : ServerFailedError;
}

function classOfAnswer({ code, message }: ProtocolError): ErrorClass {
  if (code === STREAM_LOST) return CallLostError;
  return code === 401 || saysSignIn(message) ? SignInNeededError : ServerFailedError;
}

/** call-errors-3. */
export function saysSignIn(text: string): boolean {
  return text.length < SIGN_IN_CHARS && SIGN_IN.test(text);
}

/** The output of a server may have the values that it was given. Other errors stay as they are. */
export function redactedError(error: unknown, redactor: { text: (text: string) => string }): unknown {
  const known = [SignInNeededError, ServerFailedError, CallLostError, CallUnsentError] as const;
  const kind = known.find((one) => error instanceof one);
  return kind === undefined ? error : new kind(redactor.text((error as Error).message));
}
