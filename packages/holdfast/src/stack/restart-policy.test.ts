import { expect, test } from "vitest";
import { RestartPolicy, RESTARTS_MAX, STABLE_MS } from "./restart-policy.ts";

test("the first restart is immediate, and each further one waits twice as long up to a limit", () => {
  const policy = new RestartPolicy();
  const pauses = Array.from({ length: 9 }, () => policy.next(0));
  expect(pauses).toEqual([0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
});

test("a process that never stays ready is given up after a number of restarts", () => {
  const policy = new RestartPolicy();
  for (let i = 0; i < RESTARTS_MAX; i++) expect(policy.next(STABLE_MS - 1)).toBeDefined();
  expect(policy.next(STABLE_MS - 1)).toBeUndefined();
});

test("a process that was ready for long enough is restarted as if for the first time", () => {
  const policy = new RestartPolicy();
  for (let i = 0; i < RESTARTS_MAX; i++) policy.next(0);
  expect(policy.next(STABLE_MS)).toBe(0);
  expect(policy.next(0)).toBe(250);
});
