// Attempts that are told to stop while their handlers run: nobody knows what those still do.

import { UncertainEffectError } from "@holdfast/core";
import { countingRandom, gate, TestClock, until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent, type TaskContext } from "../../agents/define.ts";
import { MemoryStorage } from "../../memory/memory-storage.ts";
import { createRuntime } from "../../runtime.ts";

function open() {
  const clock = new TestClock();
  const storage = new MemoryStorage();
  const runtime = createRuntime({
    storage,
    clock,
    random: countingRandom(),
    development: false,
    adopt: false,
  });
  return { runtime, clock };
}

const LIMITS = [{ timeoutMs: 50 }, { deadlineMs: 50 }];

test.each(LIMITS)(
  "an effect that happens once and was cut off by %o is uncertain, and is not tried again",
  async (limit) => {
    const { runtime, clock } = open();
    const paid = gate();
    let attempts = 0;
    const agent = defineAgent({
      name: "payer",
      run: async (ctx) => {
        const options = { effect: "once", retry: { maxAttempts: 3 }, ...limit } as const;
        try {
          return await ctx.run("pay", () => (attempts++, paid.opened), options);
        } catch (error) {
          return { isUncertain: UncertainEffectError.is(error), why: (error as Error).message };
        }
      },
    });
    const handle = await runtime.start(agent);
    await until(() => attempts === 1, "the payment has begun");
    await clock.advance(60_000);
    expect(await handle.result()).toEqual({ isUncertain: true, why: expect.stringContaining("50 ms") });
    expect(attempts).toBe(1);
    paid.open();
    await runtime.close();
  },
);

test("an effect that happens once, and had not begun at its deadline, has certainly not happened", async () => {
  const { runtime, clock } = open();
  const agent = defineAgent({
    name: "payer",
    run: async (ctx) =>
      ctx
        .run(
          "pay",
          () => {
            throw Object.assign(new Error("refused"), { retryAfterMs: 40 });
          },
          { effect: "once", retry: { maxAttempts: 3 }, deadlineMs: 50 },
        )
        .catch((error: unknown) => UncertainEffectError.is(error)),
  });
  const handle = await runtime.start(agent);
  await clock.advance(60_000);
  expect(await handle.result()).toBe(false);
  await runtime.close();
});

test.each([true, false])(
  "the next attempt begins when the handler of the last one has settled, or after the grace (settles: %s)",
  async (settles) => {
    const { runtime, clock } = open();
    const stuck = gate();
    const seen: [number, boolean][] = [];
    const agent = defineAgent({
      name: "caller",
      run: (ctx) =>
        ctx.run(
          "call",
          async ({ attempt, overlaps }: TaskContext) => {
            seen.push([attempt, overlaps]);
            if (attempt === 1) await stuck.opened;
            return attempt;
          },
          { timeoutMs: 100 },
        ),
    });
    const handle = await runtime.start(agent);
    await until(() => seen.length === 1, "the first attempt");
    await clock.advance(10_000); // The time-out came at 100 ms, the back-off is over, and the grace is not.
    expect(seen).toEqual([[1, false]]);
    if (settles) stuck.open();
    else await clock.advance(100);
    expect(await handle.result()).toBe(2);
    expect(seen).toEqual([
      [1, false],
      [2, !settles],
    ]);
    stuck.open();
    await runtime.close();
  },
);
