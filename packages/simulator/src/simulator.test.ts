// Random programs under random faults, by the seed. `npm run campaign -- --seeds N` runs more of them. The
// tests campaign repeats each seed of this file (`HOLDFAST_CAMPAIGN`).

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { describeFailure } from "./failure.ts";
import { simulate } from "./simulation.ts";

/**
 * Seeds that once broke a promise, each with the mutant that removes the fix. `scripts/sim.test.ts` checks
 * that each seed still finds its mutant. When the order of the draws changes, search new seeds with these
 * mutants.
 */
const REGRESSIONS = JSON.parse(readFileSync(new URL("regression-seeds.json", import.meta.url), "utf8")) as {
  readonly seed: number;
  readonly found: string;
}[];

const SEEDS = isCampaign ? 500 : 50;
const BLOCK = 25;
/** How many of the seeds are simulated once for each seed that is simulated twice. */
const TWICE_EVERY = isCampaign ? 1 : 5;
const logs: string[] = [];

async function expectNoViolation(seed: number): Promise<string> {
  const report = await simulate(seed);
  expect(report.violation, describeFailure(report)).toBeUndefined();
  return report.log().join("\n");
}

test("seeds that once failed", ofCampaign, async () => {
  for (const { seed } of REGRESSIONS) await expectNoViolation(seed);
});

test.each(Array.from({ length: SEEDS / BLOCK }, (_, i) => 1 + i * BLOCK))(
  `${BLOCK} seeds from %i on`,
  async (from) => {
    for (let seed = from; seed < from + BLOCK; seed++) logs[seed] = await expectNoViolation(seed);
  },
);

test("simulation-1: the same seed gives the same log", ofCampaign, async () => {
  for (let seed = 1; seed <= SEEDS; seed += TWICE_EVERY) {
    const log = logs[seed] ?? (await expectNoViolation(seed));
    expect((await expectNoViolation(seed)) === log, `seed ${seed} twice`).toBe(true);
  }
});

test("among the seeds there is every command and every fault", ofCampaign, async () => {
  for (let seed = 1; seed <= Math.max(SEEDS, 200); seed++) logs[seed] ??= await expectNoViolation(seed);
  const all = logs.join("\n");
  for (const what of EVERYTHING) expect(all.includes(what), what).toBe(true);
});

/** Texts in the logs that prove that each kind of command and fault still occurs. */
const EVERYTHING = `
is killed; crashes at a commit; closes; is paused; continues; its claims are gone; wall clock jumps; (refused); (reply_lost);
(full); is away; hangs; fails after; hopeless; attempt_lost; attempt_failed; outcome_kept; checkpoint; withdraw; record_probe;
take_signals; request_input; timer_fired; wait_timed_out; cancel_requested; wait_cancelled; hard; append_entry;
is lost; goes twice; is cut; has an outage; is stopped; a step blocks it; is ended by its watchdog; register; deregister; renew; release_claim;
is born; spawn_child; tell_session; request_parent; reply_child; cancel_child; enable_persistence; attempt 2; pause s; unpause s; raise s; is forked; is fired; import_session; fire_schedule; remove the schedule`
  .split(";")
  .map((what) => what.trim());
