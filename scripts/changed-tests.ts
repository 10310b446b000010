// Which tests a change can affect: `choose` answers the files of tests that reach a changed file, nearest
// first, up to a time.
//
//   - A source reaches what it imports. An import of named values through an `index.ts` reaches the sources
//     of these values alone, because through whole packages nearly every test reaches every source.
//   - A relative path in a text counts as an import: tests start programs by their paths.
//   - The chosen tests are the changed ones, and then the nearest others while their last times add up to
//     less than `BUDGET_MS`. The shortest of equally near tests come first.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { child, nameOf, type Node, type Source, type Tree } from "./tidy/tree.ts";

/** How long the chosen tests may take, on one core; the files of a run are played by several processes. */
const BUDGET_MS = 60_000;
/** The time of a test file that this checkout never ran. */
const UNKNOWN_MS = 3_000;
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

/** @param lastMs the time that a test file last took. */
export function choose(
  tree: Tree,
  changed: readonly string[],
  lastMs: (file: string) => number | undefined,
): Choice {
  const steps = stepsFrom(tree, changed);
  const isTest = (file: string): boolean => file.endsWith(".test.ts") && !file.includes("/testing/");
  const reached = [...steps]
    .filter(([file]) => isTest(file))
    .map(([file, distance]) => ({ file, distance, ms: lastMs(file) ?? UNKNOWN_MS }))
    .toSorted((one, other) => one.distance - other.distance || one.ms - other.ms);
  let left = BUDGET_MS;
  const chosen = reached.filter(({ distance, ms }) => {
    if (distance > 0 && ms > left) return false;
    left -= ms;
    return true;
  });
  const names = new Set(chosen.map(({ file }) => file));
  return {
    chosen: [...names],
    leftOut: reached.filter(({ file }) => !names.has(file)).map(({ file }) => file),
  };
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
function stepsFrom(tree: Tree, changed: readonly string[]): Map<string, number> {
  const importers = importersIn(tree);
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
function importersIn(tree: Tree): ReadonlyMap<string, readonly Importer[]> {
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
