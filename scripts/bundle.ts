// The packages as users have them: `publishedPackages` names them, `bundlePackage` bundles the modules of
// one.
//
// A bundle has one file for each entry and files that entries share. Finding, reading and linking a hundred
// small files took two thirds of the time that a user's program waits for its imports.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { rolldown } from "rolldown";

export interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly private?: boolean;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: unknown;
  readonly scripts?: unknown;
  readonly [field: string]: unknown;
}

export interface Package {
  /** The package's folder in the checkout. */
  readonly folder: string;
  /** The manifest, without the entries that only tests share, and with the packages that contain `SHARED` ones. */
  readonly manifest: Manifest;
}

/** Folders of a package that are published as they are. */
export const PUBLISHED_FOLDERS = ["bin", "proto", "included-executors", "built-page", "templates"];

/** Modules that are found by their path and not by an import, so that they stay files of their own. */
const FOUND_BY_PATH: Readonly<Record<string, readonly string[]>> = {
  // By `bin/holdfast.mjs`, by threads of tasks, and by `runAgentFile`, whose import no bundler follows.
  holdfast: ["main", "run/loading/thread-loading", "run/from-code/agent-file-run"],
  "@holdfast/agents": ["web/markdown-thread"], // By `new Worker`, as those below.
  "@holdfast/workspace": ["sandboxes/virtual-thread"],
  "@holdfast/programs": ["adapters/pi/pi-gate", "adapters/harness/harness-program"], // By Pi, which loads an extension, and as a program.
  "@holdfast/runtime": ["isolation/watchdog-thread", "tasks/local/task-worker"],
  "@holdfast/storage": ["remote/renew-in-thread", "postgres/renew-in-thread"],
};

/**
 * Packages of other authors that become part of a bundle, because they have many files and every run of an
 * agent file loads them. They stay dependencies, because the published types name them (decision 53).
 */
const INCLUDED: Readonly<Record<string, string>> = {
  "@holdfast/proto": "zod",
  "@holdfast/agents":
    "yaml smol-toml eventsource-parser @workflow/serde @ai-sdk/anthropic @ai-sdk/google " +
    "@ai-sdk/openai @ai-sdk/openai-compatible @ai-sdk/provider @ai-sdk/provider-utils",
};

/** A package of another author that several bundles use is in one of them, from which the others import it. */
const SHARED: Readonly<Record<string, string>> = {
  zod: "@holdfast/proto/zod",
  "zod/v4": "@holdfast/proto/zod",
  "zod/v4/core": "@holdfast/proto/zod",
};

/** The exports of a published package: its entries, and its manifest, which tools look for. */
export function publishedExports<Built>(
  { exports }: Manifest,
  built: (source: string, name: string) => Built,
): Readonly<Record<string, Built | string>> {
  const entries = Object.entries(exports).map(([name, source]) => [name, built(source, name)] as const);
  return { ...Object.fromEntries(entries), "./package.json": "./package.json" };
}

/** The packages of the checkout that are published. */
export function publishedPackages(root: string): Package[] {
  return readdirSync(join(root, "packages"))
    .map((name) => join(root, "packages", name))
    .filter((folder) => existsSync(join(folder, "package.json")))
    .map((folder) => ({ folder, manifest: readManifest(folder) }))
    .filter(({ manifest }) => manifest.private !== true);
}

/** @returns the bundled files of a package by their paths below `dist`. They import other packages by name. */
export async function bundlePackage({ folder, manifest }: Package): Promise<ReadonlyMap<string, string>> {
  const exported = Object.values(manifest.exports).map((source) =>
    source.replace(/^\.\/src\/(.*)\.ts$/, "$1"),
  );
  // A module that is found by its path lies beside the bundled code that looks for it: an export of its
  // folder, or the package.
  const found = (FOUND_BY_PATH[manifest.name] ?? []).map((module) => {
    const isBesideExport = exported.includes(`${dirname(module)}/index`);
    return [isBesideExport ? module : basename(module), module] as const;
  });
  const entries = [...exported.map((module) => [module, module] as const), ...found];
  if (entries.length === 0) return new Map(); // A package that is a program as it stands.
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map(([name, module]) => [name, join(folder, "src", `${module}.ts`)])),
    external: new RegExp(`^(?!(?:zod|${(INCLUDED[manifest.name] ?? "$").replaceAll(" ", "|")})(?:/|$))[^./]`),
    platform: "node",
    plugins: [
      {
        name: "shared-packages",
        resolveId: (source) => {
          const id = SHARED[source];
          return id === undefined || id.startsWith(`${manifest.name}/`) ? undefined : { id, external: true };
        },
      },
    ],
  });
  try {
    const { output } = await bundle.generate({
      chunkFileNames: "[name]-[hash].js",
      comments: { annotation: true, legal: false, jsdoc: false }, // Bundlers of users read the annotations.
      // A statement stays a line and names stay, for stacks and for readers of an installed package. Node reads
      // a source with one byte a character faster.
      minify: {
        compress: { sequences: false, joinVars: false, keepNames: { function: true, class: true } },
        mangle: false,
        codegen: { removeWhitespace: false, asciiOnly: true },
      },
    });
    const chunks = output.filter((file) => file.type === "chunk");
    const files = new Map(chunks.map(({ fileName, code }) => [fileName, code]));
    const licenses = licensesOf(chunks.flatMap(({ moduleIds }) => moduleIds));
    return licenses === "" ? files : files.set("third-party-licenses.txt", licenses);
  } finally {
    await bundle.close();
  }
}

/** The licenses of the packages of other authors that these modules are from, as the licenses require it. */
function licensesOf(modules: readonly string[]): string {
  const folders = modules.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const packages = [...new Set(folders)].toSorted().map((folder) => {
    const { name, version, license } = parseManifest(folder);
    const file = readdirSync(folder).find((each) => /^licen[cs]e(\.|$)/i.test(each));
    const text = file === undefined ? undefined : readFileSync(join(folder, file), "utf8").trim();
    return { name, version, license, text, scope: dirname(folder) };
  });
  return packages
    .map(({ name, version, license, text, scope }) => {
      // One repository publishes several packages, and a few of them without the file of its license.
      const others = packages.filter((other) => other.scope === scope && other.license === license);
      const own =
        text ?? (name.startsWith("@") ? others.find((other) => other.text !== undefined)?.text : "");
      return `${name} ${String(version)} (${String(license)})\n\n${own ?? ""}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

function readManifest(folder: string): Manifest {
  const manifest = parseManifest(folder);
  const kept = Object.entries(manifest.exports ?? {}).filter(([, source]) => !source.includes("/testing/"));
  return { ...manifest, exports: Object.fromEntries(kept), dependencies: dependenciesOf(manifest) };
}

function dependenciesOf({ name, version, dependencies = {} }: Manifest): Manifest["dependencies"] & object {
  const hosts = Object.keys(dependencies).flatMap((each) => SHARED[each]?.split("/", 2).join("/") ?? []);
  const others = hosts.filter((host) => host !== name).map((host) => [host, String(version)] as const);
  return { ...dependencies, ...Object.fromEntries(others) };
}

function parseManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}
