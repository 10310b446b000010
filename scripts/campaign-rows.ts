// The rows of RELIABILITY.md, one for each campaign.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const EVIDENCE = fileURLToPath(new URL("../RELIABILITY.md", import.meta.url));

/** The rows of these campaigns, by their names. */
export function readRows(names: readonly string[]): Map<string, string> {
  const lines = existsSync(EVIDENCE) ? readFileSync(EVIDENCE, "utf8").split("\n") : [];
  const found = lines.filter((line) => names.some((name) => line.startsWith(`| ${name} |`)));
  return new Map(found.map((line) => [line.split("|")[1]?.trim() ?? "", line]));
}

/** Writes the rows in the order of the names. */
export function writeRows(names: readonly string[], rows: ReadonlyMap<string, string>): void {
  writeFileSync(
    EVIDENCE,
    [
      "# Reliability",
      "",
      "Evidence of the last run of each campaign; written by `npm run campaign`.",
      "",
      "| campaign | what | result | seconds | when, commit, where |",
      "|---|---|---|---|---|",
      ...names.flatMap((name) => rows.get(name) ?? []),
      "",
    ].join("\n"),
  );
}
