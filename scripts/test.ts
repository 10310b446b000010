// `npm test`: every check of the repository, then the tests, then one line that adds them up.
//
//   -- kernel                  file filters or vitest's own flags, as in `-t "ST4"`: vitest alone, with every test of these files
//   -- --changed               the tests beside a changed file, and those that reach it by imports, nearest first, until their times add
//                              up to a minute. It also checks types, tidy and unused code, and lint and
//                              format of the changed files. A change is the difference from the merge base
//                              with `main`, and on `main` from the commit before. The first line of the
//                              output says what is left out. No test of a campaign is played.
//   -- --changed --campaign    the same with the tests of campaigns, which nothing else plays beside a change. They take minutes
//   -- --expensive             runs nothing: the test files with the most processor time, as they were last measured in this checkout
//
//   - The last line is `N passed, N failed`, and `, N skipped` when there are any. A check counts as one
//     test.
//   - Nothing is skipped silently: each skipped test is named. The reason is that of `skip("…")`, in the
//     name, or in the comment on its line or above it.
//   - A test that could not run has failed: a file that does not load, an error nobody caught, no test at
//     all.
//   - The run ends. A test that never yields cannot be timed out from inside its worker. When nothing has
//     finished for STALL_MS, the tests that were running are named and have failed.
//   - The checks run one after another, beside the tests: many tests wait for the programs that they started.
//   - Each file's processor time is kept. A run names the files that took more than BUDGET_MS.
//   - A run of all files, or of a change, leaves out the tests with the tag `campaign`, and says how many they
//     are. `npm run campaign -- tests` plays them.
//   - Everything that failed is named once more in the lines before the last one.
//   - The check of speed runs when nothing else does any more, since it measures processor time. Where it
//     cannot run, as in a shallow clone, it is skipped by name.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { createVitest, parseCLI, type Reporter, type TestCase, type TestModule } from "vitest/node";
import { printHelp } from "./arguments.ts";
import { changedFiles, choose, lastTimes } from "./changed-tests.ts";
import { keepTimes, knownTimes } from "./processor-time.ts";
import { readTree } from "./tidy/tree.ts";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
  /** A line for each failure that has a name. */
  readonly failures: string[];
}

type Check = readonly [name: string, command: string, ...args: string[]];

const CHECKS: readonly Check[] = [
  ["types", "tsc", "-p", "tsconfig.json", "--noEmit"],
  // The others have the types of Node in `types`, so a global of Node in these would be found by a release.
  ["types of core, without Node", "tsc", "-p", "packages/core", "--noEmit"],
  ["types of proto, without Node", "tsc", "-p", "packages/proto", "--noEmit"],
  ["types of the page", "tsc", "-p", "packages/dashboard", "--noEmit"],
  ["lint", "oxlint", "--type-aware", "--deny-warnings"],
  ["format", "oxfmt", "--check"],
  ["unused code", "knip", "--no-progress"],
  ["tidy", "node", "scripts/tidy.ts"],
];

/** The command that fixes all that a check finds. */
const FIXED_BY: Readonly<Record<string, string>> = {
  format: "npm run format",
};

const SPEED: Check = ["speed", "node", "bench/main.ts", "cpu", "--check"];
/** The exit code of a check that cannot run here. */
const EXIT_SKIPPED = 77;

/** Each program that some tests need, with its Debian package. */
const PROGRAMS = [
  ["strace", "strace"],
  ["bwrap", "bubblewrap"],
] as const;

const STALL_MS = 5 * 60_000;
/**
 * A test file has this processor time, with the processes that it starts. CONTRIBUTING.md says what belongs
 * to a campaign instead.
 */
const BUDGET_MS = 5_000;
const EXPENSIVE_FILES = 40;
/** The tag of tests that a run of all files leaves out; declared in `vitest.config.ts`. */
const CAMPAIGN_TAG = "campaign";
const WITHOUT_CAMPAIGN = `--tags-filter=!${CAMPAIGN_TAG}`;

