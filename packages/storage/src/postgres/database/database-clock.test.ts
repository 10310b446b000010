// DatabaseOffset: a process whose estimate of the database's time runs ahead would take leases that have not
// expired.

import { expect, test } from "vitest";
import { DatabaseOffset } from "./database-clock.ts";

/** Give the offset one answer, read at a moment between question and answer, of a clock that is `ahead`. */
function measured(
  offset: DatabaseOffset,
  askedAt: number,
  readAt: number,
  answeredAt: number,
  ahead = 1_000,
) {
  offset.measured(askedAt, readAt + ahead, answeredAt);
}

test("database-clock-1: a slow answer never puts the estimate ahead, whenever in between the clock was read", () => {
  for (const readAt of [0, 1_500, 2_999]) {
    const offset = new DatabaseOffset();
    measured(offset, 0, readAt, 3_000);
    expect(offset.ms).toBeLessThanOrEqual(1_000);
    expect(offset.ms).toBe(1_000 - (3_000 - readAt));
  }
});

test("database-clock-2: a quicker answer is believed, and a slow one after it takes nothing back", () => {
  const offset = new DatabaseOffset();
  measured(offset, 0, 10, 3_000);
  measured(offset, 4_000, 4_002, 4_004);
  expect(offset.ms).toBe(998);
  measured(offset, 5_000, 5_010, 8_000);
  expect(offset.ms).toBe(998);
});

test("database-clock-2: a clock that was set is followed, forward and back", () => {
  const offset = new DatabaseOffset();
  measured(offset, 0, 2, 4);
  measured(offset, 1_000, 1_002, 1_004, 3_601_000);
  expect(offset.ms).toBe(3_600_998);
  measured(offset, 2_000, 2_002, 2_004);
  expect(offset.ms).toBe(998);
});
