// Which tests a change can affect: `choose` answers the files of tests that reach a changed file, nearest
// first, up to a time.
//
//   - A source reaches what it imports. An import of named values through an `index.ts` reaches the sources
//     of these values alone, because through whole packages nearly every test reaches every source.
//   - A relative path in a text counts as an import: tests start programs by their paths.
//   - The changed tests are chosen, and those beside a changed source. Then come the nearest others while the
//     times add up to less than `BUDGET_MS`. The shortest of equally near tests come first, and of these the
//     first by name. Times count as powers of two, so that the same change has the same tests however busy the
//     machine was in the last run.
//   - The tests beside a source are in its folder, or in the nearest folder above that has any. A test among
//     them that reaches the source is chosen whatever it takes. Where no test reaches it yet, all of them come
//     first.
//   - A file whose tests are all of campaigns is chosen only where these are played too.
//   - The time of a test file is that of its last run in this checkout. Before the first it is estimated from
//     its text, and that of the suites that it plays.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { child, nameOf, type Node, type Source, type Tree } from "./tidy/tree.ts";

/** How long the chosen tests may take, on one core; the files of a run are played by several processes. */
const BUDGET_MS = 60_000;
/** The estimate for a test file that this checkout never ran: loading it, and each of its tests. */
const LOAD_MS = 1_000;
const TEST_MS = 500;
/** Sources that start a program by no path in their text. */
const STARTS: Readonly<Record<string, string>> = {
  "packages/holdfast/src/testing/holdfast-process.ts": "packages/holdfast/bin/holdfast.mjs",
};

export interface Choice {
  /** The files of tests, nearest first. */
  readonly chosen: readonly string[];
  /** The files of tests that reach a changed file and are left out. */
  readonly leftOut: readonly string[];
}

/** The files that differ from the merge base with `main`, and on `main` from the commit before, committed or not. */
export function changedFiles(root: string): { readonly base: string; readonly files: readonly string[] } {
  const git = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
    if (status !== 0) throw new Error(`git ${args.join(" ")} failed: ${stderr.trim()}`);
    return stdout.trim();
  };
  const isMain = git("rev-parse", "--abbrev-ref", "HEAD") === "main";
  const base = isMain ? git("rev-parse", "HEAD~1") : git("merge-base", "main", "HEAD");
  const differing = git("diff", "--name-only", "--no-renames", base);
  const untracked = git("ls-files", "--others", "--exclude-standard");
  return { base, files: `${differing}\n${untracked}`.split("\n").filter((file) => file !== "") };
}

/**
 * @param lastMs the time that a test file last took.
 * @param isWithCampaign whether the tests of campaigns in these files are played.
 */
export function choose(
  tree: Tree,
  changed: readonly string[],
  lastMs: (file: string) => number | undefined,
  isWithCampaign = false,
): Choice {
  const importers = importersIn(tree);
  const steps = stepsFrom(importers, changed);
  const beside = new Set(changed.flatMap((file) => testsBeside(tree, importers, file)));
  const reached = [...new Set([...steps.keys(), ...beside])]
    .filter((file) => isTest(file) && (isWithCampaign || steps.get(file) === 0 || !isOfCampaign(tree, file)))
    .map((file) => {
      const distance = steps.get(file) ?? Infinity;
      return {
        file,
        isBeside: beside.has(file),
        isKept: distance === 0 || (beside.has(file) && distance < Infinity),
        distance,
        ms: roughly(lastMs(file) ?? estimatedMs(tree, file)),
      };
    })
    .toSorted(
      (one, other) =>
        Number(other.isBeside) - Number(one.isBeside) ||
        one.distance - other.distance ||
        one.ms - other.ms ||
        (one.file < other.file ? -1 : 1),
    );
  let left = BUDGET_MS;
  const chosen = reached.filter(({ isKept, ms }) => {
    if (!isKept && ms > left) return false;
    left -= ms;
    return true;
  });
  const names = new Set(chosen.map(({ file }) => file));
  return {
    chosen: [...names],
    leftOut: reached.filter(({ file }) => !names.has(file)).map(({ file }) => file),
  };
}

const isTest = (file: string): boolean => file.endsWith(".test.ts") && !file.includes("/testing/");

/** The nearest power of two. */
function roughly(ms: number): number {
  return 2 ** Math.round(Math.log2(Math.max(ms, 1)));
}

/** The tests in the folder of a changed source, or in the nearest folder above that has any. */
function testsBeside(tree: Tree, importers: Importers, changed: string): readonly string[] {
  if (!/\.(ts|mjs)$/.test(changed)) return [];
  if (isTest(changed)) return [changed];
  const reaching = [...stepsFrom(importers, [changed]).keys()].filter(isTest);
  // A script is a program of its own, and no source that nobody loads yet.
  const isNew = reaching.length === 0 && changed.startsWith("packages/");
  for (let folder = dirname(changed); folder !== "."; folder = dirname(folder)) {
    const tests = tree.files.filter((file) => isTest(file) && dirname(file) === folder);
    if (tests.length > 0) return isNew ? tests : tests.filter((file) => reaching.includes(file));
  }
  return [];
}

/** Tests of campaigns are not played, and cost nothing. A table of rows counts as one test. */
function estimatedMs(tree: Tree, file: string): number {
  const counts = [file, ...suitesOf(tree, file)].map((one) => testsIn(tree.read(one) ?? ""));
  return (
    LOAD_MS + TEST_MS * counts.reduce((sum, { all, ofCampaign }) => sum + Math.max(0, all - ofCampaign), 0)
  );
}