const root = fileURLToPath(new URL("..", import.meta.url));
const env = {
  ...process.env,
  PATH: [dirname(process.execPath), join(root, "node_modules", ".bin"), process.env["PATH"]].join(delimiter),
};

process.chdir(root);
const args = process.argv.slice(2);
const counts: Counts = { passed: 0, failed: 0, skipped: 0, failures: [] };
if (args.includes("--help") || args.includes("-h")) printHelp(import.meta.filename);
if (args.includes("--expensive")) {
  printExpensive();
  process.exit(0);
}
if (args.length === 0) {
  installPrograms();
  await Promise.all([runChecks(CHECKS, counts), runTests([WITHOUT_CAMPAIGN], counts)]);
  await runChecks([SPEED], counts); // Last, because it measures processor time.
} else if (args.includes("--changed")) {
  const isWithCampaign = args.includes("--campaign");
  const { tests, checks } = forChange(isWithCampaign);
  const rest = args.filter((arg) => arg !== "--changed" && arg !== "--campaign");
  const filter = isWithCampaign ? [] : [WITHOUT_CAMPAIGN];
  const run = tests.length > 0 ? runTests([...filter, ...rest, ...tests], counts) : undefined;
  await Promise.all([runChecks(checks, counts), run]);
} else await runTests(args, counts);
const { passed, failed, skipped, failures } = counts;
for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
// Not `exitCode`: what a test left open must not keep the run from ending.
process.exit(failed > 0 ? 1 : 0);

/** The tests and the checks of `--changed`. Says what it leaves out. */
function forChange(isWithCampaign: boolean): {
  readonly tests: readonly string[];
  readonly checks: readonly Check[];
} {
  const { base, files } = changedFiles(root);
  const { chosen, leftOut } = choose(readTree(root), files, lastTimes(root), isWithCampaign);
  const sources = files.filter((file) => /\.(ts|mjs)$/.test(file) && existsSync(join(root, file)));
  console.log(
    `changed since ${base.slice(0, 7)}: ${files.length} files. Runs the ${chosen.length} nearest test files, types, tidy, unused code, and lint and ` +
      `format of ${sources.length} sources. Leaves out ${leftOut.length} farther test files, to end within a minute, ` +
      `${isWithCampaign ? "" : "the tests of campaigns, "}and the test files that import no changed file`,
  );
  const ofSources = new Set(["lint", "format"]);
  const checks = CHECKS.filter(([name]) => sources.length > 0 || !ofSources.has(name));
  return {
    tests: chosen,
    checks: checks.map((check) => (ofSources.has(check[0]) ? [...check, ...sources] : check)),
  };
}

async function runChecks(checks: readonly Check[], sum: Counts): Promise<void> {
  for (const check of checks) {
    const end = await runCheck(check);
    sum[end]++;
    if (end !== "failed") continue;
    const [name, ...command] = check;
    const fix = FIXED_BY[name];
    sum.failures.push(`${name}: ${fix === undefined ? command.join(" ") : `fix it with \`${fix}\``}`);
  }
}

/** Runs one check. Its output is shown only when it fails. */
async function runCheck([name, command, ...commandArgs]: Check): Promise<"passed" | "failed" | "skipped"> {
  const startedAt = performance.now();
  const checking = spawn(command, commandArgs, { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [checking.stdout, checking.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve) => {
    checking.once("error", (error) => {
      output += error.message;
      resolve(null);
    });
    checking.once("close", resolve);
  });
  if (code === EXIT_SKIPPED) {
    console.log(`skipped: ${name}: ${output.trim().replace(/^skipped: /, "")}`);
    return "skipped";
  }
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds(startedAt)} s)`);
  if (code !== 0) console.log([command, ...commandArgs].join(" "), "\n", output);
  return code === 0 ? "passed" : "failed";
}

