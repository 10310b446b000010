// A schedule that starts a coding agent moves with the configuration.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ExternalProject } from "../testing/external-project.ts";

let here: ExternalProject;
let there: ExternalProject;
beforeEach(() => {
  here = new ExternalProject();
  there = new ExternalProject();
});
afterEach(async () => {
  await here.dispose();
  await there.dispose();
});

test("a schedule of a coding agent names its program on the other machine", async () => {
  const add = ["schedule", "add", "0 3 * * *", "--run", "claude-code", "--input", '"go"', "--tz", "UTC"];
  const added = await here.finishHere([...add, "--id", "nightly"]);
  expect(added.code, added.stderr).toBe(0);
  const exported = await here.finishHere(["config", "export"]);
  expect(exported.stderr).not.toContain("outside of the project");
  writeFileSync(there.path("config.json"), exported.stdout);
  const imported = await there.finishHere(["config", "import", "config.json", "--yes"]);
  expect(imported.code, imported.stderr).toBe(0);
  const schedules = JSON.parse((await there.finishHere(["schedule", "list", "--json"])).stdout);
  expect(schedules).toMatchObject([
    { scheduleId: "nightly", start: { agent: { name: "claude-code", file: "external:claude-code" } } },
  ]);
});
