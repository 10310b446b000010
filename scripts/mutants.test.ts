import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { judge, runMutant } from "./mutant-run.ts";
import { MUTANTS } from "./mutants.ts";
import { testsIn } from "./tidy/sentences.ts";
import { readTree } from "./tidy/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * A few that show the mechanism works: by vitest in core, in a storage and in the coordinator. Each costs a run of its
 * tests, so all of them are a campaign (`HOLDFAST_CAMPAIGN`).
 */
const ALWAYS = [
  "H1: acknowledged means synced",
  "H5: another input at a position is seen",
  "X13: another's session is told like one that is not there",
];

const isCampaign = process.env["HOLDFAST_CAMPAIGN"] !== undefined;

test.each(isCampaign ? MUTANTS : MUTANTS.filter(({ name }) => ALWAYS.includes(name)))(
  "planted mutant is killed: $name",
  { timeout: 120_000 },
  async (mutant) => {
    const { isKilled, why } = await runMutant(mutant);
    expect(isKilled, why).toBe(true);
  },
);

test("each mutant has a name of its own, and its text is in the source once", () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  expect(ALWAYS.filter((name) => MUTANTS.every((mutant) => mutant.name !== name))).toEqual([]);
  const wrong = MUTANTS.filter(
    ({ file, find }) => readFileSync(root + file, "utf8").split(find).length !== 2,
  );
  expect(wrong.map(({ name }) => name)).toEqual([]);
});

// A renamed test would let its mutant survive until the next campaign.
test("each mutant names a test that there is", () => {
  const { sources } = readTree(root);
  const names = sources.flatMap((source) => testsIn(source).map(({ name }) => name));
  const others = sources.filter(({ file }) => !file.startsWith("scripts/mutants"));
  // Names that a test takes from its data stand in no call of `test`.
  const isData = (named: string): boolean => others.some(({ text }) => text.includes(named));
  const missing = MUTANTS.filter(
    ({ test: named }) => !names.some((name) => canBe(named, name)) && !isData(named),
  );
  expect(missing.map(({ name, test: named }) => `${name}: ${named}`)).toEqual([]);
});

/** Whether `named` is part of the name, or of a name that the template makes. */
function canBe(named: string, template: string): boolean {
  const parts = template.split(/%[a-z]|\$\{…\}|\$[\w.]+/);
  if (parts.some((part) => part.includes(named))) return true;
  // A template that is hardly more than its parameters would match every name.
  const isTemplate = parts.length > 1 && parts.join("").length >= 7;
  return isTemplate && new RegExp(parts.map(escaped).join(".*")).test(named);
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}

describe("a mutant is killed", () => {
  const report = (...failures: readonly (string | undefined)[]) => ({
    testResults: [
      {
        message: "",
        assertionResults: failures.map((failure) => ({
          fullName: "the promise holds",
          status: failure === undefined ? "passed" : "failed",
          failureMessages: failure === undefined ? [] : [failure],
        })),
      },
    ],
  });

  test("by a test that fails at an assertion, and by no test that runs out of time", () => {
    expect(judge(report("AssertionError: expected 1 to be 2")).isKilled).toBe(true);
    const late = judge(
      report("Error: Test timed out in 15000ms.\nIf this is a long-running test", undefined),
    );
    expect(late).toEqual({ isKilled: false, why: "only time-outs: the promise holds" });
    expect(judge(report("Error: Test timed out in 15000ms."), true).isKilled).toBe(true);
  });

  test("neither by files that do not load, nor by a name that no test has", () => {
    const unloaded = { testResults: [{ message: "the text of the mutant is gone", assertionResults: [] }] };
    expect(judge(unloaded).why).toContain("did not load");
    expect(judge(report()).why).toBe("no test ran: none has that name");
    expect(judge(report(undefined))).toEqual({ isKilled: false, why: "1 tests passed" });
  });
});
