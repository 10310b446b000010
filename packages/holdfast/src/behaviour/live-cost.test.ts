// The cost of a turn that is at work: a turn of a coding agent lasts hours, and its usage is known with each
// message.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ExternalProject } from "../testing/external-project.ts";

let project: ExternalProject;
beforeEach(() => {
  project = new ExternalProject();
});
afterEach(async () => {
  await project.dispose();
});

test("list, top, show and budget have the cost of a turn of a coding agent that is at work", async () => {
  const run = project.startHere(
    ["run", "claude-code", "write:a.txt hang", "--session", "s", "--budget", "900000tokens"],
    { ANTHROPIC_API_KEY: "" },
  );
  await project.hangs("s");
  const { stdout: listed } = await project.finishHere(["list"]);
  expect(listed).toMatch(/COST.*\n.*\$0\.0\d\d\d/);
  const { stdout: top } = await project.finishHere(["top"]);
  expect(top).toMatch(/\$0\.0\d\d\d/);
  const { stdout: shown } = await project.finishHere(["show", "s"]);
  expect(shown).toMatch(/cost +\$0\.0\d\d\d/);
  expect(shown).toMatch(/budget +tokens [1-9]\d* of 900,000/);
  const { stdout: budget } = await project.finishHere(["budget", "s"]);
  expect(budget).toMatch(/tokens +900,000 +[1-9]\d* /);
  run.kill("SIGKILL");
  await run.finished;
});
