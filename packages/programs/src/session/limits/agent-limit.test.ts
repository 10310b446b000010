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

const BERLIN = "resets 2:30am (Europe/Berlin)";
test.each<[what: string, now: string, text: string, reset: string]>([
  ["of the minute that has begun", "2026-11-29T21:31:05Z", "resets 9:31pm (UTC)", "2026-11-29T21:32:00Z"],
  ["of the minute that has ended", "2026-11-29T21:32:40Z", "resets 9:31pm (UTC)", "2026-11-29T21:33:00Z"],
  ["that passed before", "2026-11-29T21:33:01Z", "resets 9:31pm (UTC)", "2026-11-30T21:31:00Z"],
  ["at midnight", "2026-11-29T23:59:30Z", "resets 12am (UTC)", "2026-11-30T00:00:00Z"],
  ["before midnight", "2026-11-30T00:00:10Z", "resets 11:59pm (UTC)", "2026-11-30T00:01:00Z"],
  [
    "of this minute with its date",
    "2026-11-29T21:31:05Z",
    "resets Nov 29th, 2026 9:31 PM (UTC)",
    "2026-11-29T21:32:00Z",
  ],
  [
    "with its date at the turn of the year",
    "2027-01-01T00:00:05Z",
    "resets Dec 31, 11:59pm (UTC)",
    "2027-01-01T00:01:00Z",
  ],
  ["of the next year", "2026-12-31T10:00:00Z", "resets Jan 3, 9am (UTC)", "2027-01-03T09:00:00Z"],
  ["after clocks are set back", "2026-10-24T20:00:00Z", "resets 9am (Europe/Berlin)", "2026-10-25T08:00:00Z"],
  ["after clocks are set on", "2026-03-28T20:00:00Z", "resets 9am (Europe/Berlin)", "2026-03-29T07:00:00Z"],
  ["that a clock shows twice", "2026-10-24T22:00:00Z", BERLIN, "2026-10-25T01:30:00Z"],
  ["that no clock shows", "2026-03-28T22:00:00Z", BERLIN, "2026-03-29T01:30:00Z"],
  ["soon", "2026-11-29T21:31:05Z", "try again in less than a minute", "2026-11-29T21:32:05Z"],
])("a reset %s", (_what, now, text, reset) => {
  const { resetsAt = 0 } = limitOf(error(`You've hit your usage limit: ${text}`), Date.parse(now)) ?? {};
  expect(new Date(resetsAt).toISOString()).toBe(new Date(reset).toISOString());
});

test("a time without a zone is that of this machine", () => {
  const now = new Date(2026, 10, 29, 21, 31, 5);
  const limit = limitOf(
    error("You've hit your usage limit. Upgrade to Pro, or try again at 9:31 PM."),
    now.getTime(),
  );
  expect(limit?.resetsAt).toBe(new Date(2026, 10, 29, 21, 32).getTime());
});

test("a date that has passed is no reset", () => {
  const text = "You've hit your usage limit · resets Nov 20, 2026 9am (UTC)";
  expect(limitOf(error(text), NOW)).toEqual({ reason: "quota", message: text });
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
