import { expect, test } from "vitest";
import { systemClock } from "./node-ports.ts";

test("a timer is never early, however long its turn of the event loop has lasted already", async () => {
  const passed: number[] = [];
  for (let busyMs = 0; busyMs < 5; busyMs += 0.05) {
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        const until = performance.now() + busyMs;
        while (performance.now() < until);
        const armedAt = systemClock.monotonic();
        systemClock.setTimer(() => {
          passed.push(systemClock.monotonic() - armedAt);
          resolve();
        }, 1);
      });
    });
  }
  expect(Math.min(...passed)).toBeGreaterThanOrEqual(1);
});

test("a timer that was checked early can still be cancelled", async () => {
  const fired: string[] = [];
  const cancel = systemClock.setTimer(() => fired.push("cancelled"), 2);
  await new Promise<void>((resolve) => systemClock.setTimer(resolve, 1));
  cancel();
  cancel();
  await new Promise<void>((resolve) => systemClock.setTimer(resolve, 5));
  expect(fired).toEqual([]);
});
