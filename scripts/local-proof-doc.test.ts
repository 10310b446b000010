// docs/local-proof.md names tests that are there, labels that promises.md defines, and campaigns that can be
// run.

import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const page = read("docs/local-proof.md");

test("every file that the proof of the local stack names is there", () => {
  const files = [...page.matchAll(/`((?:packages|bench|scripts)\/[^`]+)`/g)].map(([, path]) => path!);
  expect(files.length).toBeGreaterThan(30);
  expect(files.filter((path) => !existsSync(new URL(`../${path}`, import.meta.url)))).toEqual([]);
});

test("every label and campaign that the proof of the local stack names is there", () => {
  const rows = page.split("\n").filter((line) => /^\| [PXD]\d+: /.test(line));
  expect(rows).toHaveLength(12);
  const [promises, campaigns] = [read("docs/internals/promises.md"), read("scripts/campaign.ts")];
  for (const row of rows) {
    const [, , labels = "", , names = ""] = row.split("|");
    for (const label of labels.split(",")) expect(promises).toContain(`- **${label.trim()}.** `);
    for (const [, name] of names.matchAll(/`([^`]+)`/g))
      expect(campaigns).toMatch(new RegExp(`(?:name: |ofTests\\(\\s*)"${name}"`));
  }
});
