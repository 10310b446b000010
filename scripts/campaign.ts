// `npm run campaign`: what takes too long for every change. Its evidence goes to RELIABILITY.md, a row per
// campaign; what was not run this time keeps the row it has.
//
//   -- NAME ...                only these. Kills and orphans: kills, external-kills, real-kills, worktree-kills, stack-kills, agent-kills,
//                             fleet-kills, orphans, rollouts. Faults: streams, crash-points, postgres,
//                             simulation, nemesis, outages, upgrades, boundaries. Suites: conformance, command-lines,
//                             mcp, real-clients, real-keys, real-budget, sandboxes, parity, external-agents,
//                             page, containers, services, field, release, bench, mutants, tests
//   -- tests                   every test, with all of its repetitions, in the files that no other campaign has. The tests with the
//                             tag `campaign`, which `npm test` leaves out, are among them
//   -- --kills N               real kills of each killed example (500 by default), and nothing else
//   -- --reconnects N          of readers of event streams (10,000 by default), and nothing else
//   -- --seeds N --minutes M --from SEED
//                              simulations on all cores (100,000 and 30 by default), and nothing else. They
//                              end with the first of the two. Without a first seed each campaign begins at
//                              another. Seeds that fail go to the simulator's regression-seeds.json
//   -- nemesis --minutes M --seed N
//                              real processes in network namespaces under every fault there is (30 minutes by
//                              default). A fault that this machine cannot make is skipped by name
//   -- outages --minutes M --seed N  the same processes, whose coordinators or network are away for longer than a lease of 15 s
//   -- stack-kills --kills N --seed N  kills of coordinator, runner and supervisor of a local stack, in any order (100 by default)
//   -- external-kills --kills N  of the process that supervises an external agent, N for each kind of adapter (100 by default)
//   -- page --minutes M         the screens, and the memory of a page that stays open for M minutes (60 by default)
//   -- agent-kills --kills N    kills of the process that runs an agent file: N of `holdfast run`, and N of a runner (50 by default)
//   -- real-kills --kills N --programs FOLDER
//                              the same kills over each real agent, N for each (10 by default).
//                              `real-kills-opencode` kills one of them. Programs are installed from the npm
//                              registry, into a new folder by default. Runs only when named
//   -- real-clients, real-keys, real-budget --programs FOLDER
//                              Claude Code and the MCP Inspector's command call the orchestrator's tools. No
//                              command of a real agent finds its key. A tree of them is charged what was
//                              served, over `--kills N` (10 by default). Installed and named in the same way
//   -- field --programs FOLDER
//                              programs that play what users of other systems reported, and attacks. They are in a
//                              folder beside the checkout by default. Needs the npm registry. Runs only when named
//   -- worktree-kills --kills N  around the creation, the use and the removal of worktrees (1,000 by default)
//   -- orphans --runs N         runs of executors that leave processes behind (10,000 by default)
//   -- rollouts --runs N       orderly stops and restarts of a program, and of the processes of a fleet (200 of each by default)
//   -- postgres --restarts N    deaths of a PostgreSQL server under 10,000 sessions (200 by default). Then failovers to a standby
//                              follow, the crash scenarios, and all tests over SERIALIZABLE transactions
//   -- fleet-kills --kills N --restarts N --sessions N
//                              kills of coordinators and runners, and deaths of their PostgreSQL, under so
//                              many sessions at once. Their numbers are 500, 200 and 300 by default

