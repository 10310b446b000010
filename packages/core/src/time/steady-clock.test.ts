// `SteadyClock` over a wall clock that is set at random.

import fc from "fast-check";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { SteadyClock } from "./steady-clock.ts";

const HOUR_MS = 60 * 60_000;

describe("D3: a steady clock", () => {
  test("a wall clock that is set back moves the steady clock by at most one part in a hundred", () => {
    const { wall, steady, began } = open();
    wall.jump(-HOUR_MS);
    expect(steady.now()).toBe(began);
    wall.stall(10_000);
    expect(steady.now()).toBe(began + 9_900);
    wall.stall(110 * HOUR_MS);
    expect(steady.now()).toBe(wall.now());
  });

  test("a wall clock that is set forward does not move the steady clock until a step follows it", () => {
    const { wall, steady, began } = open();
    wall.jump(HOUR_MS);
    wall.stall(1_000);
    expect(steady.now()).toBe(began + 1_000);
    expect(steady.setForwardMs).toBe(HOUR_MS);
    steady.step(steady.setForwardMs);
    expect(steady.now()).toBe(wall.now());
    expect(steady).toMatchObject({ setForwardMs: 0, steps: 1 });
  });

  test("the steady clock moves forward to a wall clock that is a little ahead", () => {
    const { wall, steady, began } = open();
    wall.jump(500);
    wall.stall(10_000);
    expect(steady.setForwardMs).toBe(0);
    expect(steady.now()).toBe(began + 10_100);
  });

  test("a step never goes back", () => {
    const { steady, began } = open();
    steady.step(-HOUR_MS);
    expect(steady).toMatchObject({ steps: 0 });
    expect(steady.now()).toBe(began);
  });

  // The wall clock is set at random, and both clocks are read at random.
  test("the steady clock never goes back, and between steps passes like the monotonic clock to one part in a hundred", () => {
    const moves = fc.array(
      fc.oneof(
        fc.record({ type: fc.constant("passes" as const), ms: fc.integer({ min: 0, max: 60_000 }) }),
        fc.record({ type: fc.constant("jumps" as const), ms: fc.integer({ min: -HOUR_MS, max: HOUR_MS }) }),
        fc.record({ type: fc.constant("follows" as const), ms: fc.constant(0) }),
      ),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(moves, (asked) => {
        const { wall, steady } = open();
        let before = steady.now();
        for (const { type, ms } of asked) {
          const steps = steady.steps;
          if (type === "passes") wall.stall(ms);
          else if (type === "jumps") wall.jump(ms);
          else steady.step(steady.setForwardMs);
          const now = steady.now();
          const passedMs = type === "passes" ? ms : 0;
          expect(now).toBeGreaterThanOrEqual(before);
          if (steady.steps === steps) {
            // One millisecond for the fraction that is not shown.
            expect(now - before).toBeGreaterThanOrEqual(Math.floor(passedMs * 0.99) - 1);
            expect(now - before).toBeLessThanOrEqual(Math.ceil(passedMs * 1.01) + 1);
          } else expect(Math.abs(now - wall.now())).toBeLessThanOrEqual(1);
          before = now;
        }
      }),
    );
  });
});

function open() {
  const wall = new TestClock();
  const began = wall.now();
  return { wall, steady: new SteadyClock(wall), began };
}
