// A cloned repository plants everything that the tables of inputs name: settings, files and variables, each
// with a canary that shows its use. The ordinary commands use none of them before the user trusts the
// project. A row of a table without a plant here does not compile.

import { spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, expect, test } from "vitest";
import { PROJECT_FILES, VARIABLES, type NeededTrust, type ProjectPath } from "@holdfast/agents";
import type { Config } from "@holdfast/place/settings/config";
import { ModelProject, repliesOf } from "../testing/model-project.ts";
import { elsewhere, plantedFiles, USERS } from "../testing/planted-files.ts";

let clone: ModelProject;
let server: Server;
/** The addresses that the commands have called. */
let called: string[];

beforeEach(async () => {
  clone = await ModelProject.open({ XDG_CONFIG_HOME: undefined });
  mkdirSync(canary(""));
  called = [];
  server = createServer((request, response) => {
    called.push(request.url ?? "");
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  spawnSync("git", ["init", "-q"], { cwd: clone.folder });
  for (const [path, text] of Object.entries(USERS)) {
    mkdirSync(dirname(join(clone.home, path)), { recursive: true });
    writeFileSync(join(clone.home, path), text);
  }
  clone.script = (conversation) => {
    const asked = JSON.stringify(conversation);
    const name = /You are ([\w-]+)\./.exec(asked)?.[1] ?? "nobody";
    for (const [, place] of asked.matchAll(/canary-skill-of-([\w-]+)/g)) touch(`skill-of-${place}`);
    if (repliesOf(conversation) > 0) return { text: "Done." };
    if (name === "with-script") return { toolCalls: [{ name: "script__planted", input: {} }] };
    const command = `touch ${canary(`call-of-${name}`)}`;
    return { toolCalls: [{ name: "shell", input: { command } }] };
  };
});

afterEach(async () => {
  await clone.dispose();
  server.close();
});

/** The file that shows the use of a plant. */
const canary = (name: string): string => join(clone.home, "canaries", name);
const touch = (name: string): void => writeFileSync(canary(name), "");
const address = (name: string): string =>
  `http://127.0.0.1:${(server.address() as AddressInfo).port}/canary-${name}`;

const ORDINARY = [
  "list",
  "inbox",
  "top",
  "doctor",
  "agents list",
  "agents check",
  "models",
  "config list",
  "config get db",
  "mcp list",
  "skill list",
  "script list",
  "env list",
  "rules list",
  "secret list",
  "schedule list",
  "worktrees list",
  "local status",
  "resume --last",
].map((line) => line.split(" "));

const OF_USER = Object.keys(USERS).map((path) => path.replace(/^.*\/|\.\w+$/g, ""));
const run = (...args: string[]) => clone.start(args, { stdin: "", env: environment() }).finished;
const runAgent = (name: string, ...more: string[]) => run("run", name, "Hi.", "--local", "--park", ...more);

/** As `npx` starts a command. */
const environment = () => ({
  PATH: `${clone.path("node_modules/.bin")}:${dirname(process.execPath)}:${process.env["PATH"]}`,
});

/** The plants that something has used. */
const used = (): readonly string[] => [...readdirSync(canary("")), ...new Set(called)].toSorted();

const plants = () => plantedFiles({ clone, canary, address });
const agentsOf = (planted: ReturnType<typeof plants>): readonly string[] =>
  Object.values(planted).flatMap(({ agents = [] }) => agents);

test("nothing that a clone brings is used before trust", ofCampaign, async () => {
  const planted = plants();
  for (const plant of Object.values(planted)) plant.write();
  const said: string[] = [];
  const finish = async (finished: ReturnType<typeof run>, what: string): Promise<void> => {
    const { stdout, stderr } = await finished;
    said.push(stdout, stderr);
    expect({ what, used: used() }).toEqual({ what, used: [] });
  };
  for (const args of ORDINARY) await finish(run(...args), args.join(" "));
  for (const name of [...OF_USER, ...agentsOf(planted), "claude-code"]) await finish(runAgent(name), name);
  await finish(runAgent("own", "--trace", "otlp:http://127.0.0.1:1"), "a trace");
  await finish(runAgent("own", "--worktree"), "a worktree");
  await finish(run("runner", "--ipc"), "runner --ipc");
  // No variable of a file was taken over, whatever it would have done.
  const taken = Object.keys(VARIABLES).filter((name) => said.some((text) => text.includes(`canary-${name}`)));
  expect(taken).toEqual([]);
  expect(said.join("")).toContain("agents trust");
});

test("the same clone uses what it brings once the user has trusted it", ofCampaign, async () => {
  const planted = plants();
  for (const plant of Object.values(planted)) plant.write();
  await clone.run("agents", "trust");
  await clone.run("skill", "approve");
  for (const name of [...OF_USER, ...agentsOf(planted)])
    await clone.run("run", name, "Hi.", "--local", "--park");
  const isUsable = Object.entries(planted).flatMap(([path, plant]) => {
    const needs: NeededTrust = PROJECT_FILES[path as ProjectPath].needs;
    const counts = needs.startsWith("content") || needs === "approval";
    return counts && plant !== elsewhere ? [[path, plant.used ?? []] as const] : [];
  });
  // Each of these files has a canary, so that the test above cannot pass for a plant that does nothing.
  expect(isUsable.filter(([, canaries]) => canaries.length === 0)).toEqual([]);
  expect(used()).toEqual(expect.arrayContaining(isUsable.flatMap(([, canaries]) => canaries)));
});

const SETTINGS: Readonly<Record<keyof Config, () => unknown>> = {
  db: () => canary("db"),
  trace: () => [`file:${canary("trace")}`, `sqlite:${canary("trace.db")}`, `otlp:${address("trace")}`],
  strictBounds: () => false,
  commandNamespace: () => false,
  mode: () => "cloud",
};

test.each(Object.entries(SETTINGS))(
  "the setting %s of a clone counts for no command before trust",
  async (key, value) => {
    clone.write(".holdfast/config.json", JSON.stringify({ [key]: value() }));
    const ended = await Promise.all([
      runAgent("own"),
      run("list"),
      run("inbox"),
      run("doctor"),
      run("config", "list"),
    ]);
    expect(used()).toEqual([]);
    expect(ended[0]).toMatchObject({ code: 12, stderr: expect.stringContaining(`config.json#/${key}`) });
  },
);
