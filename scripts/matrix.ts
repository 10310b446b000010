// `npm run test:matrix`: all of `npm test` on the newest Node of each line that we support, one after the
// other.
//
// `-- 22.22.3 26` runs it on these instead: a version, or the beginning of one for the newest of its kind.
//
//   - The end is one line per version, with the exact version and the sum that `npm test` ends with.
//   - A version that cannot be fetched, or whose run ends without its sum, has failed.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { nodePackage } from "../packages/holdfast/bin/node-version.mjs";
import { canFetchNode, fetchNode, withFirstInPath } from "./npm.mjs";

const NEWEST_OF = ["22", "24", "26"];

interface Outcome {
  readonly isFine: boolean;
  readonly line: string;
}

const root = fileURLToPath(new URL("..", import.meta.url));
const asked = process.argv.slice(2);
const wrong = asked.find((version) => !/^\d+(\.\d+){0,2}$/.test(version));
if (wrong !== undefined) {
  console.error(
    `error[E_USAGE]: this is no version of Node\n  got: ${wrong}\n  expected: 22, 22.23 or 22.23.5`,
  );
  process.exit(2);
}

const outcomes: Outcome[] = [];
for (const wanted of asked.length === 0 ? NEWEST_OF : asked) outcomes.push(await testOn(wanted));
console.log("");
for (const { isFine, line } of outcomes) console.log(`${isFine ? "ok    " : "FAILED"} ${line}`);
process.exitCode = outcomes.every(({ isFine }) => isFine) ? 0 : 1;

async function testOn(wanted: string): Promise<Outcome> {
  const folder = join(root, ".tools", "matrix", wanted);
  const status = canFetchNode ? fetchNode(wanted, folder, dirname(process.execPath)) : "no such package";
  if (status !== 0) {
    return {
      isFine: false,
      line: `Node ${wanted}: npm has no ${nodePackage}@${wanted} for us (npm: ${status})`,
    };
  }
  const home = join(folder, "node_modules", nodePackage);
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { version: string };
  console.log(`\n---- Node ${version}\n`);
  const startedAt = performance.now();
  const { code, lastLine } = await run(join(home, "bin"));
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  const isFine = code === 0 && /^\d+ passed, 0 failed/.test(lastLine);
  return { isFine, line: `Node ${version}: ${lastLine} (${minutes} min)` };
}

/** `npm test` under this Node, which is also what every program started by it finds first. */
function run(binFolder: string): Promise<{ readonly code: number | null; readonly lastLine: string }> {
  const child = spawn(join(binFolder, "node"), ["scripts/test.ts"], {
    cwd: root,
    env: withFirstInPath(binFolder),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let tail = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    process.stdout.write(text);
    tail = (tail + text).slice(-1_000);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, lastLine: tail.trimEnd().split("\n").at(-1) ?? "" }));
  });
}
