// The first errors and times that a new user meets: a wrong path, no coordinator, a schedule in another time zone.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
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

test("an example that begins with another program is printed as it is", async () => {
  const { stdout } = await project.run("import", "--help");
  expect(stdout).toContain("\n  gunzip -c backup.gz | holdfast import -\n");
});
