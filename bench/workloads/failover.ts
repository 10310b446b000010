// W5 in a fleet: the time from kill -9 of the runner that holds a session to a new step of it at another
// runner.

import { withFleet } from "../fleet.ts";
import type { Measured } from "../line.ts";
import { assertDone, median, nowMs, percentile, until } from "../measure.ts";
import type { Bench } from "../workload.ts";

const LEASE_MS = 6_000;
const GOAL_MS = LEASE_MS + 2_000;
const STEP_MS = 20;
const PATIENCE_MS = 120_000;

export async function measureFailover(bench: Bench): Promise<Measured> {
  const leaseMs = LEASE_MS; // A smoke test's too: a runner does not trust a claim of much less.
  const tookMs: number[] = [];
  for (let i = 0; i < bench.repeats; i++) tookMs.push(await failOver(bench, leaseMs));
  const value = median(tookMs);
  return {
    variant: `to another runner, a lease of ${leaseMs / 1_000} s`,
    unit: "ms",
    value,
    p50Ms: value,
    p99Ms: percentile(tookMs, 0.99),
    goal: `<= lease + 2 s = ${GOAL_MS} ms`,
    isGoalMet: value <= GOAL_MS,
  };
}

/** From the kill to the step. */
function failOver(bench: Bench, leaseMs: number): Promise<number> {
  return withFleet(bench, { runners: 2, leaseMs }, async ({ client, runners }) => {
    let last = { step: -1, runner: -1, at: 0 };
    for (const [runner, child] of runners.entries()) {
      child.onMessage("step", ({ step, at }) => {
        last = { step: step as number, runner, at };
      });
    }
    const started = nowMs();
    await client.sessions.start("ticking", { stepMs: STEP_MS });
    // Its first renewal lies behind it, so the lease's rest is any part of it, as in life.
    await until("the session to run for a while", () => last.at > started + leaseMs / 2, PATIENCE_MS);
    const { runner: holder } = last;
    const killedAt = nowMs();
    await runners[holder]!.kill();
    const { step: lastStep } = last;
    await until("another runner to go on", () => last.runner !== holder, PATIENCE_MS);
    // The one that was killed in it is run again; it is the first that is new.
    assertDone("whether nothing was run twice that was committed", last.step >= lastStep, true);
    return last.at - killedAt;
  });
}
