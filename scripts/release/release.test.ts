// The campaign `release`: every package is published to a registry on loopback. A stranger installs from it,
// under each Node that we support and under older ones.

import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { nodePackage } from "../../packages/holdfast/bin/node-version.mjs";
import { fetchNode } from "../npm.mjs";
import { freePort, startRegistry, type Registry } from "./verdaccio.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TSC = join(ROOT, "node_modules", ".bin", "tsc");
const TIMEOUT_MS = 15 * 60_000;
const options = { ...ofCampaign, timeout: TIMEOUT_MS };
/** The entries that need no test runner. */
const ENTRIES = ["", "/agents", "/client", "/programs", "/runner", "/testing"].map(
  (entry) => `holdfast${entry}`,
);

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let registry: Registry;
let folder: string;
let published: Ended;
beforeAll(async () => {
  registry = await startRegistry(await uplink());
  folder = mkdtempSync(join(tmpdir(), "holdfast-stranger-"));
  published = await release(...(process.env["HOLDFAST_RELEASE_PACKED"] === undefined ? [] : ["--packed"]));
}, TIMEOUT_MS);
afterAll(async () => {
  await registry.stop();
  await rm(folder, { recursive: true, force: true });
}, TIMEOUT_MS);

test(
  "every package is published, each after those that it needs, and again nothing is",
  options,
  async () => {
    expect(published.code, published.stderr).toBe(0);
    const names = [...published.stdout.matchAll(/^published: (\S+)@0/gm)].map(([, name]) => name);
    expect(names).toHaveLength(18);
    expect(names.indexOf("holdfast")).toBeGreaterThan(names.indexOf("@holdfast/coordinator"));
    for (const [figure] of published.stdout.matchAll(/^(core and SQLite|import of holdfast): .*/gm))
      note(figure);
    const again = await release("--packed");
    expect(again.code, again.stderr).toBe(0);
    expect(again.stdout.match(/^skipped: /gm)).toHaveLength(18);
    const bill = JSON.parse(readFileSync(join(ROOT, "dist/release/sbom.cdx.json"), "utf8")) as {
      readonly components: readonly { readonly purl: string }[];
    };
    const parts = bill.components.map(({ purl }) => purl.replace(/@[^@]*$/, ""));
    const expected = ["pkg:npm/%40holdfast/core", "pkg:npm/holdfast", "pkg:npm/zod", "pkg:npm/yaml"];
    expect(parts).toEqual(expect.arrayContaining(expected));
    expect(parts.filter((part) => /simulator|vitest|verdaccio/.test(part))).toEqual([]);
  },
);

test.each(["22", "24", "26"])(
  "on Node %s two commands lead to a durable run, which a kill does not end",
  options,
  async (line) => {
    const bin = nodeOf(line);
    const home = fresh(`node-${line}`);
    const startedAt = performance.now();
    const made = await call(bin, home, ["npm", "create", "--yes", "holdfast@latest", "my-agents"]);
    expect(made.code, made.stderr).toBe(0);
    const at = join(home, "my-agents");
    const slow = { cwd: at, env: envOf(bin, { SECTION_MS: "600000" }), detached: true };
    const running = spawn("npx", ["holdfast", "run", "agents/first-agent.ts", "--session", "first"], slow);
    await says(running, /writing "why"/);
    const seconds = (performance.now() - startedAt) / 1_000;
    note(`first durable step on Node ${line} after ${seconds.toFixed(1)} s`);
    await killed(running);
    const resumed = await call(bin, at, ["npx", "holdfast", "resume", "first"], { SECTION_MS: "1" });
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stdout.match(/: a section about/g)).toHaveLength(3);
    const shown = await call(bin, at, ["npx", "holdfast", "show", "first", "--json"]);
    const { tasks } = JSON.parse(shown.stdout) as { readonly tasks: readonly object[] };
    expect(tasks[0]).toMatchObject({ kind: "outline", attempts: 1 }); // It was recorded before the kill.

    const tested = await call(bin, at, ["npm", "test"], { SECTION_MS: "1" });
    expect(tested.code, tested.stdout).toBe(0);
    for (const entry of ENTRIES) {
      const code = `console.log(Object.keys(await import("${entry}")).length)`;
      const imported = await call(bin, at, ["node", "--no-warnings", "--input-type=module", "--eval", code]);
      expect([entry, imported.code, imported.stderr]).toEqual([entry, 0, ""]);
    }
    for (const resolution of ["nodenext", "bundler"]) {
      const module = resolution === "bundler" ? "esnext" : resolution;
      const args = ["-p", ".", "--module", module, "--moduleResolution", resolution];
      const types = await call(dirname(process.execPath), at, [TSC, ...args]);
      expect([resolution, types.code, types.stdout]).toEqual([resolution, 0, ""]);
    }
  },
);

