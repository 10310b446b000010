// The evidence of campaigns, RELIABILITY.md: a row for each campaign (`readRows`, `writeRows`), and the figures
// that its tests have measured (`withFigures`).

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const EVIDENCE = fileURLToPath(new URL("../RELIABILITY.md", import.meta.url));

/** @returns the rows by the names of their campaigns. */
export function readRows(names: readonly string[]): Map<string, string> {
  const lines = existsSync(EVIDENCE) ? readFileSync(EVIDENCE, "utf8").split("\n") : [];
  const found = lines.filter((line) => names.some((name) => line.startsWith(`| ${name} |`)));
  return new Map(found.map((line) => [line.split("|")[1]?.trim() ?? "", line]));
}

/** @param names in the order of the rows. */
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

/** @returns also the text that tests have written into the file that they were given. */
export function withFigures(run: (file: string) => { readonly passed: boolean }): {
  readonly passed: boolean;
  readonly figures?: string;
} {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-figures-"));
  try {
    const file = join(folder, "figures");
    const { passed } = run(file);
    if (!existsSync(file)) return { passed };
    return { passed, figures: readFileSync(file, "utf8").trim().replaceAll("\n", "; ") };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
