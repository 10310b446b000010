import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { edited } from "./mutant-edit.ts";
import { judge, runMutant } from "./mutant-run.ts";
import { editOf, markableSources, markersIn } from "./mutant-source.ts";
import { MUTANTS } from "./mutants.ts";
import { testsIn } from "./tidy/sentences.ts";
import { nameOf, parseSource, readTree, type Source } from "./tidy/tree.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * The mutant that shows that the mechanism works. Each costs a run of its tests, so all are a campaign
 * (`HOLDFAST_CAMPAIGN`).
 */
const ALWAYS = ["H5: another input at a position is seen"];

const SOURCES = markableSources(root);
/** `.name` of every property that a source reads. */
const PROPERTIES = new Set(SOURCES.flatMap(({ text }) => text.match(/\.\w+/g) ?? []));

interface Code {
  readonly nodes: string;
  readonly names: ReadonlySet<string>;
}

/** The sources that some mutant changes: most of them have several. */
const CODE = new Map<string, Code>();

test.each(isCampaign ? MUTANTS : MUTANTS.filter(({ name }) => ALWAYS.includes(name)))(
  "planted mutant is killed: $name",
  { timeout: 120_000 },
  async (mutant) => {
    const { isKilled, why } = await runMutant(mutant);
    expect(isKilled, why).toBe(true);
  },
);

test("each mutant has a name and a marker of its own, and each marker in the sources has a mutant", () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
  expect(ALWAYS.filter((name) => MUTANTS.every((mutant) => mutant.name !== name))).toEqual([]);
  const markers = SOURCES.flatMap(({ text }) => markersIn(text));
  expect(markers.toSorted()).toEqual(MUTANTS.map(({ marker }) => marker).toSorted());
});

// A mutant that names what was renamed would be killed by a TypeError, whatever its test looks for.
test.each(MUTANTS)("mutant $marker makes other code of names that exist", (mutant) => {
  const edit = editOf(mutant, SOURCES);
  const { file, text } = SOURCES.find((source) => source.file === edit.file)!;
  const before = CODE.get(file) ?? codeOf(parseSource(file, text));
  CODE.set(file, before);
  const after = codeOf(parseSource(file, edited(text, edit)));
  expect(after.nodes === before.nodes).toBe(false);
  const isThere = (name: string) => before.names.has(name) || PROPERTIES.has(name) || name in globalThis;
  expect([...after.names].filter((name) => !isThere(name))).toEqual([]);
});

// A renamed test would let its mutant survive until the next campaign.
test("each mutant names a test that there is", ofCampaign, () => {
  const { sources } = readTree(root);
  const names = sources.flatMap((source) => testsIn(source).map(({ name }) => name));
  const others = sources.filter(({ file }) => !file.startsWith("scripts/mutants"));
  // Names that a test takes from its data stand in no call of `test`.
  const isData = (named: string): boolean => others.some(({ text }) => text.includes(named));
  const missing = MUTANTS.filter(
    ({ test: named }) => !names.some((name) => canBe(named, name)) && !isData(named),
  );
  expect(missing.map(({ name, test: named }) => `${name}: ${named}`)).toEqual([]);
  const files = MUTANTS.flatMap(({ tests }) => tests).filter((file) => !existsSync(`${root}${file}`));
  expect(files).toEqual([]);
});

/** The nodes and the names of a source, without its layout and its comments. */
function codeOf({ errors, walk }: Source): Code {
  expect(errors).toEqual([]);
  const nodes: string[] = [];
  const names = new Set<string>();
  walk((node, parent) => {
    const name = nameOf(node);
    const written = node.type === "TemplateElement" ? (node["value"] as { raw: string }).raw : node["raw"];
    nodes.push([node.type, node["kind"], node["operator"], name ?? written].join(" "));
    const isProperty = parent?.["property"] === node && parent["computed"] !== true;
    if (name !== undefined) names.add(isProperty ? `.${name}` : name);
  });
  return { nodes: nodes.join("\n"), names };
}

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