import { spawn, spawnSync } from "node:child_process";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { arch, cpus, platform } from "node:os";
import { fileURLToPath } from "node:url";
import { runNemesis, type NemesisOptions } from "../packages/simulator/src/nemesis/nemesis.ts";
import { runStackKills } from "../packages/simulator/src/nemesis/stack/stack-kills.ts";
import { realKillCampaigns, realProgramCampaigns, type Outcome } from "./agents/real-campaigns.ts";
import { readArguments, readWhole, refuse } from "./arguments.ts";
import { readRows, writeRows } from "./evidence.ts";
import { fieldCampaign } from "./field/field-campaign.ts";
import { runTests, runWithFigures } from "./campaign-tests.ts";
import { installCommand } from "./installed-command.ts";
import type { SeedsReport } from "./sim.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const REGRESSION_SEEDS = `${root}/packages/simulator/src/regression-seeds.json`;
/** Seeds of campaigns begin above those of the tests, each time somewhere else. */
const FIRST_SEEDS = { least: 1_000_000, most: 900_000_000 };

const { values, positionals } = readArguments(
  import.meta.filename,
  {
    kills: { type: "string" },
    reconnects: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    minutes: { type: "string" },
    restarts: { type: "string" },
    runs: { type: "string" },
    sessions: { type: "string" },
    seed: { type: "string" },
    programs: { type: "string" },
  },
  true,
);
const kills = readWhole("kills", values.kills ?? "500");
const stackKills = readWhole("kills", values.kills ?? "100");
const externalKills = readWhole("kills", values.kills ?? "100");
const agentKills = readWhole("kills", values.kills ?? "50");
const realKills = readWhole("kills", values.kills ?? "10");
const worktreeKills = readWhole("kills", values.kills ?? "1000");
const reconnects = readWhole("reconnects", values.reconnects ?? "10000");
const seeds = readWhole("seeds", values.seeds ?? "100000");
const minutes = readWhole("minutes", values.minutes ?? "30");
const restarts = readWhole("restarts", values.restarts ?? "200");
const runs = readWhole("runs", values.runs ?? "10000");
const rollouts = readWhole("runs", values.runs ?? "200");
const sessions = readWhole("sessions", values.sessions ?? "300");
const firstSeed = values.from === undefined ? otherSeed() : readWhole("from", values.from, 0);
const nemesisSeed = readWhole("seed", values.seed ?? String(Date.now() % FIRST_SEEDS.most));

interface Campaign {
  readonly name: string;
  /** Its test files, or parts of their paths, where it is one run of tests. */
  readonly tests?: readonly string[];
  /** Whether a run of all campaigns leaves it out. */
  readonly onlyByName?: boolean;
  run(): Outcome | Promise<Outcome>;
}

/** By its name, or by an option that is its own. */
const askedFor = new Set(positionals);
if (askedFor.size === 0 && values.kills !== undefined) askedFor.add("kills");
if (askedFor.size === 0 && values.reconnects !== undefined) askedFor.add("streams");
if (askedFor.size === 0 && values.restarts !== undefined) askedFor.add("postgres");
if (askedFor.size === 0 && (values.seeds ?? values.from ?? values.minutes) !== undefined)
  askedFor.add("simulation");

const POSTGRES_TESTS = "packages/storage/src/postgres";
const FAILOVER_TESTS = "packages/simulator/src/nemesis/failover.test.ts";
const PAGE_TESTS = globSync("packages/holdfast/src/behaviour/page*.test.ts");

const RELEASE_TESTS = ["scripts/release/release.test.ts"];

