import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { repeat, type RepeatOptions } from "./repeat.ts";

const EVERY_MS = 1_000;

function repeating(look: RepeatOptions["look"], options: Partial<RepeatOptions> = {}) {
  const clock = new TestClock();
  const times: number[] = [];
  const failures: unknown[] = [];
  const repetition = repeat({
    clock,
    pauseMs: () => EVERY_MS,
    failed: (error) => failures.push(error),
    look: () => {
      times.push(clock.monotonic());
      return look();
    },
    ...options,
  });
  return { clock, times, failures, repetition };
}

test.each([
  ["rejects", () => Promise.reject(new Error("away"))],
  [
    "throws before its first await",
    () => {
      throw new Error("away");
    },
  ],
  ["rejects with an error that is not ours", () => Promise.reject(new TypeError("a bug of a driver"))],
] as [string, () => Promise<never>][])("repeat-1: a look that %s is followed by another", async (_, look) => {
  const { clock, times } = repeating(look);
  await clock.advance(3_000);
  expect(times).toEqual([1_000, 2_000, 3_000]);
});

test("repeat-1: the pause after a look knows how many looks in a row have failed", async () => {
  let isAway = true;
  const look = async (): Promise<void> => {
    if (isAway) throw new Error("away");
  };
  const { clock, times } = repeating(look, { pauseMs: (failures) => EVERY_MS * 2 ** failures });
  await clock.advance(7_000);
  isAway = false;
  await clock.advance(9_000);
  expect(times).toEqual([1_000, 3_000, 7_000, 15_000, 16_000]);
});

test("repeat-2: looks that are asked for during a look are one look after it, and not before the rest", async () => {
  let end = (): void => {};
  const { clock, times, repetition } = repeating(() => new Promise<void>((resolve) => (end = resolve)), {
    restMs: () => 100,
    atOnce: true,
  });
  repetition.hurry();
  repetition.hurry();
  await clock.advance(5_000);
  expect(times).toEqual([0]);
  end();
  await clock.advance(200);
  expect(times).toEqual([0, 5_100]);
});

test("repeat-2: a look that is asked for between two looks comes at once, and the next one after a whole pause", async () => {
  const { clock, times, repetition } = repeating(async () => {});
  await clock.advance(500);
  repetition.hurry();
  await clock.advance(1_000);
  expect(times).toEqual([500, 1_500]);
});

test("repeat-3: only the first of several failures in a row is reported", async () => {
  let isAway = true;
  const { clock, failures } = repeating(async () => {
    if (isAway) throw new Error("away");
  });
  await clock.advance(3_000);
  isAway = false;
  await clock.advance(1_000);
  isAway = true;
  await clock.advance(2_000);
  expect(failures).toHaveLength(2);
});

test("nothing is looked at after the close, also when a look was under way", async () => {
  let end = (): void => {};
  const { clock, times, repetition } = repeating(() => new Promise<void>((resolve) => (end = resolve)));
  await clock.advance(1_000);
  repetition.hurry();
  repetition.close();
  repetition.hurry();
  end();
  await clock.advance(5_000);
  expect(times).toEqual([1_000]);
  expect(clock.armed).toBe(0);
});
