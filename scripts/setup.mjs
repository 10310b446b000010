// Makes a checkout ready, then runs a command in it: `node scripts/setup.mjs -- <command...>`
//
// A machine with only git, npm and some Node is enough. Where that Node cannot run us we fetch our own into
// `.tools`, and the workspace's packages come from `npm ci`. The page for the browser is built, so that `holdfast ui` has it.
// When all is there this costs a few milliseconds.
//
//   - Everything said here goes to stderr: with `--json`, stdout belongs to the command.
//   - A step counts as done only after it is: Node appears by a rename, and the stamp over `node_modules` is
//     written last. A step that was killed halfway is done again.
//   - One setup at a time per checkout; the others wait, because two `npm ci` delete each other's files.
//   - The page is built when it is missing or older than its sources. Without it the command runs all the
//     same.
//
// An old Node reads this file, so: plain JavaScript, nothing newer than Node 18, no dependencies.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { findFetchedNode, handOver, nodePackage, satisfies } from "../packages/holdfast/bin/node-version.mjs";
import { canFetchNode, fetchNode, npm, QUIET, withFirstInPath } from "./npm.mjs";

const NODE_VERSION = "24.22.3";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tools = join(root, ".tools");
const stamp = join(root, "node_modules", ".holdfast-setup");
const range = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node;

const dashes = process.argv.indexOf("--");
const [command, ...commandArgs] = dashes < 0 ? [] : process.argv.slice(dashes + 1);

if (usableBin() === undefined || !isInstalled() || isPageOld()) {
  await lock();
  // Asked again: the setup we waited for may have done it.
  if (usableBin() === undefined) fetchOurNode();
  if (!isInstalled()) install();
  if (isPageOld()) buildPage();
  unlock();
}
if (command !== undefined) await handOver(command, commandArgs, { env: withFirstInPath(usableBin()) });

/** Folder of a Node that may run us: the one we run on, or the fetched one. */
function usableBin() {
  const node = satisfies(process.versions.node, range) ? process.execPath : findFetchedNode(root, range);
  return node && dirname(node);
}

function fetchOurNode() {
  const fix = `install Node ${NODE_VERSION} (or any of ${range}), put it first in PATH, and try again`;
  if (!canFetchNode) {
    fail(11, "E_NODE_VERSION", {
      what: `this Node is too old or too new, and for ${process.platform}-${process.arch} none can be fetched`,
      got: `Node ${process.versions.node} at ${process.execPath}`,
      expected: `Node ${range}`,
      fix,
    });
  }
  say(`Node ${process.versions.node} is not one of ${range}: fetching Node ${NODE_VERSION} into .tools`);
  const status = fetchNode(NODE_VERSION, tools, dirname(process.execPath));
  if (usableBin() === undefined) {
    fail(11, "E_NODE_VERSION", {
      what: `Node ${NODE_VERSION} could not be fetched`,
      got: `npm install ${nodePackage}@${NODE_VERSION}: ${ended(status)}`,
      expected: `Node ${range}`,
      fix: `see npm's message above (network?) and run the same again, or ${fix}`,
    });
  }
}

function install() {
  say("installing the packages that package-lock.json lists (npm ci)");
  const wanted = lockHash();
  rmSync(stamp, { force: true });
  // Development dependencies too, whatever NODE_ENV says: type checker and tests are among them.
  const status = npm(["ci", "--include=dev", ...QUIET], { cwd: root, nodeFolder: usableBin() });
  if (status !== 0) {
    fail(1, "E_INSTALL", {
      what: "the packages could not be installed",
      got: `npm ci: ${ended(status)}`,
      expected: "exit 0",
      fix: "see npm's message above (network? disk? rights?) and run the same again",
    });
  }
  writeFileSync(stamp, wanted); // Last, so that a step that was killed halfway is done again.
}

function isInstalled() {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === lockHash();
}

function isPageOld() {
  const built = join(root, "packages", "coordinator", "built-page", "key");
  if (!existsSync(built)) return true;
  const sources = [
    ...filesBelow(join(root, "packages", "dashboard")),
    ...filesBelow(join(root, "packages", "proto", "src", "view")),
    join(root, "package-lock.json"),
    join(root, "scripts", "build-page.ts"),
  ];
  const time = statSync(built).mtimeMs;
  return sources.some((file) => statSync(file).mtimeMs > time);
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === "node_modules") return [];
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : [];
  });
}

function buildPage() {
  say("building the page for the browser");
  const node = join(usableBin(), process.platform === "win32" ? "node.exe" : "node");
  // Node 22 says at each start that the types are stripped.
  const args = ["--disable-warning=ExperimentalWarning", join(root, "scripts", "build-page.ts")];
  const { status, signal } = spawnSync(node, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0)
    say(`the page was not built (${signal ?? ended(status)}); \`npm run page\` tries it again`);
}

function lockHash() {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

/** A lock whose owner is gone is taken over. */
async function lock() {
  mkdirSync(tools, { recursive: true });
  for (let tries = 0; ; tries++) {
    try {
      return writeFileSync(lockFile(), String(process.pid), { flag: "wx" });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    if (!isAlive(lockFile())) rmSync(lockFile(), { force: true });
    else if (tries === 0) say(`waiting for another setup of this checkout (${relative(root, lockFile())})`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function unlock() {
  rmSync(lockFile(), { force: true });
}

function lockFile() {
  return join(tools, "setup.lock");
}

function isAlive(file) {
  try {
    process.kill(Number(readFileSync(file, "utf8")), 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function say(text) {
  process.stderr.write(`setup: ${text}\n`);
}

function ended(status) {
  return typeof status === "number" ? `exit ${status}` : String(status);
}

function fail(exitCode, code, { what, got, expected, fix }) {
  unlock();
  const lines = [
    `error[${code}]: ${what}`,
    `at: ${root}`,
    `got: ${got}`,
    `expected: ${expected}`,
    `fix: ${fix}`,
  ];
  process.stderr.write(`${lines.join("\n  ")}\n`);
  process.exit(exitCode);
}