async function runTests(cliArgs: readonly string[], sum: Counts): Promise<void> {
  const { filter, options } = parseCLI(["vitest", "run", ...cliArgs]);
  const watch = stallWatch();
  const reporters = [...[options.reporters ?? "default"].flat(), watch.reporter];
  const vitest = await createVitest({ ...options, watch: false, reporters });
  const run = vitest.start(filter).catch((error: unknown) => {
    console.log(error); // also when no file matches
    sum.failed++;
  });
  const isStalled = await Promise.race([run, watch.stalled]);

  for (const testModule of vitest.state.getTestModules()) addModule(testModule, sum);
  reportLeftOut(vitest.state.getTestModules());
  reportTimes(timesOf(vitest.state.getTestModules()));
  for (const error of vitest.state.getUnhandledErrors()) {
    sum.failed++;
    sum.failures.push(`an error that nobody caught: ${firstLine((error as Error).message)}`);
  }
  if (sum.passed + sum.failed + sum.skipped === 0) {
    console.log("no test matches");
    sum.failed++;
  }
  if (isStalled !== true) await vitest.close(); // which waits for the workers
}

function timesOf(modules: readonly TestModule[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const testModule of modules) {
    const { processorMs } = testModule.meta() as { processorMs?: number };
    if (processorMs !== undefined) times.set(relative(root, testModule.moduleId), Math.round(processorMs));
  }
  return times;
}

function reportTimes(times: ReadonlyMap<string, number>): void {
  keepTimes(root, times);
  const tooMuch = mostExpensive(times).filter(([, ms]) => ms > BUDGET_MS);
  console.log(`processor time of ${times.size} test files: ${inSeconds(sumOf(times))} s`);
  for (const [file, ms] of tooMuch)
    console.log(`more than ${inSeconds(BUDGET_MS)} s of processor time: ${file} (${inSeconds(ms)} s)`);
}

function printExpensive(): void {
  const times = new Map([...knownTimes(root)].filter(([file]) => existsSync(join(root, file))));
  for (const [file, ms] of mostExpensive(times).slice(0, EXPENSIVE_FILES))
    console.log(`${inSeconds(ms).padStart(7)} s  ${file}`);
  console.log(`${inSeconds(sumOf(times)).padStart(7)} s  all ${times.size} test files that were measured`);
}

function mostExpensive(times: ReadonlyMap<string, number>): (readonly [file: string, ms: number])[] {
  return [...times].toSorted(([, one], [, other]) => other - one);
}

function sumOf(times: ReadonlyMap<string, number>): number {
  return [...times.values()].reduce((sum, ms) => sum + ms, 0);
}

function inSeconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

/** Knows what is running, and when something last finished. */
function stallWatch(): { readonly reporter: Reporter; readonly stalled: Promise<true> } {
  const running = new Set<TestModule>();
  const workers: ChildProcess[] = [];
  subscribe("child_process", (message) => workers.push((message as { process: ChildProcess }).process));
  let finishedAt = performance.now();
  const onTestCaseResult = () => void (finishedAt = performance.now());
  const reporter: Reporter = {
    onTestModuleStart: (testModule) => void running.add(testModule),
    onTestModuleEnd: (testModule) => void running.delete(testModule),
    onTestCaseResult,
  };
  const stalled = new Promise<true>((resolve) => {
    const timer = setInterval(() => {
      if (performance.now() - finishedAt < STALL_MS) return;
      clearInterval(timer);
      for (const { moduleId } of running) console.log(`stalled: ${relative(root, moduleId)}`);
      // Nothing softer ends a process that never yields, and it would outlive us.
      for (const worker of workers) worker.kill("SIGKILL");
      resolve(true);
    }, 1_000);
    timer.unref();
  });
  return { reporter, stalled };
}

