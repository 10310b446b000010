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
  const run = async (): Promise<boolean> => {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    setImmediate(() => {
      const until = performance.now() + 5;
      while (performance.now() < until);
      const armedAt = systemClock.monotonic();
      const cancel = systemClock.setTimer(() => fired.push("cancelled"), 3);
      // Node calls it right after the first check of the timer, because both were armed for the same time.
      setTimeout(() => {
        cancel();
        cancel();
        resolve(systemClock.monotonic() - armedAt < 3);
      }, 3);
    });
    return promise;
  };
  // On a busy machine the time may be over at the first check. Such a run says nothing.
  while (!(await run())) fired.length = 0;
  await new Promise<void>((resolve) => systemClock.setTimer(resolve, 5));
  expect(fired).toEqual([]);
});
