// One set of scenarios over every combination of ports: the same comes of it (H12).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { combinations, compareAll } from "./compositions.ts";

test("nothing differs where sameness is promised", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-compositions-"));
  try {
    const { played, differences } = await compareAll(combinations(folder));
    expect(differences).toEqual([]);
    expect(played.length).toBeGreaterThan(30);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
