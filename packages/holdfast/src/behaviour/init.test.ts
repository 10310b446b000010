// Agents to begin with, as `holdfast init` writes them.

import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { expectError } from "../testing/expect-error.ts";
import { PACKAGES, Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => void (project = new Project({ env: { SECTION_MS: "1" } })));
afterEach(() => project.dispose());

const TEMPLATES = ["agent", "agent-file", "coding-agent", "model", "hono", "next"];

function filesHere(): readonly string[] {
  return readdirSync(project.folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(project.folder.length + 1))
    .toSorted();
}

test("an agent in an empty folder runs, is killed, and goes on without writing a section twice", async () => {
  expect(await project.run("init")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("holdfast run agents/first-agent.ts"),
  });
  const running = project.start(["run", "agents/first-agent.ts"], { env: { SECTION_MS: "60000" } });
  await running.says('writing "why"');
  running.kill("SIGKILL");
  await running.finished;
  const { code, stdout, stderr } = await project.run("resume", "--last");
  expect(code, stderr).toBe(0);
  expect(stdout.match(/: a section about/g)).toHaveLength(3);
  const [session] = await project.json<{ sessionId: string }[]>("list");
  const { tasks } = await project.json<{ tasks: object[] }>("show", session!.sessionId);
  expect(tasks[0]).toMatchObject({ kind: "outline", attempts: 1 }); // It was done before the kill.
});

test("the command alone says the two commands to begin with, and they work", async () => {
  const { code, stderr } = await project.run();
  expect(code).toBe(2);
  const said = [...stderr.matchAll(/`holdfast ((?:init|run) ?\S*)`/g)].map(([, line = ""]) =>
    line.split(" "),
  );
  expect(said).toEqual([["init"], ["run", "agents/first-agent.ts"]]);
  for (const words of said) expect((await project.run(...words)).code).toBe(0);
});

test("the test of the agent passes, with a crash at each point", ofCampaign, async () => {
  symlinkSync(PACKAGES, project.path("node_modules"));
  expect((await project.run("init")).stderr).not.toContain("npm install");
  const { status, stdout } = spawnSync(process.execPath, ["--test", "agents/first-agent.test.ts"], {
    cwd: project.folder,
    encoding: "utf8",
    env: { PATH: process.env["PATH"] },
  });
  expect(status, stdout).toBe(0);
  expect(stdout).toMatch(/\bpass 2\b/);
});

test.each(TEMPLATES)("the template %s is whole in an empty folder", async (name) => {
  const { code, stdout } = await project.run("init", "--template", name);
  expect(code).toBe(0);
  expect(
    stdout
      .trim()
      .split("\n")
      .map((line) => line.replace("wrote ", ""))
      .toSorted(),
  ).toEqual(filesHere());
  expect(filesHere()).toEqual(expect.arrayContaining([".gitignore", "README.md", "package.json"]));
  const manifest = JSON.parse(readFileSync(project.path("package.json"), "utf8")) as {
    readonly name: string;
  };
  expect(manifest.name).toMatch(/^[a-z0-9][a-z0-9-]*$/); // The folder has capitals in its name.
});

test("the agent file of its template is sound, and trust names its skill and its script", async () => {
  await project.run("init", "--template", "agent-file");
  expect((await project.run("agents", "check", "writer")).stdout).toContain("1 file, 0 refused");
  const trusted = await project.finish(["agents", "trust"], {
    stdin: "",
    env: { HOME: project.path("home") },
  });
  expect(trusted.stdout).toContain("its 1 skill and 1 script");
});

test("in a project of somebody else it changes nothing and adds the agents alone", async () => {
  const own = { "package.json": '{"name": "theirs"}', "src/a.ts": "", ".gitignore": "dist\n" };
  mkdirSync(project.path("src"));
  for (const [path, text] of Object.entries(own)) writeFileSync(project.path(path), text);
  const { code, stderr } = await project.run("init");
  expect(code).toBe(0);
  expect(stderr).toMatch(/the test of the agent needs the package here:\n {2}npm install holdfast\n$/);
  expect(filesHere()).toEqual(
    [...Object.keys(own), "agents/first-agent.test.ts", "agents/first-agent.ts"].toSorted(),
  );
  for (const [path, text] of Object.entries(own)) expect(readFileSync(project.path(path), "utf8")).toBe(text);
});

test("where one file is taken, nothing is written", async () => {
  mkdirSync(project.path("agents"));
  writeFileSync(project.path("agents/first-agent.ts"), "mine");
  expectError(await project.run("init"), 2, "E_USAGE", [
    "there is a file agents/first-agent.ts already, and nothing was written",
  ]);
  expect(filesHere()).toEqual(["agents/first-agent.ts"]);
});

test.each(["a file", "a link"])(
  "%s in the place of a folder is taken, and nothing is written",
  async (kind) => {
    if (kind === "a file") writeFileSync(project.path("agents"), "");
    else symlinkSync("/tmp", project.path("agents"));
    expectError(await project.run("init"), 2, "E_USAGE", ["there is a file agents already"]);
    expect(readdirSync(project.folder)).toEqual(["agents"]);
  },
);

test.each([
  ["hono", "npm start", "@hono/node-server hono"],
  ["model", "run agents/assistant.ts", "zod"],
])("the template %s in a project names the packages that it needs", async (name, next, packages) => {
  writeFileSync(project.path("package.json"), '{"name": "theirs"}');
  writeFileSync(project.path("README.md"), "theirs");
  const { code, stderr } = await project.run("init", "--template", name);
  expect([code, stderr]).toEqual([0, expect.stringContaining(`npm install holdfast ${packages}\n`)]);
  expect(stderr).toContain(next);
  expect(readFileSync(project.path("package.json"), "utf8")).toBe('{"name": "theirs"}');
});

test("an unknown template is refused by the names of those that there are", async () => {
  expectError(await project.run("init", "--template", "no"), 2, "E_USAGE", [
    "there is no template no",
    "agent-file",
  ]);
});