test("npx alone leads to a durable run in an empty folder", options, async () => {
  const home = fresh("npx");
  const bin = dirname(process.execPath);
  const begun = await call(bin, home, ["npx", "--yes", "holdfast", "init"]);
  expect(begun.code, begun.stderr).toBe(0);
  const next = /next:\n {2}(npx .+)/.exec(begun.stderr)?.[1] ?? "";
  expect(next).toBe("npx holdfast run agents/first-agent.ts");
  const ran = await call(bin, home, ["npx", "--yes", ...next.split(" ").slice(1)], { SECTION_MS: "1" });
  expect(ran.code, ran.stderr).toBe(0);
});

test.each(["18", "20"])("Node %s gets one line, and the command in it works", options, async (line) => {
  const bin = nodeOf(line);
  const home = fresh(`node-${line}`);
  for (const words of [
    ["npx", "--yes", "holdfast", "--version"],
    ["npx", "--yes", "create-holdfast", "my-agents"],
  ]) {
    const { code, stdout, stderr } = await call(bin, home, words);
    expect([code, stdout]).toEqual([11, ""]);
    const own = stderr.split("\n").filter((text) => text !== "" && !text.startsWith("npm warn"));
    expect(own).toEqual([expect.stringMatching(/^error\[E_NODE_VERSION\]: holdfast needs Node 22\.23\.4, /)]);
    if (words[2] !== "holdfast") continue;
    const advised = /or run: npx (.+)$/.exec(own[0]!)?.[1] ?? "";
    const { code: ended, stdout: version } = await call(bin, home, ["npx", ...advised.split(" ")]);
    expect([ended, version]).toEqual([0, "0.1.0\n"]);
  }
});

test("a project that installs Holdfast keeps its files, and gets an agent", options, async () => {
  const home = fresh("existing");
  writeFileSync(
    join(home, "package.json"),
    JSON.stringify({ name: "theirs", type: "module", private: true }),
  );
  writeFileSync(join(home, "notes.txt"), "mine");
  const bin = dirname(process.execPath);
  expect((await call(bin, home, ["npm", "install", "holdfast"])).code).toBe(0);
  expect((await call(bin, home, ["npx", "holdfast", "init", "--template", "agent-file"])).code).toBe(0);
  expect(existsSync(join(home, ".holdfast/agents/writer.md"))).toBe(true);
  expect(existsSync(join(home, "README.md"))).toBe(false);
});

test("the template model runs, is killed at its question, and refunds once", options, async () => {
  const { bin, at } = await created("model");
  const model = spawn("node", ["model/serve.ts"], { cwd: at, env: envOf(bin) });
  onTestFinished(() => void model.kill("SIGKILL"));
  const [, url = ""] = await says(model, /export HOLDFAST_SCRIPTED_MODEL_URL=(\S+)/);
  const env = { HOLDFAST_SCRIPTED_MODEL_URL: url };
  const words = ["holdfast", "run", "agents/assistant.ts", "--input", '"It is broken."', "--session", "lamp"];
  const running = spawn("npx", words, { cwd: at, env: envOf(bin, env), detached: true });
  await says(running, /Allow refund\?/);
  await killed(running);
  expect((await call(bin, at, ["npx", "holdfast", "approve", "lamp"], env)).code).toBe(0);
  const resumed = await call(bin, at, ["npx", "holdfast", "resume", "lamp"], env);
  expect(resumed.stdout, resumed.stderr).toContain("You get 49 EUR back.");
  expect(readFileSync(join(at, "refunds.log"), "utf8")).toMatch(/^49 EUR for 7 \(\S+\)\n$/);
});

