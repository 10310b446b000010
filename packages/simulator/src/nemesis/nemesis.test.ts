// A test of `runNemesis` with a small fleet. The rest is `npm run campaign -- nemesis`.

import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { runSql, sharedServerUrl } from "@holdfast/storage/postgres-testing";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { runNemesis } from "./nemesis.ts";

test(
  "H1, O1, H7, L7: the coordinator is killed and a runner ended under sessions of every kind, and no promise is broken",
  { ...ofCampaign, timeout: 60_000 },
  async () => {
    const report = await runNemesis({
      seed: 1,
      databaseUrl: await newDatabase(),
      coordinators: 1,
      runners: 2,
      isSeparate: false,
      leaseMs: 6_000,
      faults: ["kill-coordinator", "term-runner"], // No session waits for a lease after these.
      least: { kill: 1, term: 1 },
      minMs: 0,
      atOnce: 2,
      pauseMs: 200,
      width: 12,
      sessionsMax: 12,
      pace: 0.1,
      isPoisoned: false,
      say: () => {},
    });
    expect(report.violations).toEqual([]);
    expect(report.sessions).toBeGreaterThanOrEqual(12);
    expect(report.effects).toBeGreaterThan(10);
    expect(report.claims).toBeGreaterThan(5); // A session that is cancelled at once has none.
    rmSync(report.folder, { recursive: true });
  },
);

/** A database for this test alone, like that of a coordinator. */
async function newDatabase(): Promise<string> {
  const server = await sharedServerUrl();
  const name = `nemesis_${randomUUID().replaceAll("-", "")}`;
  await runSql(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