const CAMPAIGNS: readonly Campaign[] = [
  ofTests(
    "kills",
    `${kills} kills of the daemon, ${kills} of the coding agent, ${Math.ceil(kills / 20)} of any process of a tree with external agents, on one machine and over two runners; a runner of the local stack that is given up; every way in which a session ends its process`,
    [
      "packages/holdfast/src/behaviour/local-give-up.test.ts",
      "packages/holdfast/src/behaviour/kill.test.ts",
      "packages/holdfast/src/behaviour/repeated-deaths.test.ts",
      "examples/01-coding-agent/kill.test.ts",
      "packages/holdfast/src/behaviour/external-tree.test.ts",
      "packages/holdfast/src/fleet/external-tree.test.ts",
    ],
    { HOLDFAST_KILLS: String(kills), HOLDFAST_TREE_KILLS: String(Math.ceil(kills / 20)) },
  ),
  ofTests(
    "external-kills",
    `${externalKills} kills of the supervising process for each of Claude Code, Codex, Pi, ACP and JSON lines, as fakes`,
    ["packages/holdfast/src/behaviour/external-kills.test.ts"],
    { HOLDFAST_KILLS: String(externalKills) },
  ),
  ...realKillCampaigns(values.programs, realKills, runTests),
  ...realProgramCampaigns(values.programs, realKills, runTests),
  ofTests(
    "agent-kills",
    `${agentKills} kills of holdfast run and ${agentKills} of a runner, in the middle of an agent file: no recorded call is repeated, and no answer is lost`,
    ["packages/holdfast/src/behaviour/agent-kills.test.ts"],
    { HOLDFAST_KILLS: String(agentKills) },
  ),
  ofTests(
    "worktree-kills",
    `${worktreeKills} kills around the creation, the use and the removal of worktrees, 0 bytes lost`,
    ["packages/workspace/src/worktrees/worktrees-kill.test.ts"],
    { HOLDFAST_KILLS: String(worktreeKills) },
  ),
  { name: "stack-kills", run: killStack },
  ofTests(
    "orphans",
    `${runs} runs of executors that leave a daemon, half of them cancelled: 0 processes, 0 zombies and no descriptor, timer or listener are left`,
    ["packages/programs/src/adapters/executor/executor-leftovers.test.ts"],
    { HOLDFAST_RUNS: String(runs) },
  ),
  ofTests(
    "rollouts",
    `${rollouts} orderly stops and restarts of a program, and ${rollouts} of the processes of a fleet: no step repeated, no attempt counted`,
    ["packages/holdfast/src/behaviour/rollouts.test.ts"],
    { HOLDFAST_ROLLOUTS: String(rollouts) },
  ),
  ofTests(
    "streams",
    `${reconnects} reconnects of readers of event streams, the coordinator killed or ended every 250`,
    ["packages/holdfast/src/fleet/streams.test.ts"],
    { HOLDFAST_RECONNECTS: String(reconnects) },
  ),
  ofTests(
    "crash-points",
    "a fault at every commit and task boundary, in memory and on SQLite, the coding agent and the model loop included; every scenario over every combination of ports; 300 simulated seeds over SQL",
    [
      "crash-everywhere",
      "packages/agents/src/model-loop/crash.test.ts",
      "examples/01-coding-agent/crash.test.ts",
      "scripts/compositions.test.ts",
      "packages/storage/src/sqlite/behaviour/simulator.test.ts",
    ],
  ),
  { name: "postgres", tests: [POSTGRES_TESTS, FAILOVER_TESTS], run: runPostgres },
  { name: "simulation", run: runSimulations },
  {
    name: "nemesis",
    run: () => disturb({ minMs: minutes * 60_000, atOnce: 2, pauseMs: 5_000, width: 24, isPoisoned: true }),
  },
  {
    name: "outages",
    run: () =>
      disturb({
        minMs: minutes * 60_000,
        faults: ["outage-coordinators", "outage-runners"],
        leaseMs: 15_000,
        atOnce: 1,
        pauseMs: 8_000,
        width: 24,
        isPoisoned: false,
      }),
  },
  {
    name: "fleet-kills",
    run: () =>
      disturb({
        minMs: 0,
        faults: ["kill-runner", "kill-coordinator", "postgres-kill", "postgres-immediate"],
        least: { kill: kills, postgres: restarts },
        atOnce: 3,
        pauseMs: 1_500,
        width: sessions,
        isPoisoned: false,
      }),
  },
  ofTests("conformance", "every clause of storage over HTTP/1.1, and on SQLite with no row at hand", [
    "packages/storage/src/remote/remote-storage.test.ts",
    "packages/storage/src/sqlite/behaviour/cold.test.ts",
  ]),
  ofTests(
    "command-lines",
    "every wrong command line in both forms of its error, and help asked for in every way",
    ["packages/holdfast/src/behaviour/bad-input.test.ts", "packages/holdfast/src/behaviour/help.test.ts"],
  ),
  ofTests(
    "upgrades",
    "sessions that wait in every way go on with a planted next version, over SQLite and in a fleet over PostgreSQL that is replaced as a whole and one process after the other; a runner that goes first and the earlier version are refused",
    ["scripts/upgrade/upgrade.test.ts", "scripts/upgrade/fleet.test.ts"],
  ),
  ofTests("boundaries", "a crash at every point of a long session with context boundaries", [
    "packages/agents/src/model-loop/compaction/compaction.test.ts",
  ]),
  ofTests("mcp", "MCP servers that others wrote, over standard input and HTTP", [
    "packages/agents/src/servers/mcp-others.test.ts",
  ]),
  ofTests(
    "sandboxes",
    "every sandbox of this machine passes the suite, and both remote ones over servers of ours",
    ["packages/workspace/src/sandboxes"],
  ),
  ofTests(
    "parity",
    "one scenario in every mode over every sandbox of this machine, with an empty table of differences",
    ["packages/holdfast/src/behaviour/parity.test.ts"],
  ),
  ofTests(
    "external-agents",
    "every adapter passes the suite of external agents; 50 kills of a session of Claude Code",
    ["packages/programs/src/adapters.test.ts", "packages/holdfast/src/behaviour/external-agents.test.ts"],
    { HOLDFAST_KILLS: "50" },
  ),
  {
    name: "page",
    tests: PAGE_TESTS,
    run: () =>
      runWithFigures(
        "the page in a real browser: local sessions, a coordinator's users, costs, fleet, schedules, audit, search, keyboard, accessibility in light, dark and at a phone's width",
        PAGE_TESTS,
        "HOLDFAST_PAGE_FIGURES",
        { HOLDFAST_PAGE_MINUTES: values.minutes ?? "60" },
      ),
  },
  {
    name: "release",
    tests: RELEASE_TESTS,
    run: () =>
      runWithFigures(
        "every package published to a registry on loopback and installed from it by a stranger: two commands to a durable run and a kill on Node 22, 24 and 26, imports, types, one line on Node 18 and 20; the templates with a model, with Hono and with Next.js, run, killed and continued",
        RELEASE_TESTS,
        "HOLDFAST_RELEASE_FIGURES",
      ),
  },
  ofTests(
    "containers",
    "examples 30 and 31 with Podman: kills, stops and a new image under sessions, each effect once",
    ["scripts/containers/containers.test.ts"],
  ),
  ofTests(
    "services",
    "the local stack, a runner and a coordinator as services of systemd in a container: restarts and a power cut of the machine, kills, stops and drains under sessions, each effect once",
    ["scripts/containers/services.test.ts"],
  ),
  fieldCampaign(values.programs, runTests),
  ofTests("bench", "every workload is measured in memory and on SQLite, and on installed packages", [
    "bench/bench.test.ts",
  ]),
  ofTests("mutants", "planted mutants", ["scripts/mutants.test.ts", "scripts/sim.test.ts"]),
  {
    name: "tests",
    run: () =>
      runTests(
        "every test with all of its repetitions, in the files of no other campaign; each call of the command in a process of its own",
        otherTestFiles(),
      ),
  },
];

