// The launcher is what an older Node reads, so it is tried here as it stands on disk, beside a `main` of our
// own.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseSync } from "oxc-parser";
import { NODE_FLOORS, nodeWarning } from "@holdfast/system";
import { ofCampaign } from "@holdfast/testkit/campaign";

const BIN = fileURLToPath(new URL("../packages/holdfast/bin", import.meta.url));
const ANY_NODE = ">=18.0.0";
const NO_NODE = ">=99.0.0";

let root: string;
let started: ChildProcess[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "launcher-"));
  started = [];
  cpSync(BIN, join(root, "packages/holdfast/bin"), { recursive: true });
});

afterEach(() => {
  for (const child of started) child.kill("SIGKILL");
  rmSync(root, { recursive: true });
});

describe("which Node", () => {
  test("a Node in the range runs main, whose answer is the exit code", () => {
    layOut(ANY_NODE, 'export const main = async (args) => (console.log(args.join("+")), 7);');
    expect(holdfast("a", "b c")).toMatchObject({ status: 7, stdout: "a+b c\n", stderr: "" });
  });

  test("L1: another Node hands over to the fetched one, arguments and exit code unchanged", () => {
    layOut(NO_NODE, "");
    fetchedNode("99.1.0", 'shift; echo "$HOLDFAST_LAUNCHED:$*"; exit 7');
    expect(holdfast("a", "b c")).toMatchObject({ status: 7, stdout: "1:a b c\n", stderr: "" });
  });

  test("L1: a fetched Node that dies of a process signal is died of in the same way", () => {
    layOut(NO_NODE, "");
    fetchedNode("99.1.0", "kill -TERM $$");
    expect(holdfast()).toMatchObject({ status: null, signal: "SIGTERM" });
  });

  test("a fetched Node outside the range is none, and the error says what to do", () => {
    layOut(NO_NODE, "");
    fetchedNode("98.0.0", "exit 0");
    const { status, stdout, stderr } = holdfast("run", "a.ts");
    expect({ status, stdout }).toEqual({ status: 11, stdout: "" });
    expect(stderr).toMatch(
      /^error\[E_NODE_VERSION\]: holdfast needs Node 99\.0\.0 .* install Node 24 from .*\n$/,
    );
    if (process.platform === "linux") expect(stderr).toContain("@24 -p holdfast holdfast run a.ts\n");
    // A word that a shell would read in another way is not repeated.
    expect(holdfast("run", "a.ts", "$(b)").stderr).toMatch(/holdfast holdfast\n$/);
  });

  test("the launcher imports nothing before it knows the Node, and has the syntax of Node 16", () => {
    const text = readFileSync(join(BIN, "holdfast.mjs"), "utf8");
    const walked = parseSync("holdfast.mjs", text);
    expect(walked.errors).toEqual([]);
    expect(walked.module.staticImports).toEqual([]);
    const own = text.split("\n").filter((line) => !/^\s*(\/\/|\/\*)/.test(line));
    // Syntax and functions that came after Node 16.
    expect(own.join("\n")).not.toMatch(
      /\bstatic \{|#\w+ in |\.(toSorted|findLast|groupBy|at|hasOwn)\(|\/v[;,.)]/,
    );
  });

  test("the range of our manifests is read as npm reads it", async () => {
    const { satisfies } = await import(join(BIN, "node-version.mjs"));
    const range = ">=22.23.4 <23 || >=24.22.1 <25 || >=26.12.1";
    const versions = [
      "20.20.2",
      "22.23.3",
      "22.23.4",
      "23.0.0",
      "24.22.0",
      "24.22.1",
      "25.9.0",
      "26.12.0",
      "26.12.1",
      "27.0.0",
    ];
    const fine = versions.filter((version) => satisfies(version, range));
    expect(fine).toEqual(["22.23.4", "24.22.1", "26.12.1", "27.0.0"]);
    // The launcher has them without a package.json, and so have programs that import us.
    const floors = range.split("||").map((part) => />=([\d.]+)/.exec(part)?.[1]);
    expect(launcherFloors()).toEqual(floors);
    expect(NODE_FLOORS).toEqual(floors);
    expect(versions.filter((version) => nodeWarning(version) === undefined)).toEqual(fine);
    layOut(ANY_NODE, "export const main = async () => 0;");
    for (const version of versions) {
      setFloors(NODE_FLOORS);
      const as = ["--import", `data:text/javascript,${encodeURIComponent(pretends(version))}`];
      const { status } = spawnSync(process.execPath, [...as, launcher()], { encoding: "utf8" });
      expect([version, status]).toEqual([version, fine.includes(version) ? 0 : 11]);
    }
  });

  // The security releases of October 2026 fixed ten holes, in Brotli, TLS and DNS among others.
  test("no manifest allows a Node with known holes, and setup fetches one that all of them allow", async () => {
    const { satisfies } = await import(join(BIN, "node-version.mjs"));
    const checkout = new URL("..", import.meta.url);
    const folders = readdirSync(new URL("packages", checkout)).map((name) => `packages/${name}/`);
    const ranges = ["", ...folders].map((folder) => {
      const text = readFileSync(new URL(`${folder}package.json`, checkout), "utf8");
      return (JSON.parse(text) as { engines: { node: string } }).engines.node;
    });
    const [, fetched = ""] = /NODE_VERSION = "(.*)"/.exec(
      readFileSync(new URL("scripts/setup.mjs", checkout), "utf8"),
    )!;
    const allowed = (version: string) => ranges.map((range) => satisfies(version, range));
    expect(new Set(["22.23.3", "24.22.0", "26.12.0"].flatMap(allowed))).toEqual(new Set([false]));
    expect(new Set([fetched, "22.23.5", "26.12.1"].flatMap(allowed))).toEqual(new Set([true]));
  });
});

describe("process signals", () => {
  const WAITS = `
    export const main = () => new Promise((resolve) => {
      let count = 0;
      process.on("SIGINT", () => {
        console.log("interrupt");
        if (++count === 2) resolve(130);
        else if (process.env.COPIES) process.kill(process.pid, "SIGINT"); // From here: from elsewhere it may come late.
      });
      setInterval(() => {}, 1e6);
      console.log(String(process.pid));
    });`;

  // The terminal, npx and the launcher each send their copy of one Ctrl-C.
  test("L3: copies of one interrupt are one, and a second press is a second", async () => {
    layOut(ANY_NODE, WAITS);
    const { child, next } = start(process.execPath, [launcher()], { COPIES: "yes" });
    await next();
    child.kill("SIGINT");
    expect(await next()).toBe("interrupt"); // And its copy: it must not resolve `main`.
    await new Promise((resolve) => setTimeout(resolve, 150)); // as fast as a person presses twice
    expect(child.exitCode).toBe(null);
    child.kill("SIGINT");
    expect(await next()).toBe("interrupt");
    expect(await ended(child)).toBe(130);
  });

  test("L2: a launcher killed with -9 takes the agent with it", ofCampaign, async () => {
    layOut(ANY_NODE, WAITS);
    const tied = `
      import { handOver } from ${JSON.stringify(join(BIN, "node-version.mjs"))};
      const env = { ...process.env, HOLDFAST_LAUNCHED: "1" };
      await handOver(process.execPath, [${JSON.stringify(launcher())}], { env, isTied: true });`;
    writeFileSync(join(root, "tied.mjs"), tied);
    const { child, next } = start(process.execPath, [join(root, "tied.mjs")]);
    const agent = Number(await next());
    expect(isAlive(agent)).toBe(true);
    child.kill("SIGKILL");
    await expect.poll(() => isAlive(agent), { timeout: 10_000 }).toBe(false);
  });
});

/** Code after which a process says that it is this Node. */
function pretends(version: string): string {
  return `Object.defineProperty(process.versions, "node", { value: ${JSON.stringify(version)} })`;
}

function launcherFloors(): unknown {
  const text = readFileSync(join(BIN, "holdfast.mjs"), "utf8");
  return JSON.parse(/FLOORS = (\[.*\]);/.exec(text)?.[1] ?? "[]");
}

function setFloors(floors: readonly string[]): void {
  const text = readFileSync(launcher(), "utf8");
  writeFileSync(launcher(), text.replace(/FLOORS = \[.*\];/, `FLOORS = ${JSON.stringify(floors)};`));
}

function layOut(range: string, main: string): void {
  setFloors([range.replace(">=", "")]);
  writeFileSync(
    join(root, "packages/holdfast/package.json"),
    JSON.stringify({ engines: { node: range }, type: "module" }),
  );
  const system = join(root, "packages/holdfast/node_modules/@holdfast/system");
  mkdirSync(system, { recursive: true });
  const manifest = { type: "module", exports: { "./handed-keys": "./handed-keys.js" } };
  writeFileSync(join(system, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(system, "handed-keys.js"), "export const replaceWithoutKeys = () => undefined;\n");
  mkdirSync(join(root, "packages/holdfast/dist"));
  writeFileSync(join(root, "packages/holdfast/dist/main.js"), main);
}

/** A stand-in for the Node that setup fetches: a shell script. */
function fetchedNode(version: string, script: string): void {
  const home = join(root, ".tools/node_modules", `node-${process.platform}-${process.arch}`);
  const node = join(home, "bin/node");
  mkdirSync(dirname(node), { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ version }));
  writeFileSync(node, `#!/bin/sh\n${script}\n`);
  chmodSync(node, 0o755);
}

function launcher(): string {
  return join(root, "packages/holdfast/bin/holdfast.mjs");
}

function holdfast(...args: string[]) {
  return spawnSync(process.execPath, [launcher(), ...args], { encoding: "utf8" });
}

function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  started.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return { child, next: async () => (await lines.next()).value as string };
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.on("exit", resolve));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
