// Errors of the AI SDK as errors of Holdfast (`modelError`). The code says whether the user must act, and
// whether another attempt can help.
//
// A key is never part of an error. Servers' texts are shown only where they help, with the key cut out. For a
// refused key no text is shown, because servers quote parts of the key.

import { defined, HoldfastError, PauseError, toError, UnavailableError } from "@holdfast/core";
import { Redactor } from "@holdfast/system";
import type { APICallError } from "@ai-sdk/provider";

import { retryAfterMs } from "./retry-after.ts";
import { usageLimitOf, type UsageLimit } from "./usage-limit.ts";

export interface ErrorSource {
  /** `anthropic/claude-…`. */
  readonly model: string;
  /** The environment variable that holds the key. */
  readonly keyVariable: string | undefined;
  /** Texts that may not appear. */
  readonly secrets: readonly string[];
}

const TEXT_CHARS_MAX = 500;

export function modelError(thrown: unknown, source: ErrorSource): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  if (!isApiCallError(thrown) || thrown.statusCode === undefined || thrown.statusCode === 200) {
    const away = unavailable(source, sayOf(thrown, source));
    return reachedNoServer(thrown) ? Object.assign(away, UNBILLED) : away;
  }
  // A server that answers with an error bills nothing.
  return Object.assign(refusal(thrown, thrown.statusCode, source), UNBILLED);
}

const UNBILLED = { isUnbilled: true } as const;

/** Whether an attempt that ended with this error used nothing. */
export function isUnbilled(error: unknown): boolean {
  return error instanceof Error && "isUnbilled" in error && error.isUnbilled === true;
}

/** Errors of name resolution, of a connection that did not come about, and of a certificate that was not accepted. */
const NOT_CONNECTED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|EPROTO|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+|\w*SELF_SIGNED_CERT\w*|UNABLE_TO_\w+|HOSTNAME_MISMATCH)$/;

/** Whether the request was never sent. A connection that broke later may have been billed. */
function reachedNoServer(thrown: unknown): boolean {
  let error = thrown;
  for (let depth = 0; error instanceof Error && depth < 5; depth++, error = error.cause) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code !== undefined && NOT_CONNECTED.test(code)) return true;
    if (code === "ETIMEDOUT" && syscall === "connect") return true;
  }
  return false;
}

function refusal(thrown: APICallError, status: number, source: ErrorSource): HoldfastError {
  const said = sayOf(thrown, source);
  const { responseHeaders: headers, responseBody: body } = thrown;
  const now = Date.now();
  const limit = usageLimitOf({ status, headers, body }, now);
  if (limit !== undefined) return limitReached(source, limit, said);
  switch (status) {
    case 401:
    case 403:
      return keyRefused(source, status);
    case 404:
      return new HoldfastError(
        "config_invalid",
        `${source.model}: the server does not know this model or address (404): ${said}`,
        {
          fix: "set HOLDFAST_MODEL to a model your key may use",
        },
      );
    default:
      if (status >= 500 || status === 408 || status === 409 || status === 425 || status === 429) {
        return unavailable(source, `it answered ${status}: ${said}`, retryAfterMs(headers, now));
      }
      return new HoldfastError("invalid_input", `${source.model} refused the request (${status}): ${said}`);
  }
}

export function unavailable(source: ErrorSource, why: string, afterMs?: number): UnavailableError {
  const error = new UnavailableError("model_unavailable", `${source.model} is not available: ${why}`, {
    fix: "wait for the next attempt; if the error stays, check the network and the provider's status page",
  });
  return afterMs === undefined ? error : Object.assign(error, { retryAfterMs: afterMs });
}

/**
 * The last of several attempts at a model that is not available. The session pauses, because a person or time
 * can bring the model back.
 */
export function outage({ message }: HoldfastError, model: string): PauseError {
  return new PauseError("model_unavailable", message, {
    fix: "check the network and the provider's status page",
    pause: { reason: "quota", pool: model },
  });
}

function keyRefused({ model, keyVariable }: ErrorSource, status: number): HoldfastError {
  const name = keyVariable ?? "OPENAI_API_KEY";
  const what = keyVariable === undefined ? "the server wants a key" : `the key in ${name} was refused`;
  // The process has the key, and does not know from where.
  const fix =
    `replace the key where it comes from: ${name} in the environment of the command that runs the session, else the ` +
    `stored secret with \`holdfast secret set ${name}\`; a local stack or a runner takes it when it starts`;
  return new PauseError("model_auth", `${model}: ${what} (${status})`, {
    fix,
    pause: { reason: "auth_required" },
  });
}

function limitReached(
  { model, keyVariable }: ErrorSource,
  { resetsAt }: UsageLimit,
  said: string,
): HoldfastError {
  const until = resetsAt === undefined ? "" : ` until ${new Date(resetsAt).toISOString()}`;
  const key = keyVariable === undefined ? "" : ` of the key in ${keyVariable}`;
  return new PauseError("quota_exceeded", `${model}: the usage limit${key} is reached${until}: ${said}`, {
    fix: `${resetsAt === undefined ? "add credit or raise the limit at the provider" : "wait for the reset"}, or set another key`,
    pause: { reason: "quota", pool: model, ...defined({ resetsAt }) },
  });
}

/** By its name, because asking its class would load the SDK. */
function isApiCallError(thrown: unknown): thrown is APICallError {
  return thrown instanceof Error && thrown.name === "AI_APICallError";
}

function sayOf(thrown: unknown, { secrets }: ErrorSource): string {
  const messages: string[] = [];
  for (let error = thrown; error instanceof Error && messages.length < 3; error = error.cause) {
    if (error.message !== "" && !messages.includes(error.message)) messages.push(error.message);
  }
  const text = messages.length === 0 ? toError(thrown).message : messages.join(": ");
  // A server may answer with megabytes. The text that is searched for keys is longer than the text that is
  // shown, so that no key is cut in two.
  const redactor = new Redactor(secrets, { pieces: true });
  const safe = redactor.text(text.slice(0, TEXT_CHARS_MAX * 4).replaceAll(/\s+/g, " "));
  return safe.length > TEXT_CHARS_MAX ? `${safe.slice(0, TEXT_CHARS_MAX)}…` : safe;
}
