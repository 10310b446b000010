// A test of `runStackKills` with three kills. The rest is `npm run campaign -- stack-kills`.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { runStackKills } from "./stack-kills.ts";

const SOURCES_BIN = fileURLToPath(new URL("../../../../../node_modules/.bin", import.meta.url));
const LAUNCHER = join(process.env["HOLDFAST_TEST_COMMAND_FOLDER"] ?? SOURCES_BIN, "holdfast");

test(
  "H1, H7, P1, P2, X7, X15: runner, coordinator and supervisor are killed under sessions of every kind, and no promise is broken",
  { ...ofCampaign, timeout: 120_000 },
  async () => {
    const report = await runStackKills({
      seed: 1,
      kills: 3,
      singleKills: 0,
      width: 6,
      pace: 0.2,
      launcher: LAUNCHER,
      say: () => {},
    });
    expect(report.violations).toEqual([]);
    for (const count of Object.values(report.killed)) expect(count).toBeGreaterThan(0);
    expect(report.sessions).toBeGreaterThanOrEqual(6);
    expect(report.effects).toBeGreaterThan(10);
    expect(report.searched).toBeGreaterThan(100);
    rmSync(report.folder, { recursive: true });
  },
);
