// The packages as users have them: `publishedPackages` names them, `bundlePackage` bundles the modules of one.
//
// A bundle has one file for each entry and files that entries share. Finding, reading and linking a hundred small files
// took two thirds of the time that a user's program waits for its imports.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";

export interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string>>;
  readonly private?: boolean;
  readonly bin?: Readonly<Record<string, string>>;
  readonly devDependencies?: unknown;
  readonly scripts?: unknown;
  readonly [field: string]: unknown;
}

export interface Package {
  /** The package's folder in the checkout. */
  readonly folder: string;
  /** The manifest, without the entries that only tests of this repository share. */
  readonly manifest: Manifest;
}

/** Folders of a package that are published as they are. */
export const PUBLISHED_FOLDERS = ["bin", "proto", "included-executors", "built-page"];

/** Modules that are found by their path and not by an import, so that they stay files of their own. */
const FOUND_BY_PATH: Readonly<Record<string, readonly string[]>> = {
  holdfast: ["main"], // By `bin/holdfast.mjs`.
  // By `new Worker`, and by Pi, which loads it as an extension, and the program of a harness.
  "@holdfast/agents": [
    "sandboxes/virtual-thread",
    "web/markdown-thread",
    "external-agents/pi/pi-gate",
    "external-agents/harness/harness-program",
  ],
  "@holdfast/runtime": ["isolation/watchdog-thread"],
};

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
  // A module that is found by its path lies beside the bundled code that looks for it.
  const found = (FOUND_BY_PATH[manifest.name] ?? []).map((module) => [basename(module), module] as const);
  const entries = [...exported.map((module) => [module, module] as const), ...found];
  const bundle = await rolldown({
    input: Object.fromEntries(entries.map(([name, module]) => [name, join(folder, "src", `${module}.ts`)])),
    external: /^[^./]/,
    platform: "node",
  });
  try {
    const { output } = await bundle.generate({
      chunkFileNames: "[name]-[hash].js",
      comments: false,
      // Node reads a source with one byte a character faster.
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
    });
    return new Map(output.flatMap((file) => (file.type === "chunk" ? [[file.fileName, file.code]] : [])));
  } finally {
    await bundle.close();
  }
}

function readManifest(folder: string): Manifest {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  const kept = Object.entries(manifest.exports ?? {}).filter(([, source]) => !source.includes("/testing/"));
  return { ...manifest, exports: Object.fromEntries(kept) };
}
