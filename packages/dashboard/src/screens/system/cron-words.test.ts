import { expect, test } from "vitest";
import { cronWords } from "./cron-words.ts";

test.each([
  ["* * * * *", "every minute"],
  ["*/15 * * * *", "every 15 minutes"],
  ["5 * * * *", "every hour at minute 5"],
  ["0 3 * * *", "every day at 03:00"],
  ["30 6 * * 1", "every Monday at 06:30"],
  ["30 6 * * 7", "every Sunday at 06:30"],
  ["0 9 * * 1-5", "every weekday at 09:00"],
  ["0 0 1 * *", "on day 1 of each month at 00:00"],
  ["0 0 1 1 *", ""],
  ["0 0 1 * 1", ""],
  ["0,30 9 * * *", ""],
  ["0 0 3 * * *", ""],
  ["", ""],
])("%s is %s", (cron, words) => {
  expect(cronWords(cron)).toBe(words);
});
