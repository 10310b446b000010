// The bench runs, prints the lines that it promises, and does its work. These tests check no speed.
//
// `npm test` measures the workload of `ALWAYS` on SQLite: a workload starts up to a dozen processes. The
// bench campaign measures all of them in memory and on SQLite, and packs and installs the packages
// (`HOLDFAST_CAMPAIGN`).

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { UsageError } from "@holdfast/core";
import { beforeAll, describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { exitCodeOf, makeLine, toJsonLine, toTable } from "./line.ts";
import { readOptions, USAGE } from "./options.ts";
import { WORKLOADS } from "./workloads/index.ts";
import { eachOf, gaps, median, percentile } from "./measure.ts";
import { fitted } from "./workloads/growth.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

type Json = Readonly<Record<string, unknown>>;

function bench(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

function linesOf(...args: string[]): Json[] {
  const { status, stdout, stderr } = bench("--quick", "--json", ...args);
  expect(stderr).not.toContain("Error");
  expect(status).toBe(0);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Json);
}

/** The main variant of each workload. */
const MAIN_VARIANTS: readonly (readonly [workload: string, unit: string, variant: RegExp])[] = [
  ["W1", "steps/s", /^40 steps$/],
  ["W2", "tasks/s", /^50 tasks, cold$/],
  ["W3", "steps/s", /^80 sessions x 3 steps, cold$/],
  ["W4", "round trips/s", /^ping-pong with 64 sessions$/],
  ["W5", "ms", /a checkpoint every/],
  ["W6", "wakes/s", /^200 parked, 20 woken$/],
  ["W7", "ms", /from the agent$/],
  ["agent-turns", "ms CPU/turn", /^60 turns$/],
  ["command-turns", "ms CPU/turn", /^5 turns$/],
  ["external-agent", "ms", /^from the request to the first text or call$/],
  ["sandboxes", "ms", /: a command$/],
  ["tracing", "µs CPU/step", /^W3$/],
  ["budgets", "µs CPU/step", /^W3$/],
];

/** Workloads that start processes, and are measured on SQLite alone. */
const OF_PROCESSES = ["W8", "W9", "herd"];

/** The workload of each run: many sessions at once. */
const ALWAYS: ReadonlySet<string> = new Set(["W3"]);
const isMeasured = (workload: string): boolean => isCampaign || ALWAYS.has(workload);

// One process measures all that is asked of a storage: loading the bench takes longer than many of its
// workloads.
describe.each(isCampaign ? ["memory", "sqlite"] : ["sqlite"])("a smoke run on %s", (storage) => {
  const measurable = MAIN_VARIANTS.filter(
    ([workload]) =>
      isMeasured(workload) && (storage === "sqlite" || !["W5", "command-turns"].includes(workload)),
  );
  const others = storage === "sqlite" ? OF_PROCESSES.filter(isMeasured) : ["growth"];
  const all: Json[] = [];
  const linesOfWorkload = (id: string) => all.filter(({ workload }) => workload === id);
  beforeAll(
    () => void all.push(...linesOf(...measurable.map(([id]) => id), ...others, "--storage", storage)),
    600_000,
  );

  // Each workload asserts that its work was done and fails otherwise; see `assertDone`.
  test.each(measurable)("%s prints a line per variant, the main one last", (workload, unit, variant) => {
    const lines = linesOfWorkload(workload);
    for (const line of lines) {
      expect(line).toMatchObject({
        workload,
        storage,
        variant: expect.any(String),
        unit: expect.any(String),
      });
      expect(line["value"]).toBeGreaterThan(0);
      for (const field of ["floor", "ratio", "p50Ms", "p99Ms", "cpuMicrosPerStep", "statementsPerStep"]) {
        expect(line).toHaveProperty(field);
        const value = line[field];
        if (value !== null) expect(value, field).toBeGreaterThanOrEqual(0);
      }
      if (line["floor"] !== null) {
        expect(line["ratio"]).toBeCloseTo(Number(line["value"]) / Number(line["floor"]), 1);
      }
      if (line["p99Ms"] !== null) expect(line["p99Ms"]).toBeGreaterThanOrEqual(Number(line["p50Ms"]));
      expect(line["isGoalMet"], "a smoke run judges nothing").toBeNull();
    }
    expect(lines.at(-1)).toMatchObject({ unit, variant: expect.stringMatching(variant) });
    expect(lines.at(-1)?.["floor"], "beside its floor").toBeGreaterThan(0);
  });

  test("statements are counted, and there are none in memory", () => {
    const statements = linesOfWorkload("W3").at(-1)?.["statementsPerStep"];
    if (storage === "memory") expect(statements).toBeNull();
    else expect(statements).toBeGreaterThan(1);
  });

  if (storage === "memory") {
    test("growth prints the exponent of each operation, at two small sizes", () => {
      const lines = linesOfWorkload("growth");
      expect(new Set(lines.map((line) => line["variant"])).size).toBe(16);
      for (const line of lines) {
        expect(line, String(line["variant"])).toMatchObject({ unit: "exponent", goal: "at most 1.15" });
        expect(line["isGoalMet"], "a smoke run judges nothing").toBeNull();
      }
    });
    return;
  }

  if (isMeasured("W8"))
    test("W8 runs a coordinator and runners as processes", () => {
      const lines = linesOfWorkload("W8");
      expect(lines.map(({ variant }) => String(variant).split(":")[0])).toEqual(
        ["dispatch", "W1", "W2", "W4", "W4", "W4", "W3", "W3"].map((name) => expect.stringContaining(name)),
      );
      for (const line of lines) {
        expect(line["value"], String(line["variant"])).toBeGreaterThan(0);
        expect(line["floor"], String(line["variant"])).toBeGreaterThan(0);
        expect(line["requestsPerSegment"], String(line["variant"])).toBeGreaterThan(0);
        expect(line["isGoalMet"], "a smoke run judges nothing").toBeNull();
      }
      expect(lines.at(-1)).toMatchObject({ unit: "steps/s", variant: "W3: 16 sessions x 3 steps" });
    });

  if (isMeasured("W9"))
    test("W9 tells how late events are and what readers cost", () => {
      const [idle, , line] = linesOfWorkload("W9");
      expect(idle).toMatchObject({ variant: "10 readers, no events", unit: "% CPU" });
      expect(line).toMatchObject({ variant: "20 readers, 100 events/s", unit: "ms" });
      expect(line!["p99Ms"]).toBeGreaterThanOrEqual(Number(line!["p50Ms"]));
      expect(line!["p50Ms"]).toBeGreaterThan(0);
      expect(line!["heapBytesPerReader"]).toBeGreaterThan(0);
    });

  if (isMeasured("herd"))
    test("O12: runners find a restarted coordinator, which dispatches no session again, and no step runs again", () => {
      const lines = linesOfWorkload("herd");
      expect(lines.map(({ unit }) => unit)).toEqual(["ms", "ms", "ms", "ms"]);
      expect(lines.at(-1)).toMatchObject({
        variant: "12 runners, away for 0 s: all are back",
        givenAgain: 0,
        runAgain: 0,
      });
    });
});

// In one run, because each starts a server.
test("PostgreSQL is measured beside its floor", { ...ofCampaign, timeout: 120_000 }, () => {
  const measured = isCampaign ? ["W1", "W3"] : ["W3"];
  const lines = linesOf(...measured, "--storage", "postgres");
  for (const [workload, unit, variant] of MAIN_VARIANTS.filter(([id]) => measured.includes(id))) {
    const main = lines.findLast((line) => line["workload"] === workload);
    expect(main).toMatchObject({ storage: "postgres", unit, variant: expect.stringMatching(variant) });
    expect(main?.["value"]).toBeGreaterThan(0);
    expect(main?.["floor"], "beside its floor").toBeGreaterThan(0);
  }
  // A group of 80 sessions is a statement, as is one of a single session.
  expect(lines.findLast(({ workload }) => workload === "W3")?.["statementsPerStep"]).toBeLessThan(0.2);
  if (isCampaign)
    expect(lines.findLast(({ workload }) => workload === "W1")?.["statementsPerStep"]).toBeLessThan(2);
});

// Node's package manager takes most of its time.
if (isCampaign) {
  test("W10 packs, installs from the tarballs and runs them", { timeout: 120_000 }, () => {
    const lines = linesOf("W10", "--storage", "sqlite");
    expect(lines.map(({ unit }) => unit)).toEqual(["MB", "ms", "s"]);
    expect(lines[0]).toMatchObject({
      variant: "installed: core, system, runtime, storage",
      nativeFiles: 0,
    });
    for (const { value } of lines) expect(value).toBeGreaterThan(0);
  });
}

describe("an impossible measurement is an error that lists the possible ones", () => {
  test.each([
    { args: ["W11"], says: ['there is no workload "W11"', "W1 (", "W10 (", "npm run bench -- W3"] },
    {
      args: ["W3", "--storage", "mysql"],
      says: ['there is no storage "mysql"', "memory, sqlite, postgres"],
    },
    { args: ["W5", "--storage", "memory"], says: ["W5 cannot be measured with memory", "--storage sqlite"] },
    { args: ["--repeats", "0"], says: ['"0" is not a number of repeats', "1 to 100"] },
    { args: ["--fast"], says: ["--fast", "--help"] },
  ])("$args", ({ args, says }) => {
    let refusal: unknown;
    try {
      readOptions(args, WORKLOADS);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(UsageError);
    const { message, expected, fix } = refusal as UsageError;
    for (const text of says) expect([message, expected, fix].join("\n")).toContain(text);
  });

  test("a folder that cannot be written ends the bench with code 2, without a stack", ofCampaign, () => {
    const { status, stdout, stderr } = bench("W1", "--folder", MAIN);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    for (const text of ["no databases can be made", "--folder"]) expect(stderr).toContain(text);
    expect(stderr).not.toContain("    at ");
  });

  test("--help shows the options and an example, and measures nothing", () => {
    expect(readOptions(["--help"], WORKLOADS).isHelp).toBe(true);
    for (const option of ["--storage", "--json", "--repeats", "--folder", "--quick", "Example:"])
      expect(USAGE).toContain(option);
  });
});

describe("lines", () => {
  const measured = {
    variant: "1,000 steps",
    unit: "steps/s",
    value: 1_234.567,
    floor: 2_500,
    more: { msPerStep: 0.81 },
  };

  test("a JSON line has every field, null where it does not apply", () => {
    expect(JSON.parse(toJsonLine(makeLine("W1", "sqlite", measured)))).toEqual({
      workload: "W1",
      variant: "1,000 steps",
      storage: "sqlite",
      unit: "steps/s",
      value: 1_235,
      floor: 2_500,
      ratio: 0.4938,
      p50Ms: null,
      p99Ms: null,
      cpuMicrosPerStep: null,
      statementsPerStep: null,
      goal: null,
      isGoalMet: null,
      msPerStep: 0.81,
    });
  });

  test("a table says which goals were missed", () => {
    const goal = { goal: ">= 0.5 of the floor", isGoalMet: false };
    const table = toTable([makeLine("W1", "sqlite", { ...measured, ...goal })]);
    expect(table).toContain("1,235 steps/s");
    expect(table).toContain("MISSED: >= 0.5 of the floor");
    expect(table).toContain("msPerStep 0.81");
  });
});

describe("measuring", () => {
  test.each([
    { each: 0, exponent: 1, exitCode: 0 },
    { each: 0.14, exponent: 1.14, exitCode: 0 },
    { each: 0.16, exponent: 1.16, exitCode: 1 },
    { each: 1, exponent: 2, exitCode: 1 },
  ])(
    "growth: an operation that costs n^$each each has the exponent $exponent, and exit code $exitCode",
    (cost) => {
      const points = [1_000, 10_000, 100_000].map((n) => ({ n, micros: 3 * n ** cost.each }));
      const line = makeLine("growth", "memory", fitted("work", points));
      expect(line.value).toBeCloseTo(cost.exponent, 2);
      const other = { isGoalMet: true, isGate: true };
      expect(exitCodeOf([other, { ...line, isGate: true }, other])).toBe(cost.exitCode);
      expect(exitCodeOf([{ ...line, isGate: false }]), "other workloads only tell").toBe(0);
      expect(exitCodeOf([{ isGoalMet: null, isGate: true }]), "a smoke run judges nothing").toBe(0);
    },
  );

  test("medians and percentiles are samples, not inventions", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2);
    expect(percentile([1, 2, 3, 4], 0.99)).toBe(4);
    expect(median([])).toBeNaN();
    expect(gaps([1, 4, 9])).toEqual([3, 5]);
  });

  test("eachOf does each once, and no more at a time than asked for", async () => {
    const done: number[] = [];
    let running = 0;
    let most = 0;
    await eachOf(10, 3, async (i) => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      done.push(i);
    });
    expect(done.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(most).toBe(3);
  });
});