const names = CAMPAIGNS.map(({ name }) => name);
if (askedFor.delete("real-kills"))
  for (const name of names.filter((one) => one.startsWith("real-kills-"))) askedFor.add(name);
const unknown = [...askedFor].find((asked) => CAMPAIGNS.every(({ name }) => name !== asked));
if (unknown !== undefined) refuse(`there is no campaign "${unknown}"`, `expected: ${names.join(", ")}`);
const commit = spawnSync("git", ["rev-parse", "--short", "HEAD"], {
  cwd: root,
  encoding: "utf8",
}).stdout.trim();
const rows = readRows(names);
for (const { name, onlyByName = false, run } of CAMPAIGNS) {
  if (askedFor.size > 0 || onlyByName ? !askedFor.has(name) : false) continue;
  console.log(`… ${name}`);
  const startedAt = performance.now();
  const { passed, what } = await run();
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const where = `${new Date().toISOString().slice(0, 10)}, ${commit}, Node ${process.versions.node}, ${platform()} ${arch()}, ${cpus().length} cores`;
  rows.set(name, `| ${name} | ${what} | ${passed ? "passed" : "FAILED"} | ${seconds} | ${where} |`);
  writeRows(names, rows);
  if (!passed) process.exitCode = 1;
}

/** A campaign that is one run of these tests. */
function ofTests(
  name: string,
  what: string,
  tests: readonly string[],
  env?: Readonly<Record<string, string>>,
): Campaign {
  return { name, tests, run: () => runTests(what, tests, env) };
}

