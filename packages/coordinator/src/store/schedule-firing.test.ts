// Schedules at a coordinator whose clock is set: each time fires once, and what was missed fires together.

import { SteadyClock } from "@holdfast/core";
import { countingRandom, MemoryStorage, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { ScheduleFiring } from "./schedule-firing.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

test("D3, schedule-firing-4: a clock that is set forward and back fires no time twice, and what it went over once", async () => {
  const { wall, clock, fired, began } = await every(MINUTE_MS);
  await wall.advance(2 * MINUTE_MS);
  expect(fired).toEqual([began, began + MINUTE_MS]);
  wall.jump(HOUR_MS);
  clock.step(clock.setForwardMs);
  await wall.advance(2_000);
  expect(fired).toHaveLength(3);
  expect(fired[2]).toBe(began + 2 * MINUTE_MS);
  wall.jump(-HOUR_MS);
  await wall.advance(3 * MINUTE_MS);
  // Time goes on from where it was, a little slower.
  expect(fired.length - 3).toBeGreaterThanOrEqual(2);
  expect(new Set(fired).size).toBe(fired.length);
  expect(fired.slice(3).every((dueAt) => dueAt > began + HOUR_MS)).toBe(true);
});

test("a schedule that cannot fire is reported once, and once more after it was removed and put again", async () => {
  const reported: string[] = [];
  const { wall, put, remove } = await every(MINUTE_MS, (message) => void reported.push(message));
  await wall.advance(MINUTE_MS + 5_000);
  expect(reported).toEqual(["schedule s could not fire"]);
  await remove();
  await wall.advance(2_000);
  await put();
  await wall.advance(2_000);
  expect(reported).toHaveLength(2);
});

/** @param broken told of what could not fire: then none can. */
async function every(ms: number, broken?: (message: string) => void) {
  const wall = new TestClock();
  const clock = new SteadyClock(wall);
  const inner = new MemoryStorage();
  const fired: number[] = [];
  const storage = storageWith(inner, {
    commit: async (changes, now) => {
      const results = await inner.commit(changes, now);
      changes.forEach((change, i) => {
        if (change.type === "fire_schedule" && results[i]?.status === "done") fired.push(change.dueAt);
      });
      return results;
    },
  });
  const after = (moment: number): number => Math.floor(moment / ms) * ms + ms;
  const began = after(clock.now());
  const agent = { name: "agent", version: "1" };
  const schedule = {
    scheduleId: "s",
    cron: "* * * * *",
    timeZone: "UTC",
    nextAt: began,
    createdAt: clock.now(),
    action: { type: "start", agent, input: undefined },
  } as const;
  const put = () => inner.commit([{ type: "put_schedule", schedule }], clock.now());
  const remove = () => inner.commit([{ type: "remove_schedule", scheduleId: "s" }], clock.now());
  await put();
  const firing = new ScheduleFiring({
    storage,
    clock,
    random: countingRandom(),
    readCron: () => {
      if (broken !== undefined) throw new Error("no cron");
      return { after };
    },
    firingName: (scheduleId, dueAt) => `${scheduleId}-${dueAt}`,
    versionOf: async (_, asked) => asked ?? "1",
    warn: (message, error) => {
      if (broken === undefined) throw new Error(message, { cause: error });
      broken(message);
    },
  });
  void firing;
  return { wall, clock, fired, began, put, remove };
}
