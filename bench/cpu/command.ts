// `npm run bench -- cpu`: the CPU time of this checkout beside the sources of an earlier commit.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { UsageError } from "@holdfast/core";
import { percentile } from "../measure.ts";
import { BASELINE, MissingBaseline, ROOT, treeOf } from "./baseline.ts";
import {
  compare,
  CPU_WORKLOADS,
  type Comparison,
  type CpuWorkload,
  type Length,
  type Trees,
} from "./compare.ts";
import { measureShares, type Shares } from "./shares.ts";
import { judgeAll, LIMIT, LONG, SHORT, type Verdict } from "./guard.ts";

/** The exit code of a measurement that is impossible here, such as in a shallow clone. */
export const EXIT_SKIPPED = 77;

const FULL: Length = { pairs: 5, chunks: 24 };

const CPU_USAGE = `npm run bench -- cpu [workload ...] [options]

CPU time of W1, W3, ping-pong 64 and a turn of the model loop, with the database in memory, beside
the sources of commit ${BASELINE.slice(0, 12)}: µs per step, round or turn, and the ratio.

  --base COMMIT     beside the sources of this commit
  --pairs N         pairs of fresh processes for each workload; ${FULL.pairs} by default
  --json            one JSON line per workload
  --check           the short form: fails when a workload costs more than ${LIMIT} times the baseline's CPU
                    in ${SHORT.pairs} pairs and then twice in ${LONG.pairs}. Where the history is missing it says so and
                    exits with ${EXIT_SKIPPED}
  --self N          the short form N times with the baseline on both sides; fails when one of them fails
  --shares          where the time of this checkout goes: SQLite, garbage, Node, each of our packages
  --planted PERCENT with a slowdown on our side; with --self it fails when one of them does not fail

Example: npm run bench -- cpu W3 --base HEAD~1
`;

/** Answers the exit code. */
export async function runCpu(args: readonly string[]): Promise<number> {
  const options = readCpuOptions(args);
  if (options.isHelp) return print(CPU_USAGE, 0);
  if (options.isShares) return showShares(options);
  let base: string;
  try {
    base = treeOf(options.base);
  } catch (error) {
    if (error instanceof MissingBaseline) return print(`skipped: ${error.message}\n`, EXIT_SKIPPED);
    throw error;
  }
  // Its databases are gone afterwards, also when it is interrupted.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
  const trees: Trees = {
    base,
    ours: options.selfRuns > 0 ? base : ROOT,
    plantedPercent: options.plantedPercent,
  };
  if (options.selfRuns > 0) return proveOnItself(trees, options.selfRuns);
  if (options.isCheck) return (await check(trees)) ? 0 : 1;
  for (const workload of options.workloads) {
    if (workload === "turn" && !hasAgentFiles(base)) {
      print("turn          left out: these sources load no agent files\n", 0);
      continue;
    }
    const comparison = await compare(workload, trees, { ...FULL, pairs: options.pairs });
    print(options.isJson ? `${JSON.stringify(comparison)}\n` : `${lineOf(comparison)}\n`, 0);
  }
  return 0;
}

/** Sources such as those of 7af0b5c do not. Their other workloads have the API of today. */
function hasAgentFiles(tree: string): boolean {
  const rooms = ["agent-files", "files"]; // The name of the folder before and today.
  return rooms.some((room) => existsSync(join(tree, "packages", "agents", "src", room)));
}

async function showShares({ workloads, isJson }: CpuOptions): Promise<0> {
  for (const workload of workloads) {
    const measured = await measureShares(workload, ROOT);
    if (isJson) print(`${JSON.stringify(measured)}\n`, 0);
    else
      print(`${workload}: ${measured.micros.toFixed(1)} µs\n${measured.shares.map(shareLine).join("")}`, 0);
  }
  return 0;
}

function shareLine({ owner, part }: Shares["shares"][number]): string {
  return `  ${(100 * part).toFixed(1).padStart(5)} %  ${owner}\n`;
}

interface CpuOptions {
  readonly workloads: readonly CpuWorkload[];
  readonly base: string;
  readonly pairs: number;
  readonly selfRuns: number;
  readonly plantedPercent: number;
  readonly isCheck: boolean;
  readonly isShares: boolean;
  readonly isJson: boolean;
  readonly isHelp: boolean;
}

