// The guard of the CPU time judges as it says, and measures the sources of the commit alone. No test here
// depends on the machine's speed, but those of the campaign, with a slowdown that is far above the limit.

import { spawnSync } from "node:child_process";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError } from "@holdfast/core";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { describe, expect, test, vi } from "vitest";
import { withFolder } from "../storages.ts";
import { BASELINE, MissingBaseline, ROOT, treeOf } from "./baseline.ts";
import { EXIT_SKIPPED, readCpuOptions, runCpu } from "./command.ts";
import { compare, CPU_WORKLOADS, type Comparison } from "./compare.ts";
import { judgeAll, LIMIT, LONG, SHORT, type Verdict } from "./guard.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));

describe("the verdict", () => {
  test.each([
    { ratios: [1], isFine: true },
    { ratios: [LIMIT], isFine: true },
    { ratios: [1.2, 1], isFine: true },
    { ratios: [1.2, 1.2, 1], isFine: true },
    { ratios: [1.2, 1.2, 1.2], isFine: false },
  ])("measured as $ratios it is $isFine, and no more is measured", async ({ ratios, isFine }) => {
    const lengths: unknown[] = [];
    const verdicts: Verdict[] = [];
    const measure = judgeAll((workload, length) => {
      if (workload === "W3") lengths.push(length);
      const ratio = workload === "W3" ? ratios[lengths.length - 1]! : 1;
      return Promise.resolve<Comparison>({
        workload,
        ratio,
        pairs: [ratio],
        oursMicros: ratio,
        baseMicros: 1,
      });
    });
    for await (const verdict of measure) verdicts.push(verdict);
    expect(verdicts.map(({ workload }) => workload)).toEqual(CPU_WORKLOADS);
    expect(verdicts.filter((verdict) => !verdict.isFine)).toHaveLength(isFine ? 0 : 1);
    expect(lengths).toEqual([SHORT, LONG, LONG].slice(0, ratios.length));
    expect(LONG.pairs * LONG.chunks).toBe(3 * SHORT.pairs * SHORT.chunks);
  });
});

describe("a baseline that cannot be had is named", () => {
  const git = (cwd: string, ...args: string[]) => {
    const author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    const { status, stderr } = spawnSync("git", [...author, ...args], { cwd, encoding: "utf8" });
    expect(status, stderr).toBe(0);
  };

  test("it is missing outside of a repository, in a clone without the commit, and in a shallow one", () =>
    withFolder(tmpdir(), async (folder) => {
      const bare = join(folder, "no repository");
      const clone = join(folder, "clone");
      const shallow = join(folder, "shallow");
      for (const root of [bare, clone]) mkdirSync(root);
      for (const root of [bare, clone]) writeFileSync(join(root, "package-lock.json"), '{"packages":{}}');
      git(clone, "init", "-q");
      git(clone, "add", ".");
      git(clone, "commit", "-qm", "one");
      git(clone, "commit", "-qm", "two", "--allow-empty");
      git(folder, "clone", "-q", "--depth", "1", `file://${clone}`, shallow);
      const refusalIn = (root: string): string => {
        try {
          return treeOf(BASELINE, root, join(root, "trees"));
        } catch (error) {
          expect(error).toBeInstanceOf(MissingBaseline);
          return (error as Error).message;
        }
      };
      expect(refusalIn(bare)).toContain("is no repository of git");
      expect(refusalIn(clone)).toContain("its history is not in this clone");
      expect(refusalIn(shallow)).toContain("this clone is shallow");
    }));

  test("the command says so and exits with a code of its own", async () => {
    const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      expect(await runCpu(["--check", "--base", "0".repeat(40)])).toBe(EXIT_SKIPPED);
      expect(write).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/^skipped: /));
    } finally {
      write.mockRestore();
    }
  });
});

test(
  "baseline-1: a package of the baseline imports the packages beside it, and none of this checkout",
  ofCampaign,
  ({ skip }) => {
    const tree = treeOrSkip(skip);
    const require = createRequire(join(tree, "packages", "agents", "src", "index.ts"));
    for (const name of ["@holdfast/core", "@holdfast/runtime"])
      expect(realpathSync(require.resolve(name)).startsWith(realpathSync(tree) + sep), name).toBe(true);
  },
);

test(
  "every workload runs with the sources of the baseline and of this checkout",
  { ...ofCampaign, timeout: 600_000 },
  async ({ skip }) => {
    const trees = { base: treeOrSkip(skip), ours: ROOT, plantedPercent: 0 };
    for (const workload of CPU_WORKLOADS) {
      const comparison = await compare(workload, trees, { pairs: 1, chunks: 1 });
      expect(comparison.ratio, workload).toBeGreaterThan(0);
      expect(comparison.oursMicros, workload).toBeGreaterThan(0);
    }
  },
);

test("a planted slowdown of a half fails the check", { ...ofCampaign, timeout: 600_000 }, ({ skip }) => {
  treeOrSkip(skip);
  const args = [MAIN, "cpu", "--self", "1", "--planted", "50"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stdout + stderr).toContain("1 of 1 failed");
  expect(status).toBe(0);
});

test.each([
  { args: ["W2"], says: ['"W2" is no workload of cpu', "npm run bench -- cpu W3"] },
  { args: ["--self", "often"], says: ["--self often", "a whole number"] },
  { args: ["--fast"], says: ["--fast", "--help"] },
])("an impossible option names the possible ones: $args", ({ args, says }) => {
  let refusal: unknown;
  try {
    readCpuOptions(args);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(UsageError);
  const { message, expected, fix } = refusal as UsageError;
  for (const text of says) expect([message, expected, fix].join("\n")).toContain(text);
});

test("workloads are named as they are printed", () => {
  expect(readCpuOptions(["w3", "TURN"]).workloads).toEqual(["W3", "turn"]);
  expect(readCpuOptions([]).base).toBe(BASELINE);
});

function treeOrSkip(skip: (reason: string) => never): string {
  try {
    return treeOf(BASELINE);
  } catch (error) {
    if (error instanceof MissingBaseline) return skip(error.message);
    throw error;
  }
}
