import { expect, test } from "vitest";
import { timeScale } from "./time-scale.ts";

const DAY = 86_400_000;

test("days of waiting take less of the line than seconds of work", () => {
  const busy = [
    { from: 0, to: 5_000 },
    { from: 3 * DAY, to: 3 * DAY + 5_000 },
  ];
  const { place, folds } = timeScale(busy, { from: 0, to: 3 * DAY + 5_000 });
  expect(place(0)).toBe(0);
  expect(place(5_000)).toBeCloseTo(5 / 11);
  expect(place(3 * DAY)).toBeCloseTo(6 / 11);
  expect(place(3 * DAY + 5_000)).toBe(1);
  expect(folds).toEqual([{ at: expect.closeTo(5.5 / 11), ms: 3 * DAY - 5_000 }]);
});

test("a later moment is never left of an earlier one", () => {
  const busy = Array.from({ length: 50 }, (_, n) => ({
    from: (n * 7_919) % 100_000,
    to: ((n * 7_919) % 100_000) + 3_000,
  }));
  const { place } = timeScale(busy, { from: 0, to: 110_000 });
  const places = Array.from({ length: 1_100 }, (_, n) => place(n * 100));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});

test("a session that did nothing has one place", () => {
  expect(timeScale([], { from: 5, to: 5 }).place(5)).toBe(0);
});
