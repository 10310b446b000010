import { describe, expect, test } from "vitest";
import { usageLimitOf, USAGE_LIMIT_WAIT_MS } from "./usage-limit.ts";

const NOW = Date.UTC(2026, 10, 27, 12);
const MINUTE = 60_000;
const seconds = (at: number): string => String(at / 1_000);

describe("a usage limit", () => {
  test.each<[string, number, Record<string, string>, string, number | undefined]>([
    ["a long wait of any server", 429, { "retry-after": "3600" }, "", NOW + 60 * MINUTE],
    ["the account of OpenAI is empty", 429, {}, '{"error":{"code":"insufficient_quota"}}', undefined],
    [
      "a plan of OpenAI is used up",
      429,
      {},
      `{"error":{"type":"usage_limit_reached","resets_at":${seconds(NOW + 90 * MINUTE)}}}`,
      NOW + 90 * MINUTE,
    ],
    [
      "a plan of OpenAI is used up, with the rest of the time",
      429,
      {},
      '{"error":{"type":"usage_limit_reached","resets_in_seconds":5400}}',
      NOW + 90 * MINUTE,
    ],
    [
      "a plan of Anthropic is used up",
      429,
      { "anthropic-ratelimit-unified-reset": seconds(NOW + 120 * MINUTE) },
      '{"error":{"type":"rate_limit_error"}}',
      NOW + 120 * MINUTE,
    ],
    [
      "the limit that an account of Anthropic has set itself",
      400,
      {},
      '{"error":{"message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}',
      Date.UTC(2026, 11, 1),
    ],
    [
      "the account of Anthropic is empty",
      400,
      {},
      '{"error":{"message":"Your credit balance is too low to access the Anthropic API."}}',
      undefined,
    ],
    [
      "a day's quota of Google",
      429,
      {},
      '{"error":{"details":[{"violations":[{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"39s"}]}}',
      NOW + 39_000,
    ],
    [
      "a day's quota of OpenRouter",
      429,
      {},
      `{"error":{"metadata":{"headers":{"X-RateLimit-Reset":"${NOW + 600 * MINUTE}"}}}}`,
      NOW + 600 * MINUTE,
    ],
    ["no credit anywhere", 402, {}, "", undefined],
    ["a reset that is over", 402, { "retry-after": "0" }, "", undefined],
  ])("%s", (_, status, headers, body, resetsAt) => {
    expect(usageLimitOf({ status, headers, body }, NOW)).toEqual(resetsAt === undefined ? {} : { resetsAt });
  });
});

describe("no usage limit", () => {
  test.each<[string, number, Record<string, string>, string]>([
    ["a short wait", 429, { "retry-after": seconds(USAGE_LIMIT_WAIT_MS - 1_000) }, ""],
    ["a rate limit that names no time", 429, {}, '{"error":{"type":"rate_limit_error"}}'],
    ["a server that is down for an hour", 503, { "retry-after": "3600" }, ""],
    ["a wrong key", 401, {}, "insufficient_quota"],
    ["a request that is refused", 400, {}, '{"error":{"message":"too long"}}'],
    ["a forbidden model", 403, {}, "{}"],
    ["a time that is none", 429, { "x-ratelimit-reset": "soon", "retry-after": "later" }, ""],
  ])("%s", (_, status, headers, body) => {
    expect(usageLimitOf({ status, headers, body }, NOW)).toBeUndefined();
  });
});
