// Bundles the `holdfast` command before the tests, as users install it, for the hundreds of tests that start
// it as a process.
//
// A command that is loaded from its 300 sources takes twice the processor time to start.
//
//   - Each run of the tests bundles the sources as they are. The folder's name is a hash of its content, so
//     no test starts an older bundle. Node's compile cache stays useful for files that did not change.
//   - Sources that cannot be bundled are no reason to stop tests that start no command. Other tests then
//     start the command from its sources, and report the same problem.
//   - A planted mutant is in the sources that Node loads, so its tests start the command from sources. A
//     watching vitest does the same, because it sets up once only.

import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";
import {
  bundlePackage,
  publishedExports,
  publishedPackages,
  PUBLISHED_FOLDERS,
  type Package,
} from "./bundle.ts";
import { writeDocs } from "./release/shipped-docs.ts";

/** Names the folder of the bundled command for `packages/holdfast/src/testing/holdfast-process.ts`. */
const VARIABLE = "HOLDFAST_TEST_COMMAND_FOLDER";
const BIN = join("node_modules", ".bin");
const UNUSED_MS = 24 * 60 * 60_000;

const root = fileURLToPath(new URL("..", import.meta.url));
// Below `node_modules` of the checkout, where the bundles find other packages.
const cache = join(root, "node_modules", ".cache");
const installed = join(cache, "installed");

export default async function setup(project: TestProject): Promise<void> {
  checkLauncher();
  process.env["NODE_COMPILE_CACHE"] ??= join(cache, "compiled");
  delete process.env[VARIABLE];
  const isPlanted = process.env["HOLDFAST_MUTANT"] !== undefined;
  if (isPlanted || project.config.watch) return; // A planted mutant is in the sources that Node loads.
  try {
    process.env[VARIABLE] = await installCommand();
  } catch (error) {
    console.error(
      `The tests start the command from its sources, because these were not bundled: ${String(error)}`,
    ); // Other tests start the command from its sources, and report the same problem.
  }
}

/**
 * Without its first line the launcher is run by a shell. The shell takes the command's name in a comment for a
 * command, which starts it again without an end.
 *
 * @throws Error
 */
function checkLauncher(): void {
  const path = "packages/holdfast/bin/holdfast.mjs";
  if (readFileSync(join(root, path), "utf8").startsWith("#!/usr/bin/env node\n")) return;
  throw new Error(`${path} does not begin with the line \`#!/usr/bin/env node\`, and no test is run`);
}

/** @returns the folder with the command of this checkout, bundled as users have it. */
export async function installCommand(): Promise<string> {
  process.env["NODE_COMPILE_CACHE"] ??= join(cache, "compiled");
  return join(await install(), BIN);
}

/** @returns the folder with the packages of this checkout, installed. */
async function install(): Promise<string> {
  mkdirSync(installed, { recursive: true });
  removeUnused();
  const made = mkdtempSync(join(installed, "new-"));
  try {
    await Promise.all(publishedPackages(root).map((each) => installPackage(each, made)));
    mkdirSync(join(made, BIN));
    symlinkSync("../holdfast/bin/holdfast.mjs", join(made, BIN, "holdfast"));
    const folder = join(installed, hashOf(made));
    if (!existsSync(folder)) moveTo(made, folder);
    utimesSync(folder, new Date(), new Date());
    return folder;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

async function installPackage(each: Package, into: string): Promise<void> {
  const { folder, manifest } = each;
  const to = join(into, "node_modules", manifest.name);
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), text);
  };
  for (const [path, code] of await bundlePackage(each)) write(join("dist", path), code);
  if (manifest.name === "holdfast") writeDocs(root, to);
  const built = (source: string) => source.replace(/^\.\/src\/(.*)\.ts$/, "./dist/$1.js");
  write("package.json", JSON.stringify({ ...manifest, exports: publishedExports(manifest, built) }));
  for (const part of PUBLISHED_FOLDERS)
    if (existsSync(join(folder, part))) cpSync(join(folder, part), join(to, part), { recursive: true });
}

/** A hash of the names and the content of all files below this folder. */
function hashOf(folder: string): string {
  const hash = createHash("sha256");
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    const isFile = statSync(join(folder, path)).isFile();
    hash.update(JSON.stringify([path, isFile ? readFileSync(join(folder, path), "utf8") : null]));
  }
  return hash.digest("hex").slice(0, 16);
}

/** Another run of the tests may have made the folder in the meantime, with the same content. */
function moveTo(made: string, folder: string): void {
  try {
    renameSync(made, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

/** Removes the bundles that no run of the tests has used for a day. */
function removeUnused(): void {
  for (const name of readdirSync(installed)) {
    const path = join(installed, name);
    const usedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (Date.now() - usedAt > UNUSED_MS) rmSync(path, { recursive: true, force: true });
  }
}
