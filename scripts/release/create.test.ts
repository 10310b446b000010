// `npm create holdfast` over an npm of ours, which installs the bundled packages, fails, or never ends. The
// campaign `release` calls it over a registry.

import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { NODE_FLOORS } from "@holdfast/system";
import { TEMPLATES } from "../../packages/create-holdfast/bin/create.mjs";
import { TEMPLATES as OF_INIT } from "../../packages/holdfast/src/agents/added/init-project.ts";
import { installCommand } from "../installed-command.ts";

const CREATE = fileURLToPath(
  new URL("../../packages/create-holdfast/bin/create-holdfast.mjs", import.meta.url),
);
const packages = dirname(await installCommand());

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-create-"));
  npm(`require("fs").symlinkSync(${JSON.stringify(packages)}, "node_modules")`);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The program in the place of npm. */
function npm(code: string): void {
  writeFileSync(join(folder, "npm-cli.js"), code);
}

/** A create that hangs fails its test alone. */
const TIMEOUT_MS = 60_000;

const env = () => ({ ...process.env, npm_execpath: join(folder, "npm-cli.js") });

function create(...args: readonly string[]) {
  return spawnSync(process.execPath, [CREATE, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: env(),
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
}

function here(): readonly string[] {
  return readdirSync(folder).filter((name) => name !== "npm-cli.js");
}

test("the folder has Holdfast and an agent, and the next command is said", () => {
  const { status, stdout, stderr } = create("my-agents");
  expect(status, stderr).toBe(0);
  expect(stdout).toContain("cd my-agents && npx holdfast run agents/first-agent.ts");
  expect(here()).toEqual(["my-agents"]);
  expect(readdirSync(join(folder, "my-agents")).toSorted()).toEqual(
    [
      ".gitignore",
      "AGENTS.md",
      "README.md",
      "agents",
      "node_modules",
      "package.json",
      "tsconfig.json",
    ].toSorted(),
  );
  const manifest = readFileSync(join(folder, "my-agents", "package.json"), "utf8");
  expect(JSON.parse(manifest)).toMatchObject({ name: "my-agents", dependencies: { holdfast: "0.1.0" } });
});

test("an empty folder is filled, also below folders that are not there, and by its template", () => {
  mkdirSync(join(folder, "empty"));
  expect(create("empty", "--template", "agent-file").status).toBe(0);
  expect(existsSync(join(folder, "empty/.holdfast/agents/writer.md"))).toBe(true);
  expect(create("a/b/c", "--template=coding-agent").status).toBe(0);
  expect(existsSync(join(folder, "a/b/c/agents/coding-agent.ts"))).toBe(true);
});

test.each([
  [[], "the name of one folder is needed"],
  [["one", "two"], "the name of one folder is needed"],
  [["My Agents"], "npm does not take this one"],
  [["node_modules"], "npm does not take this one"],
  [["holdfast"], "npm does not take this one"],
  [[".hidden"], "npm does not take this one"],
  [["x", "--template", "no"], 'there is no template "no"'],
  [["x", "--typescript"], "there is no option --typescript"],
])("%j is refused before anything is made", (words, what) => {
  const { status, stderr } = create(...words);
  expect(status).toBe(2);
  expect(stderr).toMatch(/^error\[E_USAGE\]: /);
  expect(stderr).toContain(what);
  expect(stderr).toMatch(/\n {2}fix: .+\n$/);
  expect(here()).toEqual([]);
});

test("a folder that is not empty is not touched, and a file in the place of a folder is none", () => {
  mkdirSync(join(folder, "full"));
  writeFileSync(join(folder, "full", "notes.txt"), "mine");
  expect(create("full")).toMatchObject({ status: 2, stderr: expect.stringContaining("got: notes.txt") });
  expect(readdirSync(join(folder, "full"))).toEqual(["notes.txt"]);
  expect(create("npm-cli.js")).toMatchObject({ status: 2, stderr: expect.stringContaining("ENOTDIR") });
});

test("a registry that fails in the middle leaves nothing, and the next create works", () => {
  const install = readFileSync(join(folder, "npm-cli.js"), "utf8");
  npm(
    'require("fs").mkdirSync("node_modules"); console.error("npm error code ECONNREFUSED"); process.exit(1)',
  );
  const { status, stderr } = create("my-agents");
  expect(status).toBe(7);
  expect(stderr).toContain("ECONNREFUSED");
  expect(stderr).toContain("npm could not install holdfast@0.1.0 (1), and nothing was left behind");
  expect(here()).toEqual([]);
  npm(install);
  expect(create("my-agents").status).toBe(0);
});

test("a place where nothing may be made is named", () => {
  const { status, stderr } = create("/proc/my-agents");
  expect(status).toBe(10);
  expect(stderr).toMatch(/the folder cannot be made: E[A-Z]+\n {2}at: \/proc\n/);
});

test("a create that is stopped leaves nothing, and one that is killed leaves nothing in the way", async () => {
  const install = readFileSync(join(folder, "npm-cli.js"), "utf8");
  // It ends with the create that started it, whichever way that ends.
  npm(
    'const { ppid } = process; console.error("started"); setInterval(() => ppid === process.ppid || process.exit(), 20)',
  );
  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    const child = spawn(process.execPath, [CREATE, "my-agents"], { cwd: folder, env: env() });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
    await expect.poll(() => said).toContain("started");
    expect(here()).toEqual([expect.stringMatching(/^\.my-agents\.creating-\d+$/)]);
    child.kill(signal);
    const [code] = (await once(child, "exit")) as [number | null];
    expect([signal, code]).toEqual([signal, signal === "SIGINT" ? 130 : null]);
    if (signal === "SIGINT") expect(here()).toEqual([]);
  }
  npm(install);
  expect(create("my-agents").status).toBe(0);
  expect(here()).toEqual(["my-agents"]);
});

test("its templates are those of init, with the same packages and scripts", () => {
  const own = Object.entries(TEMPLATES).map(([name, one]) => [name, partsOf(one)]);
  expect(own).toEqual(Object.entries(OF_INIT).map(([name, one]) => [name, partsOf(one)]));
  const { status, stderr } = create("shop", "--template", "hono");
  expect([status, stderr]).toEqual([0, expect.any(String)]);
  const { scripts, dependencies } = JSON.parse(
    readFileSync(join(folder, "shop", "package.json"), "utf8"),
  ) as { readonly scripts: object; readonly dependencies: object };
  expect(scripts).toMatchObject({ start: "node src/server.ts" });
  expect(dependencies).toMatchObject({ holdfast: "0.1.0", hono: expect.any(String) });
});

function partsOf({ dependencies, scripts }: Parts): object {
  return { ...(dependencies && { dependencies }), ...(scripts && { scripts }) };
}

interface Parts {
  readonly first?: string;
  readonly about?: string;
  readonly dependencies?: object;
  readonly scripts?: object;
}

test("its launcher has the floors of Node", () => {
  const text = readFileSync(CREATE, "utf8");
  expect(JSON.parse(/FLOORS = (\[.*\]);/.exec(text)?.[1] ?? "[]")).toEqual(NODE_FLOORS);
  expect(text).not.toMatch(/^import /m);
});
