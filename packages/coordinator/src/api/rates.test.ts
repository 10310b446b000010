import { expect, test } from "vitest";
import { Rates } from "./rates.ts";
import { Refusal } from "../call/refusal.ts";

function ratesAt(clock: { now: number }): (tokenId: string) => number | undefined {
  const rates = new Rates({ start: { perSecond: 10, burst: 3 } }, () => clock.now);
  return (tokenId) => {
    try {
      rates.take("start", tokenId);
      return undefined;
    } catch (thrown) {
      return thrown instanceof Refusal ? thrown.retryAfterMs : -1;
    }
  };
}

test("a token may do its burst at once, and then so much a second; others are not touched", () => {
  const clock = { now: 0 };
  const take = ratesAt(clock);
  expect([take("a"), take("a"), take("a")]).toEqual([undefined, undefined, undefined]);
  expect(take("a")).toBe(100);
  expect(take("b")).toBeUndefined();
  clock.now = 99;
  expect(take("a")).toBeCloseTo(1);
  clock.now = 100;
  expect(take("a")).toBeUndefined();
  expect(take("a")).toBe(100);
});

test("an unused rate is saved up to the burst", () => {
  const clock = { now: 0 };
  const take = ratesAt(clock);
  take("a");
  clock.now = 60_000;
  expect([take("a"), take("a"), take("a"), take("a")]).toEqual([undefined, undefined, undefined, 100]);
});

test("a kind without a rate is not counted", () => {
  const rates = new Rates({}, () => 0);
  expect(() => rates.take("start", "a")).not.toThrow();
});

test("a token that used its burst up is not forgotten among many others", () => {
  const clock = { now: 0 };
  const take = ratesAt(clock);
  for (let at = 0; at < 3; at++) take("a");
  clock.now = 1;
  for (let at = 0; at < 20_000; at++) take(`other-${at}`);
  expect(take("a")).toBe(99);
});
