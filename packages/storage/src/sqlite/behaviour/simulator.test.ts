// The simulator's programs and faults over the real SQL, on databases in memory: step by step the same as in
// memory (H12). The crash-points campaign plays more seeds (`HOLDFAST_CAMPAIGN`).

import { describeFailure, isFleet, simulate } from "@holdfast/simulator";
import { expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import { openDriver } from "../file/driver.ts";
import { migrate } from "../file/migrations.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";

const COUNT = isCampaign ? 300 : 10;
/** 22: two sessions of a family reach their deadlines in the same millisecond. */
const SEEDS = new Set([...Array.from({ length: COUNT }, (_, index) => index + 1), 22]);

function openStorage(): SqliteStorage {
  const path = ":memory:";
  const driver = openDriver(path, { mode: "write", busyTimeoutMs: 0 });
  migrate(driver);
  return new SqliteStorage({ driver, path });
}

test(`${COUNT} seeds break no promise, and do what they do in memory`, { timeout: 600_000 }, async () => {
  for (const seed of SEEDS) {
    const report = await simulate(seed, { openStorage });
    expect(report.violation, describeFailure(report)).toBeUndefined();
    // Dispatch goes by when a row changed last, and a batch of nothing changes no row of a file.
    if (!isFleet(seed)) expect(report.log()).toEqual((await simulate(seed)).log());
  }
});
