// The texts with which external agents say that a usage limit is reached, or that nobody is signed in.

import { expect, test } from "vitest";

import type { ExternalEnd } from "../external-agent-protocol.ts";
import { limitOf } from "./agent-limit.ts";

const NOW = Date.parse("2026-11-27T10:30:00Z");
const error = (message: string): ExternalEnd => ({ type: "error", message });

test.each<[string, string | undefined]>([
  ["Claude AI usage limit reached|1795777200", "2026-11-27T11:00:00Z"],
  ["api_error: You've hit your session limit · resets 3pm (UTC)", "2026-11-27T15:00:00Z"],
  ["5-hour limit reached ∙ resets 3:45am (Europe/Berlin)", "2026-11-28T02:45:00Z"],
  ["You've hit your limit · resets Dec 2, 9am (America/New_York)", "2026-12-02T14:00:00Z"],
  ["You've hit your weekly limit · resets Jan 3, 9am (UTC)", "2027-01-03T09:00:00Z"],
  ["You've hit your usage limit. Try again in 2 days 3 hours 5 minutes.", "2026-11-29T13:35:00Z"],
  ["You've hit your usage limit. Upgrade to Pro or try again in 20 minutes.", "2026-11-27T10:50:00Z"],
  ['{"type":"usage_limit_reached","resets_at":1795777200}', "2026-11-27T11:00:00Z"],
  ["Credit balance is too low", undefined],
  ["429: You exceeded your current quota, please check your plan", undefined],
  ["You've hit your limit · resets 3pm (Nowhere/Town)", undefined],
])("a usage limit and its reset: %s", (text, reset) => {
  const limit = limitOf(error(text), NOW);
  expect(limit?.reason).toBe("quota");
  expect(limit?.resetsAt).toBe(reset === undefined ? undefined : Date.parse(reset));
});

test.each([
  "Invalid API key · Please run /login",
  "OAuth token has expired. Please obtain a new token",
  "Authentication required",
  "unexpected status 401 Unauthorized: Missing bearer",
  "You are not logged in",
])("nobody is signed in: %s", (text) => {
  expect(limitOf(error(text), NOW)).toEqual({ reason: "auth_required", message: text });
  expect(limitOf({ type: "died", message: text, hasStarted: false }, NOW)?.reason).toBe("auth_required");
});

test.each<ExternalEnd>([
  error("the server answered 529: overloaded"),
  error("429: rate limited, retry in 3 s"),
  error("prompt is too long: limit of 200000 tokens"),
  { type: "answered", text: "The page says: usage limit reached, please run /login" },
  { type: "died", message: "usage limit reached", hasStarted: true },
  { type: "aborted" },
])("no limit: %j", (end) => {
  expect(limitOf(end, NOW)).toBeUndefined();
});

test("an adapter that knows more than the text decides", () => {
  const end: ExternalEnd = { type: "error", message: "no", cause: "quota", resetsAt: NOW + 5 };
  expect(limitOf(end, NOW)).toEqual({ reason: "quota", message: "no", resetsAt: NOW + 5 });
});
