// The size of what a user installs, and the CPU time of its import (`measureSize`, `measureImport`).

import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Packed } from "./publish.ts";

/** A durable session in a file needs these. `croner` is the one dependency of theirs that is not bundled. */
const CORE_AND_SQLITE = ["@holdfast/core", "@holdfast/system", "@holdfast/runtime", "@holdfast/storage"];
const SIZE_GOAL_MB = 1.5;
/** A release above this is refused. */
const SIZE_LIMIT_MB = 1.55;
const IMPORT_GOAL_MS = 25;
const PAIRS = 15;

/** Puts the packages into `node_modules` of a folder, where they find those of other authors above it. */
export function layOut(packages: readonly Packed[], folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  for (const { folder: from, manifest } of packages) {
    const to = join(folder, "node_modules", manifest.name);
    mkdirSync(to, { recursive: true });
    cpSync(from, to, { recursive: true });
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
}

export function measureSize(installed: string): {
  readonly text: string;
  readonly problems: readonly string[];
} {
  const bytes = CORE_AND_SQLITE.flatMap((name) => {
    const folder = join(installed, "node_modules", name);
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  });
  const mb = bytes.reduce((sum, size) => sum + size, 0) / 1e6;
  const is = mb <= SIZE_GOAL_MB ? "met" : "missed";
  return {
    text: `${mb.toFixed(2)} MB (goal ${SIZE_GOAL_MB} MB: ${is})`,
    problems:
      mb <= SIZE_LIMIT_MB ? [] : [`core and SQLite have ${mb.toFixed(2)} MB, more than ${SIZE_LIMIT_MB} MB`],
  };
}

/** The CPU time of a program that imports us, above that of an empty one, in pairs: other work of the machine slows both. */
export function measureImport(installed: string): string {
  const programs = {
    "empty.mjs": "",
    "import.mjs": 'import { createRuntime, openSqliteStorage } from "holdfast";\n',
  };
  for (const [file, text] of Object.entries(programs)) {
    writeFileSync(join(installed, file), text + SAY_CPU);
    cpuMs(installed, file); // Its files are in memory then.
  }
  const differences = Array.from(
    { length: PAIRS },
    () => -cpuMs(installed, "empty.mjs") + cpuMs(installed, "import.mjs"),
  ).toSorted((one, other) => one - other);
  const ms = differences[Math.floor(PAIRS / 2)]!;
  return `${ms.toFixed(1)} ms of CPU, the median of ${PAIRS} pairs (goal ${IMPORT_GOAL_MS} ms: ${ms <= IMPORT_GOAL_MS ? "met" : "missed"})`;
}

const SAY_CPU = `process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  process.stdout.write(String((user + system) / 1000));
});
`;

function cpuMs(folder: string, file: string): number {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}`);
  return Number(stdout);
}
