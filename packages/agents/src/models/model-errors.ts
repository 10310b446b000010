// Errors of the AI SDK as errors of Holdfast (`modelError`). The code says whether the user must act, and
// whether another attempt can help.
//
// A key is never part of an error. Servers' texts are shown only where they help, with the key cut out. For a
// refused key no text is shown, because servers quote parts of the key.

import { HoldfastError, toError, UnavailableError } from "@holdfast/core";
import { Redactor } from "@holdfast/runtime/internal";
import type { APICallError } from "ai";

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
    return unavailable(source, sayOf(thrown, source));
  }
  // A server that answers with an error bills nothing.
  return Object.assign(refusal(thrown, thrown.statusCode, source), UNBILLED);
}

const UNBILLED = { isUnbilled: true } as const;

/** Whether an attempt that ended with this error used nothing. */
export function isUnbilled(error: unknown): boolean {
  return error instanceof Error && "isUnbilled" in error && error.isUnbilled === true;
}

function refusal(thrown: APICallError, status: number, source: ErrorSource): HoldfastError {
  const said = sayOf(thrown, source);
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
    case 402:
      return noCredit(source);
    default:
      if (isOutOfQuota(thrown)) return noCredit(source);
      if (status >= 500 || status === 408 || status === 409 || status === 425 || status === 429) {
        return unavailable(
          source,
          `it answered ${status}: ${said}`,
          retryAfterMs(thrown.responseHeaders, Date.now()),
        );
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

function keyRefused({ model, keyVariable }: ErrorSource, status: number): HoldfastError {
  const named =
    keyVariable === undefined ? "the server wants a key" : `the key in ${keyVariable} was refused`;
  return new HoldfastError(
    "model_auth",
    `${model}: ${named} (${status}). Set ${keyVariable ?? "OPENAI_API_KEY"} to a valid key`,
    {
      fix: "set it and resume the session",
    },
  );
}

function noCredit({ model, keyVariable }: ErrorSource): HoldfastError {
  const message = `${model}: the account behind ${keyVariable ?? "the key"} has no credit left`;
  return new HoldfastError("model_auth", message, {
    fix: "add credit or use another key, then resume the session",
  });
}

/** By its name, because asking its class would load the SDK. */
function isApiCallError(thrown: unknown): thrown is APICallError {
  return thrown instanceof Error && thrown.name === "AI_APICallError";
}

/** OpenAI reports an empty account as 429, which would be tried again for nothing. */
function isOutOfQuota(error: APICallError): boolean {
  return error.responseBody?.includes("insufficient_quota") === true;
}

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfterMs(
  headers: Readonly<Record<string, string>> | undefined,
  now: number,
): number | undefined {
  const exact = Number(headers?.["retry-after-ms"] ?? Number.NaN);
  if (exact >= 0) return exact;
  const after = headers?.["retry-after"];
  if (after === undefined || after.trim() === "") return undefined;
  const seconds = Number(after);
  if (seconds >= 0) return seconds * 1_000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
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
