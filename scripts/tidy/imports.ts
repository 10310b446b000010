// The directions of imports between packages (ARCHITECTURE.md, the map). Imports of types count: what is
// named is known.

import { dirname, join, normalize } from "node:path/posix";
import type { Source, Tree, Violation } from "./tree.ts";

/** For each package the packages its sources may import. `undefined` stands for all of them: it composes. */
const MAY_IMPORT: Readonly<Record<string, readonly string[] | undefined>> = {
  core: [],
  proto: [],
  system: ["core"],
  runtime: ["core", "system"],
  storage: ["core", "proto"],
  client: ["core", "proto", "runtime", "storage"],
  testkit: ["core", "system", "runtime"],
  workspace: ["core", "system"],
  mcp: ["core", "system", "workspace"],
  agents: ["core", "system", "runtime", "workspace", "mcp"],
  programs: ["core", "proto", "system", "runtime", "workspace", "mcp", "agents"],
  machine: ["core", "system", "runtime", "storage", "workspace", "mcp", "agents", "programs", "runner"],
  terminal: ["core", "proto", "system", "runtime", "agents", "programs", "machine", "runner"],
  place: ["core", "proto", "system", "runtime", "storage", "agents", "terminal", "coordinator", "runner"],
  coordinator: ["core", "proto"],
  dashboard: ["core", "proto"],
  runner: ["core", "proto", "system", "runtime", "storage"],
  holdfast: undefined,
  "create-holdfast": [],
  // Private: simulates a whole fleet except its network, and starts real ones.
  simulator: undefined,
};

/** The packages that any test may import. */
const FOR_TESTS: ReadonlySet<string> = new Set(["simulator", "testkit"]);

const TEST_LIBRARIES = /^(vitest|@vitest\/.*|fast-check)(\/|$)/;

/** The suites are published for authors of adapters, who run them under their own vitest. */
const PUBLISHED_SUITE = /^packages\/testkit\/src\/(conformance\/|[^/]*conformance)/;

export function importDirection(tree: Tree): readonly Violation[] {
  const folders = packageFolders(tree);
  return tree.sources.flatMap((source) => {
    const from = source.packageFolder;
    if (from === undefined) return [];
    return source.imports.flatMap(({ specifier, line }) => {
      const what = wrongImport(source, from, specifier, folders);
      return what === undefined ? [] : [{ file: source.file, line, what }];
    });
  });
}

/** The map of ARCHITECTURE.md has each package, with what it may import. */
export function packageMap(tree: Tree): readonly Violation[] {
  const file = "ARCHITECTURE.md";
  const rows = new Map<string, { readonly shown: string; readonly line: number }>();
  for (const [index, text] of (tree.read(file) ?? "").split("\n").entries()) {
    const [, name, shown] = /^\| `([a-z-]+)` \|.*\| ([^|]+) \|$/.exec(text) ?? [];
    if (name !== undefined && shown !== undefined) rows.set(name, { shown, line: index + 1 });
  }
  if (rows.size === 0) return [];
  return [...new Set([...Object.keys(MAY_IMPORT), ...rows.keys()])].flatMap((name) => {
    const expected = name in MAY_IMPORT ? importsText(MAY_IMPORT[name]) : "no package";
    const row = rows.get(name);
    if (row?.shown === expected) return [];
    const what = row === undefined ? "is missing in the map" : `may import "${row.shown}" in the map`;
    const at = row === undefined ? {} : { line: row.line };
    return [{ file, ...at, what: `${name} ${what}: MAY_IMPORT says "${expected}"` }];
  });
}

function importsText(packages: readonly string[] | undefined): string {
  if (packages === undefined) return "all";
  return packages.length === 0 ? "nothing" : packages.join(", ");
}

/** No file may reach itself through its imports: such files can only be understood, and loaded, together. */
export function noImportCycles(tree: Tree): readonly Violation[] {
  const edges = new Map(tree.sources.map((source) => [source.file, relativeTargets(source)]));
  const violations: Violation[] = [];
  const done = new Set<string>();
  const reported = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) {
      const cycle = [...path.slice(at), file].map((step) =>
        step.replace(/^packages\/([^/]+)\/src\//, "$1: "),
      );
      // One cycle per file is enough to begin with; the next run shows the next.
      if (!reported.has(file))
        violations.push({ file, what: `files import each other: ${cycle.join(" → ")}` });
      reported.add(file);
      return;
    }
    if (done.has(file)) return;
    for (const target of edges.get(file) ?? []) visit(target.file, [...path, file]);
    done.add(file);
  };
  for (const file of edges.keys()) visit(file, []);
  return violations;
}

/** A published source may not need a package that only tests install. */
export function noTestLibraries(tree: Tree): readonly Violation[] {
  return tree.sources
    .filter(
      ({ packageFolder, isTest, file }) =>
        packageFolder !== undefined && !isTest && !PUBLISHED_SUITE.test(file),
    )
    .flatMap((source) =>
      source.imports
        .filter(({ specifier }) => TEST_LIBRARIES.test(specifier))
        .map(({ specifier, line }) => ({
          file: source.file,
          line,
          what: `imports ${specifier}, a test library`,
        })),
    );
}

function wrongImport(source: Source, from: string, specifier: string, folders: ReadonlyMap<string, string>) {
  if (specifier.startsWith(".")) {
    const isInside = resolveRelative(source, specifier).startsWith(`packages/${from}/`);
    return isInside ? undefined : `${specifier} leaves the package; import the other one by its name`;
  }
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  const to = folders.get(name);
  if (to === undefined) {
    const isForbidden = from === "core" && !source.isTest;
    return isForbidden ? `core imports nothing, and "${specifier}" is something` : undefined;
  }
  if (!(from in MAY_IMPORT)) return `packages/${from} is not in tidy's table of who may import whom`;
  const allowed = MAY_IMPORT[from];
  if (allowed === undefined || to === from || allowed.includes(to) || (source.isTest && FOR_TESTS.has(to)))
    return undefined;
  return `${from} may import ${allowed.join(", ") || "no package"}, not ${to}`;
}

/** Package name to its folder under `packages/`. */
function packageFolders(tree: Tree): ReadonlyMap<string, string> {
  const folders = new Map<string, string>();
  for (const file of tree.files) {
    const folder = /^packages\/([^/]+)\/package\.json$/.exec(file)?.[1];
    if (folder !== undefined) folders.set(JSON.parse(tree.read(file) ?? "{}").name, folder);
  }
  return folders;
}

/** The files that a source imports by relative paths. */
export function relativeTargets(source: Source): { readonly file: string; readonly line: number }[] {
  return source.imports
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier, line }) => ({ file: resolveRelative(source, specifier), line }));
}

function resolveRelative(source: Source, specifier: string): string {
  return normalize(join(dirname(source.file), specifier));
}