/** The test files that no other campaign has. */
function otherTestFiles(): readonly string[] {
  const others = CAMPAIGNS.flatMap(({ tests = [] }) => tests);
  return ["packages", "scripts", "examples", "bench"]
    .flatMap((folder) => globSync(`${folder}/**/*.test.ts`, { cwd: root, exclude: ["**/node_modules/**"] }))
    .filter((file) => !others.some((other) => file.includes(other)))
    .toSorted();
}

/** Two coordinators and five runners over one PostgreSQL, each in its own network namespace where that can be had. */
async function disturb(
  options: Omit<NemesisOptions, "seed" | "leaseMs" | "coordinators" | "runners" | "isSeparate" | "say"> &
    Partial<Pick<NemesisOptions, "leaseMs">>,
): Promise<Outcome> {
  const fleet = { seed: nemesisSeed, coordinators: 2, runners: 5, isSeparate: true };
  const report = await runNemesis({
    leaseMs: 6_000,
    ...options,
    ...fleet,
    say: (line) => console.log(line),
  });
  const { violations, happened, skipped } = report;
  for (const violation of violations) console.log(violation);
  console.log(`all that was seen, and the report: ${report.folder}`);
  const faults = Object.entries(happened).map(([name, count]) => `${count} ${name}`);
  const figures = [
    `seed ${nemesisSeed}: ${faults.join(", ")}`,
    ...Object.entries(skipped).map(([name, why]) => `no ${name}: ${why}`),
    `${report.sessions} sessions`,
    `${report.requests} requests`,
    `${report.claims} changes of claims`,
    `${report.effects} effects`,
    ...(report.requeuedMs === undefined
      ? []
      : [`of killed runners gone on with after ${report.requeuedMs.join("/")} ms (p50/p99/most)`]),
    `${report.unpaused} taken for poison, though none is, and resumed by a person`,
    `all settled ${report.settledMs} ms after the last`,
    `${violations.length} promises broken`,
  ];
  return { passed: violations.length === 0, what: figures.join("; ") };
}

/** The local stack as users start it, under kills of its processes. */
async function killStack(): Promise<Outcome> {
  const launcher = `${await installCommand()}/holdfast`;
  const say = (line: string): void => console.log(line);
  const report = await runStackKills({
    seed: nemesisSeed,
    kills: stackKills,
    singleKills: Math.ceil(stackKills / 10),
    width: 10,
    pace: 0.3,
    launcher,
    say,
  });
  const { violations, killed, resumedMs, orphanedMs, cancelledMs } = report;
  for (const violation of violations) console.log(violation);
  console.log(`all that was seen, and the report: ${report.folder}`);
  const times = (what: string, of: readonly number[] | undefined): string[] =>
    of === undefined ? [] : [`${what} after ${of.join("/")} ms (p50/p99/most)`];
  const figures = [
    `seed ${nemesisSeed}: ${Object.entries(killed)
      .map(([component, count]) => `${count} of the ${component}`)
      .join(", ")}`,
    `${report.sessions} sessions`,
    `${report.requests} requests`,
    `${report.effects} effects`,
    ...times("sessions of a runner that was killed alone continued", resumedMs.runner),
    ...times("those of a supervisor, with an immediate start,", resumedMs.supervisor),
    ...times("what the dead had left was gone, once the stack was ready,", orphanedMs),
    ...times("the executor of a cancelled session was gone", cancelledMs),
    `${report.gaveUp} times given up and started again`,
    `no secret in ${report.searched} texts, files and processes`,
    `${violations.length} promises broken`,
  ];
  return { passed: violations.length === 0, what: figures.join("; ") };
}