test.each([
  ["hono", ["npm", "start"], "/answer"],
  ["next", ["npm", "run", "dev"], ""],
])(
  "the template %s serves an order, is killed, and ships it after its restart",
  options,
  async (name, [command, ...args], answer) => {
    const { bin, at } = await created(name);
    const port = await freePort();
    const env = envOf(bin, { PORT: String(port), NEXT_TELEMETRY_DISABLED: "1" });
    const serve = async (): Promise<ChildProcess> => {
      const server = spawn(command!, args, { cwd: at, env, detached: true });
      onTestFinished(() => killed(server));
      await says(server, /http:\/\/(127\.0\.0\.1|localhost):\d+/);
      return server;
    };
    const ask = async (method: string, id: string, end = "", body?: object): Promise<unknown> => {
      const url = `http://127.0.0.1:${port}/orders/${id}${end}`;
      return (await fetch(url, { method, body: JSON.stringify(body) })).json();
    };
    const server = await serve();
    expect(await ask("PUT", "one", "", { item: "lamp" })).toEqual({ id: "one", created: true });
    await expect.poll(() => ask("GET", "one"), { timeout: 60_000 }).toEqual({ status: "input_required" });
    if (name === "next") {
      // The development server loads the edited agent, and the session that waits continues with it.
      const agent = join(at, "agents/order.ts");
      writeFileSync(agent, readFileSync(agent, "utf8").replace('return "shipped"', 'return "sent"'));
      await expect
        .poll(() => ask("PUT", "two", "", { item: "bulb" }), { timeout: 60_000 })
        .toMatchObject({ id: "two" });
    }
    await killed(server);
    await serve();
    expect(await ask("PUT", "one", "", { item: "lamp" })).toEqual({ id: "one", created: false });
    expect(await ask("POST", "one", answer, { approved: true })).toEqual({ status: "stored" });
    const state = name === "next" ? "sent" : "shipped";
    await expect
      .poll(() => ask("GET", "one"), { timeout: 60_000 })
      .toEqual({ status: "completed", output: { receipt: "receipt of lamp", state } });
    const ledger = readFileSync(join(at, "ledger.log"), "utf8");
    expect(ledger.match(/^charged lamp /gm)).toHaveLength(1);
    expect(ledger.match(/^shipped lamp$/gm)).toHaveLength(1);
  },
);

/** A project of this template, whose own tests pass. */
async function created(template: string): Promise<{ readonly bin: string; readonly at: string }> {
  const bin = dirname(process.execPath);
  const home = fresh(`template-${template}`);
  const words = ["npm", "create", "--yes", "holdfast@latest", "made", "--", "--template", template];
  const made = await call(bin, home, words);
  expect(made.code, made.stderr).toBe(0);
  const at = join(home, "made");
  const tested = await call(bin, at, ["npm", "test"]);
  expect(tested.code, tested.stdout).toBe(0);
  const types = await call(bin, at, [
    template === "next" ? join(at, "node_modules/.bin/tsc") : TSC,
    "-p",
    ".",
  ]);
  expect([types.code, types.stdout]).toEqual([0, ""]);
  return { bin, at };
}

/** Kills npm or npx, and all that it has started. */
async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-child.pid!, "SIGKILL");
  await once(child, "exit");
  // Those it has started may still hold their port for a moment.
  await expect.poll(() => hasEnded(-child.pid!), { timeout: 60_000 }).toBe(true);
}

/** @param group the negated id of a process group. */
function hasEnded(group: number): boolean {
  try {
    process.kill(group, 0);
    return false;
  } catch {
    return true;
  }
}

/** The registry that npm uses on this machine. */
async function uplink(): Promise<string> {
  const { stdout } = await call(
    dirname(process.execPath),
    tmpdir(),
    ["npm", "config", "get", "registry"],
    process.env,
  );
  return stdout.trim();
}

function release(...args: readonly string[]): Promise<Ended> {
  const script = join(ROOT, "scripts", "release.ts");
  return call(dirname(process.execPath), ROOT, ["node", script, "--registry", registry.url, ...args]);
}

/** The folder of a Node of this line; npm has it. */
function nodeOf(line: string): string {
  const at = join(ROOT, ".tools", "release", line);
  const bin = join(at, "node_modules", nodePackage, "bin");
  if (!existsSync(bin)) expect(fetchNode(line, at, dirname(process.execPath))).toBe(0);
  return bin;
}

function fresh(name: string): string {
  const at = join(folder, name);
  mkdirSync(at);
  return at;
}

function envOf(bin: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...registry?.env, HOME: folder, ...more };
  delete env["NODE_COMPILE_CACHE"]; // A stranger has none.
  return { ...env, PATH: [bin, process.env["PATH"]].join(delimiter) };
}

async function call(
  bin: string,
  cwd: string,
  [command, ...args]: readonly string[],
  more: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  const child = spawn(command!, args, { cwd, env: envOf(bin, more), stdio: ["ignore", "pipe", "pipe"] });
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => (said[name] += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...said };
}

/** Waits until the program has printed this. */
async function says(child: ChildProcess, text: RegExp): Promise<RegExpExecArray> {
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("utf8").on("data", (piece: string) => (said += piece));
  await expect.poll(() => said, { timeout: 120_000 }).toMatch(text);
  return text.exec(said)!;
}

/** A figure for the row of the campaign. */
function note(figure: string): void {
  const file = process.env["HOLDFAST_RELEASE_FIGURES"];
  if (file !== undefined) appendFileSync(file, `${figure}\n`);
}
