// One set of scenarios over every combination of ports: the same comes of it (H12).
//
// `npm test` plays each scenario over the first combination and every fourth of the others, another fourth
// for each scenario. The crash-points campaign plays all of them (`HOLDFAST_CAMPAIGN`).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { sharedServerUrl } from "../packages/storage/src/postgres/testing/shared-server.ts";
import { combinations, compareAll } from "./compositions.ts";

/** Over a coordinator each scenario takes real connections. */
const SLOW = /^remote on (sqlite|postgres)/;

test(
  "nothing differs where sameness is promised",
  { ...ofCampaign, timeout: isCampaign ? 600_000 : 60_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-compositions-"));
    try {
      const all = combinations({ folder, postgresUrl: await sharedServerUrl() });
      const { played, differences } = await compareAll(
        isCampaign ? all : all.filter(({ name }) => !SLOW.test(name)),
        isCampaign ? 1 : 4,
      );
      expect(differences).toEqual([]);
      expect(played.length).toBeGreaterThan(30);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