function runPostgres(): Outcome {
  const tests = [POSTGRES_TESTS];
  const parts = [
    runTests(
      `${restarts} deaths of the server (SIGKILL, fsync on) under 10,000 sessions, 0 lost`,
      ["packages/holdfast/src/behaviour/postgres-restart.test.ts"],
      { HOLDFAST_TEST_POSTGRES_SESSIONS: "10000", HOLDFAST_TEST_POSTGRES_RESTARTS: String(restarts) },
    ),
    runTests("20 failovers to a synchronous standby under a fleet", [FAILOVER_TESTS], {
      HOLDFAST_FAILOVERS: "20",
    }),
    runTests("a fault at every commit and task boundary of every scenario", tests),
    runTests("conformance, sharing and crashes with SERIALIZABLE as the default", tests, {
      HOLDFAST_TEST_POSTGRES_ISOLATION: "serializable",
    }),
  ];
  return {
    passed: parts.every(({ passed }) => passed),
    what: parts.map(({ passed, what }) => (passed ? what : `FAILED: ${what}`)).join("; "),
  };
}

async function runSimulations(): Promise<Outcome> {
  const cores = cpus().length;
  const share = Math.ceil(seeds / cores);
  const reports = await Promise.all(
    Array.from({ length: cores }, (_, i) => simulateOnOneCore(firstSeed + i * share, share)),
  );
  const sum = (of: (report: SeedsReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  const failures = reports.flatMap((report) => report.failures);
  rememberSeeds(failures);
  const figures = [
    `${sum((report) => report.seeds)} seeds from ${firstSeed} on`,
    `${sum((report) => report.sessions)} sessions`,
    `${sum((report) => report.steps)} steps`,
    `${Math.round(sum((report) => report.simulatedMs) / 3_600_000)} simulated hours`,
    `${failures.length} promises broken${failures.length === 0 ? "" : ` (seeds ${failures.map(({ seed }) => seed).join(", ")})`}`,
  ];
  return {
    passed: failures.length === 0 && reports.every((report) => report.seeds > 0),
    what: figures.join(", "),
  };
}

/** A first seed that earlier campaigns are unlikely to have begun at. */
function otherSeed(): number {
  const { least, most } = FIRST_SEEDS;
  return least + (Date.now() % (most - least));
}

/** A process that ends without a report has simulated nothing. */
function simulateOnOneCore(from: number, count: number): Promise<SeedsReport> {
  const args = ["--from", String(from), "--seeds", String(count), "--minutes", String(minutes), "--json"];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["scripts/sim.ts", ...args], {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (data: Buffer) => (output += data.toString()));
    child.on("close", () => {
      const nothing: SeedsReport = { seeds: 0, sessions: 0, steps: 0, simulatedMs: 0, failures: [] };
      resolve(output === "" ? nothing : (JSON.parse(output) as SeedsReport));
    });
  });
}

/** They are run first by every `npm test`. */
function rememberSeeds(failures: SeedsReport["failures"]): void {
  if (failures.length === 0) return;
  const known = JSON.parse(readFileSync(REGRESSION_SEEDS, "utf8")) as SeedsReport["failures"];
  writeFileSync(REGRESSION_SEEDS, `${JSON.stringify([...known, ...failures], undefined, 2)}\n`);
}
