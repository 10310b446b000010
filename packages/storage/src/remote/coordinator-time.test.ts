// CoordinatorTime over slow answers, on a machine whose clocks go wrong.

import fc from "fast-check";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { CoordinatorTime } from "./coordinator-time.ts";

const HOUR_MS = 60 * 60_000;

describe("S3: the time of a coordinator", () => {
  test("the time is what the coordinator said, whatever this machine's wall clock says", () => {
    const machine = new TestClock();
    machine.jump(HOUR_MS);
    const time = new CoordinatorTime(machine);
    expect(time.now()).toBe(machine.now());
    time.received(5_000, machine.monotonic());
    expect(time.now()).toBe(5_000);
    machine.jump(HOUR_MS);
    machine.stall(10_000);
    expect(time.now()).toBe(14_800);
  });

  test("the time of an answer counts from when its call began", async () => {
    const machine = new TestClock();
    const time = new CoordinatorTime(machine);
    const answer = await time.asking(async () => {
      machine.stall(1_000);
      return { now: 7_000n, text: "x" };
    });
    expect(answer.text).toBe("x");
    expect(time.now()).toBe(7_000);
    await expect(time.asking(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
  });

  test("the time goes forward with an answer, and not back with an answer that took long", () => {
    const machine = new TestClock();
    const time = new CoordinatorTime(machine);
    time.received(5_000, 0);
    machine.stall(10_000);
    time.received(15_000, 9_000);
    expect(time.now()).toBe(15_000);
    time.received(5_100, 100); // Asked long ago, and answered at once.
    expect(time.now()).toBe(15_000);
  });

  // Another coordinator took over, and is behind what the one before it had said.
  test("the time goes back as soon as an answer shows that it is ahead", () => {
    const machine = new TestClock();
    const time = new CoordinatorTime(machine);
    time.received(50_000, 0);
    machine.stall(1_000);
    expect(time.now()).toBe(50_980);
    time.received(45_000, machine.monotonic());
    expect(time.now()).toBe(45_000);
    machine.stall(5_000);
    expect(time.now()).toBe(49_900);
  });

  // Answers are lost, late and out of order; the coordinator's clock is set forward, and is fast or slow.
  test(
    "the time is never later than the coordinator's clock, never goes back, and lags by the time since the last answer",
    ofCampaign,
    () => {
      const step = fc.record({
        passedMs: fc.integer({ min: 0, max: 5_000 }),
        /** How long the question and the answer take; `undefined` for one that is not asked. */
        ask: fc.option(fc.record({ there: fc.nat({ max: 8_000 }), back: fc.nat({ max: 8_000 }) })),
        setForwardMs: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.nat({ max: HOUR_MS })),
        jumpMs: fc.integer({ min: -HOUR_MS, max: HOUR_MS }),
      });
      fc.assert(
        fc.property(fc.constantFrom(0.985, 1, 1.015), fc.array(step, { maxLength: 40 }), (rate, steps) => {
          const machine = new TestClock();
          const time = new CoordinatorTime(machine);
          let there = 1_000_000;
          let reported = -Infinity;
          const pass = (ms: number): void => {
            machine.stall(ms);
            there += ms * rate;
          };
          time.received(there, machine.monotonic());
          const questions: { askedAt: number; readAt: number; receivedAt: number; time?: number }[] = [];
          for (const { passedMs, ask, setForwardMs, jumpMs } of steps) {
            machine.jump(jumpMs);
            there += setForwardMs;
            const now = machine.monotonic();
            if (ask !== null)
              questions.push({
                askedAt: now,
                readAt: now + ask.there,
                receivedAt: now + ask.there + ask.back,
              });
            for (const end = now + passedMs; machine.monotonic() < end;) {
              pass(Math.min(100, end - machine.monotonic()));
              for (const question of questions) {
                if (question.time === undefined && question.readAt <= machine.monotonic())
                  question.time = Math.floor(there);
              }
              for (const question of questions.splice(0)) {
                if (question.receivedAt > machine.monotonic() || question.time === undefined)
                  questions.push(question);
                else time.received(question.time, question.askedAt);
              }
              const said = time.now();
              expect(said).toBeLessThanOrEqual(there);
              expect(said).toBeGreaterThanOrEqual(reported);
              reported = said;
            }
          }
          time.received(Math.floor(there), machine.monotonic());
          pass(4_000);
          expect(there - time.now()).toBeLessThanOrEqual(4_000 * (rate - 0.98) + 2);
        }),
      );
    },
  );
});
