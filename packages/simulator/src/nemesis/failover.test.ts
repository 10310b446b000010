// A fleet of two coordinators over a PostgreSQL server with a synchronous standby, which takes the primary's
// place again and again.

import { rmSync } from "node:fs";
import { ReplicatedServer } from "@holdfast/storage/postgres-testing";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { runNemesis } from "./nemesis.ts";

const FAILOVERS = Number(process.env["HOLDFAST_FAILOVERS"] ?? 3);

test(
  "H1, O1, H7, L3: the database fails over under sessions of every kind, and no promise is broken",
  { ...ofCampaign, timeout: 300_000 + FAILOVERS * 60_000 },
  async () => {
    const server = await ReplicatedServer.start({ fsync: false, isSynchronous: true });
    try {
      const report = await runNemesis({
        seed: 1,
        databaseUrl: server.url,
        replicated: server,
        coordinators: 2,
        runners: 2,
        isSeparate: false,
        leaseMs: 6_000,
        faults: ["failover"],
        least: { failover: FAILOVERS },
        minMs: 0,
        atOnce: 1,
        pauseMs: 3_000,
        width: 24,
        pace: 0.2,
        isPoisoned: false,
        say: (line) => console.log(line),
      });
      expect(report.violations).toEqual([]);
      expect(report.happened).toEqual({ failover: FAILOVERS });
      expect(report.effects).toBeGreaterThan(10);
      expect(report.unpaused).toBe(0);
      rmSync(report.folder, { recursive: true });
    } finally {
      await server.stop();
    }
  },
);
