// One set of scenarios over every combination of ports: the same comes of it (H12).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sharedServerUrl } from "../packages/storage/src/postgres/testing/shared-server.ts";
import { combinations, compareAll } from "./compositions.ts";

const SLOW = /^remote on (sqlite|postgres)/;

test("nothing differs where sameness is promised", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-compositions-"));
  try {
    const all = combinations({ folder, postgresUrl: await sharedServerUrl() });
    // Over a coordinator each scenario takes real connections; `npm run compositions` goes through all of them.
    const { played, differences } = await compareAll(all.filter(({ name }) => !SLOW.test(name)));
    expect(differences).toEqual([]);
    expect(played.length).toBeGreaterThan(30);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
