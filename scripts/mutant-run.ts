// Runs the tests of one planted mutant, and judges whether a test that is meant to notice has noticed.
//
// It does not know which mutants there are: that is the list in `mutants.ts`.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { editOf, markableSources, type MarkedChange } from "./mutant-source.ts";

export interface Mutant extends MarkedChange {
  /** The promise it breaks. */
  readonly name: string;
  /** The files of the tests that are meant to notice. */
  readonly tests: readonly string[];
  /** Part of the name of the test that must fail. */
  readonly test: string;
  /**
   * The mutant makes that test wait without an end, so the test can only run out of time. It counts as a kill
   * only if the same test passes right before, in the same way, without the mutant.
   */
  readonly hangs?: boolean;
}

/** Tests that a mutant keeps from ending are ended, and have noticed nothing. */
const TESTS_MAX_MS = 100_000;
/** How vitest reports a test or a hook that was given up. Such a report shows nothing about the mutant. */
const TIMED_OUT = /\b(?:Test|Hook) timed out in \d+ ?ms/;

const root = fileURLToPath(new URL("..", import.meta.url));

/** The result of the tests on a mutant. */
export interface MutantRun {
  /** A test that is meant to notice failed, and not because it ran out of time. */
  readonly isKilled: boolean;
  /** Why it is not killed, for people. */
  readonly why: string;
}

/** The part of vitest's JSON report that is read here. */
interface Report {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

/** The environment in which vitest and Node load the sources with a change. */
export function plantedEnvironment(change: MarkedChange): Readonly<Record<string, string>> {
  return {
    HOLDFAST_MUTANT: JSON.stringify(editOf(change, markableSources(root))),
    NODE_OPTIONS: `--import=${new URL("mutant-hook.ts", import.meta.url).href}`,
  };
}

/** Run the tests of a mutant with the mutant planted. */
export async function runMutant(mutant: Mutant): Promise<MutantRun> {
  const { tests, test, hangs } = mutant;
  const planted = plantedEnvironment(mutant);
  if (hangs === true) {
    const control = await runTests(tests, test, {});
    if (typeof control === "string") return { isKilled: false, why: control };
    if (!passes(control)) return { isKilled: false, why: "the test does not pass without the mutant either" };
  }
  const report = await runTests(tests, test, planted);
  return typeof report === "string" ? { isKilled: false, why: report } : judge(report, hangs);
}

/** Answers vitest's report, or why there is none. */
async function runTests(
  tests: readonly string[],
  test: string,
  environment: Readonly<Record<string, string>>,
): Promise<Report | string> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-mutant-"));
  try {
    const reportFile = join(folder, "report.json");
    const output = await runToEnd(
      [
        "node_modules/vitest/vitest.mjs",
        "run",
        "--bail=1",
        "--reporter=json",
        `--outputFile=${reportFile}`,
        "--testTimeout=15000",
        "-t",
        test.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"),
        ...tests,
      ],
      environment,
    );
    if (!existsSync(reportFile)) return `the tests gave no report:\n${output.slice(-2_000)}`;
    return JSON.parse(readFileSync(reportFile, "utf8")) as Report;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function passes({ testResults }: Report): boolean {
  const ran = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "passed" || status === "failed");
  return ran.length > 0 && ran.every(({ status }) => status === "passed");
}

/** A mutant that could not be planted makes files fail to load, which is no failure of a test: it kills nothing. */
export function judge({ testResults }: Report, hangs = false): MutantRun {
  const results = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = results.filter(({ status }) => status === "failed");
  const isLate = ({ failureMessages = [] }: (typeof failed)[number]): boolean =>
    failureMessages.every((message) => TIMED_OUT.test(message));
  const noticed = hangs ? failed : failed.filter((result) => !isLate(result));
  if (noticed.length > 0) return { isKilled: true, why: "" };
  if (failed.length > 0)
    return { isKilled: false, why: `only time-outs: ${failed.map(({ fullName }) => fullName).join("; ")}` };
  const unloaded = testResults.map(({ message }) => message).filter((message) => message !== "");
  if (unloaded.length > 0) return { isKilled: false, why: `test files did not load: ${unloaded.join("; ")}` };
  const passed = results.filter(({ status }) => status === "passed").length;
  return {
    isKilled: false,
    why: passed === 0 ? "no test ran: none has that name" : `${passed} tests passed`,
  };
}

function runToEnd(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { ...process.env, ...environment },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // A group of its own: a worker that spins outlives the vitest that started it.
    });
    const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), TESTS_MAX_MS);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (data: Buffer) => (output += data.toString()));
    child.on("close", () => {
      clearTimeout(timer);
      resolve(output);
    });
  });
}