function addModule(testModule: TestModule, sum: Counts): void {
  const file = relative(root, testModule.moduleId);
  const fail = (name: string, why: string): void => {
    sum.failed++;
    sum.failures.push(`${file}: ${name}: ${firstLine(why)}`);
  };
  if (testModule.state() === "queued") fail("all tests", "their turn never came");
  for (const test of testModule.children.allTests()) {
    if (isLeftOut(test)) continue;
    const { state, errors } = test.result();
    if (state === "pending") fail(test.fullName, "the run ended before it did");
    else if (state === "failed") fail(test.fullName, errors[0]?.message ?? "no message");
    else sum[state]++;
    if (state !== "skipped" || isFilteredOut(test)) continue;
    console.log(`skipped: ${file}: ${test.fullName}: ${skipReason(test)}`);
  }
  // Errors that belong to no test: the file did not load, or a hook around its tests failed.
  const suites = [testModule, ...testModule.children.allSuites()];
  for (const suite of suites) {
    const [error] = suite.errors();
    if (error !== undefined) fail(suite.type === "module" ? "all tests" : suite.fullName, error.message);
  }
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!;
}

/** Not asked for with `-t`, which needs no naming. */
function isFilteredOut(test: TestCase): boolean {
  const pattern = test.project.config.testNamePattern;
  return pattern !== undefined && !pattern.test(test.fullName.replaceAll(" > ", " "));
}

function isLeftOut({ project, options }: TestCase): boolean {
  return project.config.tagsFilter !== undefined && (options.tags ?? []).includes(CAMPAIGN_TAG);
}

function reportLeftOut(modules: readonly TestModule[]): void {
  const leftOut = modules.map((testModule) => [...testModule.children.allTests()].filter(isLeftOut).length);
  const count = leftOut.reduce((sum, tests) => sum + tests, 0);
  const files = leftOut.filter((tests) => tests > 0).length;
  if (count > 0)
    console.log(`left out: ${count} tests of ${files} files, which \`npm run campaign -- tests\` plays`);
}

/** The comment on a line, counted from 1, or above it. */
function reasonAt(lines: readonly string[], line: number): string | undefined {
  const [above, here] = lines.slice(Math.max(line - 2, 0), line);
  return (/\/\/\s*(.+)$/.exec(here ?? "") ?? /^\s*\/\/\s*(.+)$/.exec(above ?? ""))?.[1];
}

function skipReason(test: TestCase): string {
  const result = test.result();
  if (result.state === "skipped" && result.note !== undefined) return result.note;
  if (/\(skipped: /.test(test.fullName)) return "as its name says";
  const lines = readFileSync(test.module.moduleId, "utf8").split("\n");
  // The reason may stand beside the `describe.skip` around the test.
  for (let at: TestCase["parent"] | TestCase = test; at.type !== "module"; at = at.parent) {
    const line = at.location?.line ?? 0;
    // It may also stand where a function such as `const ofCampaign = test.skipIf(…)` is made.
    const maker = /^\s*(\w+)\(/.exec(lines[line - 1] ?? "")?.[1];
    const made = maker === undefined ? -1 : lines.findIndex((one) => one.startsWith(`const ${maker} = `));
    const reason = reasonAt(lines, line) ?? reasonAt(lines, made + 1);
    if (reason !== undefined) return reason;
  }
  return "no reason given";
}

/** Where we may, on a bare Debian, we fetch the programs that tests need. Elsewhere such tests are skipped by name. */
function installPrograms(): void {
  const isThere = (program: string): boolean =>
    spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
  const missing = PROGRAMS.filter(([program]) => !isThere(program)).map(([, name]) => name);
  if (missing.length === 0 || process.getuid?.() !== 0 || !existsSync("/etc/debian_version")) return;
  const startedAt = performance.now();
  const quietly = {
    stdio: "ignore",
    timeout: 120_000,
    env: { ...env, DEBIAN_FRONTEND: "noninteractive" },
  } as const;
  const install = () => spawnSync("apt-get", ["install", "-y", "-qq", ...missing], quietly).status === 0;
  // A fresh image has no package lists, so the first try may find nothing.
  const isDone = install() || (spawnSync("apt-get", ["update", "-qq"], quietly).status === 0 && install());
  console.log(
    `${isDone ? "ok    " : "no    "} ${missing.join(", ")}, installed with apt-get (${seconds(startedAt)} s)`,
  );
}

function seconds(startedAt: number): string {
  return ((performance.now() - startedAt) / 1_000).toFixed(1);
}
