// `usageLimitOf`: whether a server's refusal says that a usage limit is reached, and until when. Pure.
//
// A plain rate limit passes within minutes, and the task simply tries again. A usage limit lasts for hours or
// until somebody pays: a plan's allowance, a day's quota, an empty account.

import { MINUTE_MS } from "@holdfast/core";
import { retryAfterMs } from "./retry-after.ts";

export interface UsageLimit {
  /** Epoch milliseconds; absent where the server named no time. */
  readonly resetsAt?: number;
}

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly body: string | undefined;
}

/** A server that asks to wait for longer than this has reached a usage limit. */
export const USAGE_LIMIT_WAIT_MS = 10 * MINUTE_MS;

/** The part of a body that is searched. */
const BODY_CHARS_MAX = 20_000;

/** Names of usage limits in the bodies of Anthropic, OpenAI, Google and servers that are compatible with them. */
const LIMIT_NAMES =
  /insufficient_quota|usage_limit_reached|usage_limit_exceeded|usage_not_included|billing_error|billing_hard_limit_reached|credit balance is too low|specified API usage limits|"quotaId":\s*"[^"]*PerDay/i;

export function usageLimitOf({ status, headers, body = "" }: Refusal, now: number): UsageLimit | undefined {
  if (status !== 429 && status !== 402 && status !== 400 && status !== 403) return undefined;
  const text = body.slice(0, BODY_CHARS_MAX);
  const resetsAt = resetOf(headers, text, now);
  const isNamed = status === 402 || LIMIT_NAMES.test(text);
  const isLong = status === 429 && resetsAt !== undefined && resetsAt - now >= USAGE_LIMIT_WAIT_MS;
  if (!isNamed && !isLong) return undefined;
  return resetsAt === undefined || resetsAt <= now ? {} : { resetsAt };
}

/** The time at which the server allows more, in any of the forms that servers use. */
function resetOf(headers: Refusal["headers"], text: string, now: number): number | undefined {
  const after = retryAfterMs(headers, now);
  if (after !== undefined) return Math.round(now + after);
  const named =
    headers?.["anthropic-ratelimit-unified-reset"] ??
    headers?.["x-ratelimit-reset"] ??
    /"(?:resets_at|X-RateLimit-Reset)":\s*"?(\d{10,13})\b/i.exec(text)?.[1];
  if (named !== undefined) return epochMs(named);
  const seconds = /"(?:resets_in_seconds|retryDelay)":\s*"?(\d{1,9})(?:\.\d+)?s?\b/.exec(text)?.[1];
  if (seconds !== undefined) return now + Number(seconds) * 1_000;
  const day = /regain access on (\d{4}-\d\d-\d\d)(?: at (\d\d:\d\d))? ?UTC/i.exec(text);
  const date = day === null ? Number.NaN : Date.parse(`${day[1]}T${day[2] ?? "00:00"}:00Z`);
  return Number.isNaN(date) ? undefined : date;
}

/** Some servers give seconds, and others milliseconds. */
function epochMs(text: string): number | undefined {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1e9) return undefined;
  return number < 1e11 ? number * 1_000 : number;
}
