// The errors of an MCP server, by what a caller can do about them.
//
//   - `CallLostError` means that the call was sent and no answer came, so nobody knows whether it took
//     effect.
//   - `CallUnsentError` means that the server has not begun with the call: it may be sent again, whatever it
//     does.
//   - `SignInNeededError` means that the server wants a person to sign in. Some servers say so inside of a
//     result.

export class CallLostError extends Error {
  override name = "McpCallLostError";
}

export class CallUnsentError extends Error {
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

/** A refusal is short. A long text with such words is about something else. */
const SIGN_IN_CHARS = 1_000;
const SIGN_IN =
  /\b(401|unauthori[sz]ed|invalid[_ ]token|token (has )?expired|not signed in|authentication (is )?required)\b/i;

/** The next step after a `SignInNeededError`. */
export function signInAdvice(server: string): string {
  return `A person must sign in to the MCP server ${server}: \`holdfast mcp login ${server}\`. Do not repeat the call before that.`;
}

export function saysSignIn(text: string): boolean {
  return text.length < SIGN_IN_CHARS && SIGN_IN.test(text);
}

/** The output of a server may have the values that it was given. Other errors stay as they are. */
export function redactedError(error: unknown, redactor: { text: (text: string) => string }): unknown {
  const known = [SignInNeededError, ServerFailedError, CallLostError, CallUnsentError] as const;
  const kind = known.find((one) => error instanceof one);
  return kind === undefined ? error : new kind(redactor.text((error as Error).message));
}
