// The class of an error of the MCP SDK or of a transport (`classOf`), by what a caller can do about it.
//
// An error that this file does not know counts as a loss.

import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client";

import {
  CallLostError,
  CallUnsentError,
  NotConnectedError,
  saysSignIn,
  ServerFailedError,
  SignInNeededError,
  STREAM_LOST,
} from "../protocol/call-errors.ts";

const LOSSES: readonly SdkErrorCode[] = [
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.SendFailed,
];
/** HTTP: the server has refused the request before it began. */
const NOT_BEGUN = [408, 425, 429, 503];

type ErrorClass = new (message: string) => Error;

export function classOf(error: unknown): ErrorClass {
  if (error instanceof ServerFailedError) return ServerFailedError;
  if (error instanceof NotConnectedError) return CallUnsentError;
  if (error instanceof UnauthorizedError) return SignInNeededError;
  if (error instanceof SdkHttpError) return classOfStatus(error.status);
  if (error instanceof ProtocolError) return classOfAnswer(error);
  if (error instanceof SdkError) return LOSSES.includes(error.code) ? CallLostError : ServerFailedError;
  return CallLostError; // An error that is not known counts as a loss.
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