/** @throws UsageError when an option or a workload is unknown. */
export function readCpuOptions(args: readonly string[]): CpuOptions {
  const { values, positionals } = parse(args);
  const chosen = positionals.map((name) => {
    const workload = CPU_WORKLOADS.find((known) => known.toLowerCase() === name.toLowerCase());
    if (workload !== undefined) return workload;
    throw new UsageError(`"${name}" is no workload of cpu`, {
      expected: CPU_WORKLOADS.map((known) => JSON.stringify(known)).join(", "),
      fix: "npm run bench -- cpu W3",
    });
  });
  return {
    workloads: chosen.length === 0 ? CPU_WORKLOADS : chosen,
    base: values.base,
    pairs: readNumber("pairs", values.pairs, 1),
    selfRuns: readNumber("self", values.self, 0),
    plantedPercent: readNumber("planted", values.planted, 0),
    isCheck: values.check,
    isShares: values.shares,
    isJson: values.json,
    isHelp: values.help,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        base: { type: "string", default: BASELINE },
        pairs: { type: "string", default: String(FULL.pairs) },
        self: { type: "string", default: "0" },
        planted: { type: "string", default: "0" },
        check: { type: "boolean", default: false },
        shares: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (thrown) {
    const message = thrown instanceof Error ? (thrown.message.split(". ")[0] ?? "") : String(thrown);
    throw new UsageError(message, { fix: "npm run bench -- cpu --help shows the options" });
  }
}

function readNumber(name: string, text: string, least: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) >= least) return Number(text);
  throw new UsageError(`--${name} ${text} is no possible number`, {
    expected: `a whole number from ${least} to 99999`,
    fix: "npm run bench -- cpu --help shows the options",
  });
}

async function check(trees: Trees): Promise<boolean> {
  let isFine = true;
  for await (const verdict of judgeAll((workload, length) => compare(workload, trees, length))) {
    print(`${sayVerdict(verdict)}\n`, 0);
    isFine &&= verdict.isFine;
  }
  return isFine;
}

function sayVerdict({ isFine, measured }: Verdict): string {
  const lines = measured.map(lineOf).join("\n");
  if (isFine) return lines;
  const advice = "make it cheaper, or move the baseline with the ratio and the reason (bench/README.md)";
  return `${lines}\nFAILED: more than ${LIMIT} times the baseline's CPU in ${measured.length} measurements; ${advice}`;
}

/** Whether the short form judges as it must, with nothing or a known slowdown between the two sides. */
async function proveOnItself(trees: Trees, runs: number): Promise<number> {
  const ratios = new Map<CpuWorkload, number[]>(CPU_WORKLOADS.map((workload) => [workload, []]));
  let failures = 0;
  let repeated = 0;
  for (let run = 1; run <= runs; run++) {
    let isFine = true;
    for await (const verdict of judgeAll((workload, length) => compare(workload, trees, length))) {
      ratios.get(verdict.workload)!.push(verdict.measured[0]!.ratio);
      if (verdict.measured.length > 1) repeated++;
      isFine &&= verdict.isFine;
    }
    if (!isFine) failures++;
    process.stderr.write(`${run} of ${runs}: ${isFine ? "fine" : "too slow"}\n`);
  }
  for (const [workload, measured] of ratios) print(`${spreadOf(workload, measured)}\n`, 0);
  const isRight = failures === (trees.plantedPercent > 0 ? runs : 0);
  return print(`${failures} of ${runs} failed, ${repeated} workloads were repeated\n`, isRight ? 0 : 1);
}

function spreadOf(workload: CpuWorkload, ratios: readonly number[]): string {
  const [least, low, middle, high, most] = [0, 0.1, 0.5, 0.9, 1].map((part) =>
    percentile(ratios, part).toFixed(3),
  );
  return `${workload.padEnd(13)} median ${middle}, 10 to 90 %: ${low} to ${high}, all: ${least} to ${most}`;
}

function lineOf({ workload, ratio, pairs, oursMicros, baseMicros }: Comparison): string {
  const each = pairs.map((pair) => pair.toFixed(2)).join(" ");
  const micros = `${oursMicros.toFixed(1)} µs beside ${baseMicros.toFixed(1)}`;
  return `${workload.padEnd(13)} ${ratio.toFixed(3)} x   ${micros}   pairs: ${each}`;
}

function print(text: string, code: number): number {
  process.stdout.write(text);
  return code;
}
