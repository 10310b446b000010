// The first errors and times that a new user meets: a wrong path, no coordinator, a schedule in another time
// zone.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startScriptedModelServer } from "@holdfast/testkit";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => {
  project = new Project();
  writeFileSync(project.path("echo.ts"), "export default async (ctx, input) => input;\n");
});
afterEach(() => project.dispose());

test.each([
  ["--db", "missing.db"],
  ["--storage", "sqlite:missing.db"],
])("doctor %s of a database that does not exist ends with 2 and names the path", async (flag, value) => {
  const { code, stderr } = await project.run("doctor", flag, value);
  expect(code).toBe(2);
  expect(stderr).toMatch(/E_FILE_NOT_FOUND\]: there is no database at \S*missing\.db/);
});

test("a command for a coordinator says how to start one where there never was one", async () => {
  const { code, stderr } = await project.run("token", "create", "ci");
  expect(code).toBe(5);
  expect(stderr).toContain("no coordinator has written");
  expect(stderr).toContain("start a coordinator here with `holdfast coordinator`");
});

test("a --token-file that does not exist is an error about the file", async () => {
  const { code, stderr } = await project.run("token", "list", "--token-file", "nofile");
  expect(code).toBe(2);
  expect(stderr).toMatch(/E_FILE_NOT_FOUND\]: there is no file \S*nofile, which --token-file names/);
});

test("a schedule's next time is told by the clock of its time zone", async () => {
  const { stderr } = await project.run(
    "schedule",
    "add",
    "0 3 1 1 *",
    "--run",
    "echo.ts",
    "--id",
    "yearly",
    "--tz",
    "Asia/Tokyo",
  );
  expect(stderr).toMatch(/next at \d{4}-01-01 03:00:00 Asia\/Tokyo/);
  expect((await project.run("schedule", "list")).stdout).toMatch(/\d{4}-01-01 03:00:00 Asia\/Tokyo/);
});

test("a failed session shows the fix of its cause, and a file from the template needs no price", async () => {
  const server = await startScriptedModelServer({ script: () => ({ text: "Hello." }) });
  const env = {
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: "k",
    HOLDFAST_MODEL: "anthropic/unpriced",
    HOME: project.path("home"),
  };
  const called = (...args: string[]) => project.finish(args, { stdin: "", env });
  await called("agents", "new", "helper");
  const file = ".holdfast/agents/helper.md";
  expect((await called("run", file, "Hi.")).code).toBe(0);
  const costly = await called("run", file, "Hi.", "--budget", "1usd");
  expect([costly.code, costly.stderr]).toEqual([
    9,
    expect.stringContaining("fix: limit tokens and not the cost"),
  ]);
  const placed = await called("run", file, "Hi.", "--worktree");
  expect([placed.code, placed.stderr]).toEqual([1, expect.stringContaining("fix: run `git init`")]);
  await server.close();
});

test("an error about the model names the model that was asked for and its key", async () => {
  writeFileSync(project.path("h.md"), "---\nname: h\ndescription: H.\nmodel: haiku\n---\nYou help.\n");
  const env = { HOME: project.path("home"), ANTHROPIC_API_KEY: undefined };
  const { stderr } = await project.finish(["run", "h.md", "Hi."], { stdin: "", env });
  expect(stderr).toContain(
    "the model anthropic/claude-haiku-4-5 is asked for, and ANTHROPIC_API_KEY is not set",
  );
});

test.each([
  ["claud-code", "claude-code"],
  ["codx", "codex"],
  ["claude", "claude-code"],
])("run %s asks whether %s is meant", async (name, meant) => {
  expect((await project.run("run", name, "Hi.")).stderr).toContain(`did you mean ${meant}?`);
});

test("an example that begins with another program is printed as it is", async () => {
  const { stdout } = await project.run("import", "--help");
  expect(stdout).toContain("\n  gunzip -c backup.gz | holdfast import -\n");
});
