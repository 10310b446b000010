// `npm run campaign`: what takes too long for every change. Its evidence goes to RELIABILITY.md.
//
// `-- --kills N` sets how many real kills each killed example gets (500 by default).

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { arch, cpus, platform } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MUTANTS } from "./mutants.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({ options: { kills: { type: "string", default: "500" } } });
if (!/^[1-9]\d{0,5}$/.test(values.kills)) {
  console.error(`error[E_USAGE]: --kills takes a whole number from 1 to 999999\n  got: ${values.kills}`);
  process.exit(2);
}

interface Part {
  readonly what: string;
  readonly tests: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const PARTS: readonly Part[] = [
  {
    what: `${values.kills} kills of the daemon, ${values.kills} of the coding agent`,
    tests: ["packages/holdfast/src/kill.test.ts", "examples/01-coding-agent/kill.test.ts"],
    env: { HOLDFAST_KILLS: values.kills },
  },
  {
    what: "a fault at every commit and task boundary, in memory and on SQLite, the coding agent included",
    tests: ["crash-everywhere", "examples/01-coding-agent/crash.test.ts"],
  },
  { what: `${MUTANTS.length} planted mutants, each killed`, tests: ["scripts/mutants.test.ts"] },
];

const rows = PARTS.map((part) => {
  console.log(`… ${part.what}`);
  const startedAt = performance.now();
  const { status } = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...part.tests], {
    cwd: root,
    env: { ...process.env, ...part.env },
    stdio: "inherit",
  });
  return { ...part, passed: status === 0, seconds: Math.round((performance.now() - startedAt) / 1_000) };
});

const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], {
  cwd: root,
  encoding: "utf8",
}).stdout.trim();
writeFileSync(
  `${root}/RELIABILITY.md`,
  [
    "# Reliability",
    "",
    "Evidence of the last `npm run campaign`; written by it.",
    "",
    `${new Date().toISOString().slice(0, 10)}, commit ${commit}, Node ${process.versions.node}, ${platform()} ${arch()}, ${cpus().length} cores`,
    "",
    "| campaign | result | seconds |",
    "|---|---|---|",
    ...rows.map(({ what, passed, seconds }) => `| ${what} | ${passed ? "passed" : "FAILED"} | ${seconds} |`),
    "",
  ].join("\n"),
);
process.exitCode = rows.every(({ passed }) => passed) ? 0 : 1;
