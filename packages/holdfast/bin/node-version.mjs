// Which Node may run us, where the fetched one lies, and how to hand over to it.
//
// An old Node is the reader here, so: plain JavaScript, nothing newer than Node 16, no dependencies.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Set by the launcher for the Node that it hands over to. */
export const LAUNCHED = "HOLDFAST_LAUNCHED";

/** The npm package that holds Node itself for this platform, as `bin/node`. */
export const nodePackage = `node-${process.platform}-${process.arch}`;

/** Does `version` satisfy `range`? Knows what our `engines` use: `>=` and `<`, spaces for and, `||` for or. */
export function satisfies(version, range) {
  return range.split("||").some((alternative) =>
    alternative
      .trim()
      .split(/\s+/)
      .every((comparator) => {
        const [, operator, bound] = /^(>=|<)(\d+(?:\.\d+)*)$/.exec(comparator) ?? [];
        if (operator === undefined)
          throw new Error(`cannot read "${comparator}" in the engines range "${range}"`);
        const order = compareVersions(version, bound);
        return operator === "<" ? order < 0 : order >= 0;
      }),
  );
}

/** The Node that setup fetched into `.tools` of this folder or of one above it, if it satisfies `range`. */
export function findFetchedNode(folder, range) {
  for (let at = folder; ; at = dirname(at)) {
    const home = join(at, ".tools", "node_modules", nodePackage);
    const node = join(home, "bin", "node");
    if (existsSync(node)) {
      const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
      if (satisfies(version, range)) return node;
    }
    if (at === dirname(at)) return undefined;
  }
}

/**
 * Starts the fetched Node with the same arguments and stdio. Process signals and the exit code pass through
 * unchanged. It returns only where there is no fetched Node.
 */
export async function handOverToFetchedNode() {
  const here = fileURLToPath(new URL("holdfast.mjs", import.meta.url));
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  const node = findFetchedNode(here, JSON.parse(manifest).engines.node);
  if (node === undefined) return;
  const args = [...process.execArgv, process.argv[1] ?? here, ...process.argv.slice(2)];
  await handOver(node, args, { env: { ...process.env, [LAUNCHED]: "1" }, isTied: true });
}

/**
 * Run a command in our place: same stdio, process signals passed on, and in the end the same exit code or the
 * same death. Never returns while the command runs, and does not return after it either.
 *
 * `isTied` opens a channel to the command, so that one of ours can notice that we were killed with -9.
 */
export async function handOver(command, args, { env = process.env, isTied = false } = {}) {
  const { spawn } = await import("node:child_process");
  const stdio = ["inherit", "inherit", "inherit", ...(isTied ? ["ipc"] : [])];
  const child = spawn(command, args, { env, stdio });
  for (const signal of PASSED_ON) process.on(signal, () => child.kill(signal));
  const end = await new Promise((resolve) => {
    child.on("error", (error) => resolve({ error }));
    child.on("exit", (code, signal) => resolve({ code, signal }));
  });
  if (end.error !== undefined) {
    process.stderr.write(`cannot run ${command}: ${end.error.message}\n`);
    process.exit(end.error.code === "ENOENT" ? 127 : 126); // as a shell would
  }
  if (end.signal !== null) {
    process.removeAllListeners(end.signal);
    process.kill(process.pid, end.signal);
  }
  process.exit(end.code ?? 1);
}

const PASSED_ON = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

function compareVersions(left, right) {
  const a = left.split(/[.-]/).map(Number);
  const b = right.split(".").map(Number);
  for (let i = 0; i < 3; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
