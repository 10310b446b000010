// The sources beside which the CPU time is measured: those of a commit, in a folder of their own with an
// install of their own.
//
//   baseline-1. A package of ours is never shared with this checkout: its packages would then be measured
//       twice.
//   - Packages of others are links to those of this checkout where both package-lock.json name the same.
//     Otherwise npm installs those of the commit.
//   - A folder is whole or absent: it is filled under another name and renamed.
//   - Nothing is written to the repository. A worktree would stay in its list after the folder is gone.
//
// The folder is not in `node_modules`, since Node strips no types there.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { toHoldfastError } from "@holdfast/core";
import { npm, QUIET } from "../../scripts/npm.mjs";

/** The one place that names it. A change that knowingly costs more moves it; see the README. */
export const BASELINE = "f8acdbbd698267d71c63013b8f1bf239b2013a4d";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TREES = join(ROOT, ".tools", "trees");
// The manifests of the other workspaces are there for npm, which refuses without them.
const SOURCES = [
  "packages",
  "package.json",
  "package-lock.json",
  "bench/package.json",
  "examples/package.json",
];

/** The sources cannot be had here. It is no failure of what is measured. */
export class MissingBaseline extends Error {}

/**
 * The root of the sources of a commit, made if it is not there.
 *
 * @throws MissingBaseline with the reason.
 */
export function treeOf(name: string, root = ROOT, trees = TREES): string {
  const commit = commitOf(name, root);
  const lock = readFileSync(join(root, "package-lock.json"));
  const key = createHash("sha256").update(lock).digest("hex").slice(0, 12);
  const tree = join(trees, `${commit}-${key}`);
  if (existsSync(tree)) return tree;
  mkdirSync(trees, { recursive: true });
  const incoming = mkdtempSync(join(trees, "incoming-"));
  try {
    unpack(commit, root, incoming);
    install(root, incoming);
    renameSync(incoming, tree); // A folder is whole or absent.
  } catch (thrown) {
    rmSync(incoming, { recursive: true, force: true });
    // Another run may have made it meanwhile.
    if (existsSync(tree)) return tree;
    if (thrown instanceof MissingBaseline) throw thrown;
    throw new MissingBaseline(
      `the sources of ${commit} cannot be made ready: ${toHoldfastError(thrown).message}`,
    );
  }
  return tree;
}

/** @throws MissingBaseline without git, a repository, or this commit in it. */
function commitOf(name: string, root: string): string {
  const found = spawnSync("git", ["rev-parse", "--verify", "--quiet", `${name}^{commit}`], {
    cwd: root,
    encoding: "utf8",
  });
  if (found.error !== undefined) throw new MissingBaseline(`git does not start: ${found.error.message}`);
  if (found.status === 0) return found.stdout.trim();
  const shallow = spawnSync("git", ["rev-parse", "--is-shallow-repository"], { cwd: root, encoding: "utf8" });
  if (shallow.status !== 0) throw new MissingBaseline(`${root} is no repository of git`);
  const why = shallow.stdout.trim() === "true" ? "this clone is shallow" : "its history is not in this clone";
  throw new MissingBaseline(`commit ${name} is not here: ${why}`);
}

function unpack(commit: string, root: string, folder: string): void {
  const archive = spawnSync("git", ["archive", "--format=tar", commit, ...SOURCES], {
    cwd: root,
    maxBuffer: 512 * 1024 * 1024,
  });
  if (archive.status !== 0)
    throw new MissingBaseline(`commit ${commit} is incomplete here: ${archive.stderr.toString().trim()}`);
  const unpacked = spawnSync("tar", ["-x", "-C", folder], { input: archive.stdout });
  if (unpacked.status !== 0) throw new MissingBaseline(`tar cannot unpack the sources of ${commit}`);
}

/** The part of package-lock.json that is read here. */
interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly dev?: boolean; readonly link?: boolean }>
  >;
}

function install(root: string, tree: string): void {
  if (!isSame(lockOf(root), lockOf(tree))) return installAnew(tree);
  const modules = join(tree, "node_modules");
  for (const name of namesOfOthers(join(root, "node_modules"))) {
    const link = join(modules, name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, "node_modules", name), link);
  }
  // baseline-1. Relative, because the folder is renamed.
  for (const folder of readdirSync(join(tree, "packages"))) {
    const file = join(tree, "packages", folder, "package.json");
    if (!existsSync(file)) continue;
    const { name } = JSON.parse(readFileSync(file, "utf8")) as { readonly name: string };
    const link = join(modules, name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(link), join(tree, "packages", folder)), link);
  }
}

/** Whether every package that the sources of `wanted` use is in `installed`, in the same version. */
function isSame(installed: Lock, wanted: Lock): boolean {
  return Object.entries(wanted.packages).every(([path, { version, dev, link }]) => {
    const isUsed = path.includes("node_modules/") && dev !== true && link !== true;
    return !isUsed || (path.startsWith("node_modules/") && installed.packages[path]?.version === version);
  });
}

function lockOf(folder: string): Lock {
  return JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as Lock;
}

function installAnew(tree: string): void {
  const args = ["ci", "--omit=dev", "--ignore-scripts", "--prefer-offline", ...QUIET];
  const status = npm(args, { cwd: tree, nodeFolder: dirname(process.execPath) });
  if (status !== 0) throw new MissingBaseline(`npm cannot install the packages of the baseline: ${status}`);
}

/** The names of the packages in a folder `node_modules` but the workspaces, which are links there. */
function namesOfOthers(modules: string): readonly string[] {
  return readdirSync(modules)
    .filter((name) => !name.startsWith("."))
    .flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(modules, name)).map((own) => `${name}/${own}`) : name,
    )
    .filter((name) => !lstatSync(join(modules, name)).isSymbolicLink());
}