function isOfCampaign(tree: Tree, file: string): boolean {
  const { all, ofCampaign } = testsIn(tree.read(file) ?? "");
  return all > 0 && ofCampaign >= all;
}

function testsIn(text: string): { readonly all: number; readonly ofCampaign: number } {
  const count = (pattern: RegExp): number => [...text.matchAll(pattern)].length;
  return {
    all: count(/^\s*test(\.\w+)*(<.*>)?\(/gm),
    ofCampaign: count(/^(?!import).*\bofCampaign\b/gm),
  };
}

/** The sources with tests in them that a file of tests imports, such as the suite of all sandboxes. */
function suitesOf(tree: Tree, file: string): readonly string[] {
  const source = tree.sources.find((one) => one.file === file);
  return (source?.imports ?? [])
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier }) => join(dirname(file), specifier));
}

/** The times of the last runs in this checkout, as vitest keeps them. */
export function lastTimes(root: string): (file: string) => number | undefined {
  const cache = join(root, "node_modules", ".vite", "vitest");
  const times = new Map<string, number>();
  for (const name of existsSync(cache) ? readdirSync(cache) : []) {
    const results = join(cache, name, "results.json");
    if (!existsSync(results)) continue;
    const { projects } = JSON.parse(readFileSync(results, "utf8")) as {
      projects: Record<string, { files: Record<string, { duration: number }> }>;
    };
    for (const { files } of Object.values(projects))
      for (const [file, { duration }] of Object.entries(files)) times.set(file, duration);
  }
  return (file) => times.get(file);
}

/** For each source that reaches a changed one, over how many imports. */
function stepsFrom(importers: Importers, changed: readonly string[]): Map<string, number> {
  const steps = new Map<string, number>(changed.map((file) => [file, 0]));
  for (const [file, distance] of steps) {
    // Later entries of the map are visited too: it is the queue.
    for (const { by, isThrough } of importers.get(file) ?? [])
      if ((!isThrough || distance === 0) && !steps.has(by)) steps.set(by, distance + 1);
  }
  return steps;
}

interface Importer {
  readonly by: string;
  /**
   * The import takes named values of other sources through this one, and so only the text of this one itself
   * matters to it.
   */
  readonly isThrough: boolean;
}

/** For each file its importers. */
type Importers = ReadonlyMap<string, readonly Importer[]>;

function importersIn(tree: Tree): Importers {
  const importers = new Map<string, Importer[]>(tree.files.map((file) => [file, []]));
  const entries = entriesOf(tree);
  const targetOf = (source: Source, node: Node | undefined): string | undefined => {
    const text = node?.["value"];
    if (typeof text !== "string") return undefined;
    const file = text.startsWith(".") ? join(dirname(source.file), text) : entries.get(text);
    return file !== undefined && importers.has(file) ? file : undefined;
  };
  const passedOn = new Map(tree.sources.map((source) => [source.file, reExports(source, targetOf)]));
  for (const source of tree.sources) {
    const by = source.file;
    const named = new Set<Node>();
    importers.get(STARTS[by] ?? "")?.push({ by, isThrough: false });
    source.walk((node) => {
      const from = node.type === "ImportDeclaration" ? child(node, "source") : undefined;
      const names = from === undefined ? [] : importedNames(node);
      if (from !== undefined && names.length > 0) named.add(from);
      for (const name of names) {
        const first = targetOf(source, from);
        for (
          let at = first === undefined ? undefined : { file: first, name }, next;
          at !== undefined;
          at = next
        ) {
          next = passedOn.get(at.file)?.get(at.name);
          importers.get(at.file)!.push({ by, isThrough: next !== undefined });
        }
      }
      // A relative path in a text, and every import that takes a source whole.
      const file = node.type === "Literal" && !named.has(node) ? targetOf(source, node) : undefined;
      if (file !== undefined) importers.get(file)!.push({ by, isThrough: false });
    });
  }
  return importers;
}

/** The names that an import takes, or none when it takes the source whole. */
function importedNames(declaration: Node): string[] {
  const specifiers = [declaration["specifiers"]].flat() as Node[];
  const names = specifiers.map((specifier) => nameOf(child(specifier, "imported")));
  return names.every((name) => name !== undefined) ? names : [];
}

/** The names that a source exports from another one: that source, and the name there. */
function reExports(source: Source, targetOf: (source: Source, node: Node | undefined) => string | undefined) {
  const names = new Map<string, { readonly file: string; readonly name: string }>();
  source.walk((node) => {
    if (node.type !== "ExportNamedDeclaration") return;
    const file = targetOf(source, child(node, "source"));
    if (file === undefined) return;
    for (const specifier of [node["specifiers"]].flat() as Node[])
      names.set(nameOf(child(specifier, "exported"))!, { file, name: nameOf(child(specifier, "local"))! });
  });
  return names;
}

/** The sources of the packages' exports, by what an import of them says. */
function entriesOf(tree: Tree): ReadonlyMap<string, string> {
  const entries = new Map<string, string>();
  for (const file of tree.files.filter((path) => /^packages\/[^/]+\/package\.json$/.test(path))) {
    const { name, exports = {} } = JSON.parse(tree.read(file) ?? "{}") as {
      name: string;
      exports?: Record<string, unknown>;
    };
    for (const [subpath, target] of Object.entries(exports))
      if (typeof target === "string") entries.set(join(name, subpath), join(dirname(file), target));
  }
  return entries;
}
