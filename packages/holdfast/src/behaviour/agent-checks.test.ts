// `holdfast agents check` says what a run does: with a folder, and with rules that have changed since they were
// trusted.

import { afterEach, beforeEach, expect, test } from "vitest";
import { shownPath } from "../agents/agent-places.ts";
import { expectError } from "../testing/expect-error.ts";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => void (project = await ModelProject.open()));
afterEach(() => project.dispose());

const run = (...args: string[]) => project.run(...args);
const agent = (name: string): string => `---\nname: ${name}\ndescription: Helps.\n---\nYou help.\n`;

test("a folder of agent files is checked, and one without any is an error", async () => {
  project.write(".claude/agents/team/one.md", agent("one"));
  project.write("collection/two.md", agent("two"));
  project.write("collection/README.md", "Agents.\n");
  project.write("empty/a.txt", "x");
  for (const folder of [".claude/agents", "."])
    expect((await run("agents", "check", folder)).stdout).toContain("one (claude), loaded");
  const collection = await run("agents", "check", "collection");
  expect(collection.stdout).toContain("two (holdfast), loaded");
  expect([collection.code, collection.stdout]).toEqual([3, expect.stringContaining("has no front matter")]);
  expectError(await run("agents", "check", "empty"), 2, "E_FILE_NOT_FOUND", ["no agent file in this folder"]);
});

test("a rule that allows is off after a change until it is trusted, and a check says so", async () => {
  const settings = (...allow: string[]): void =>
    project.write(".claude/settings.json", JSON.stringify({ permissions: { allow } }));
  project.write(".claude/agents/doer.md", agent("doer"));
  settings("Bash(git log:*)");
  await run("agents", "trust");
  for (const wanted of [[], ["doer"], [".claude/agents/doer.md"]])
    expect((await run("agents", "check", ...wanted)).stdout).toContain("allow shell(git log:*)");
  settings("Bash(git log:*)", "Bash(curl:*)");
  const off =
    ".claude/settings.json: permissions.allow: ignored because you have not trusted this project with";
  for (const wanted of [[], ["doer"], [".claude/agents/doer.md"]])
    expect((await run("agents", "check", ...wanted)).stdout).toContain(off);
  const note = ".claude/settings.json allows is not used: it has changed since you trusted this project";
  expect((await run("run", "doer", "x")).stderr).toContain(note);
  await run("agents", "trust");
  expect((await run("run", "doer", "x")).stderr).not.toContain(note);
  expect((await run("agents", "check")).stdout).toContain("allow shell(curl:*)");
});

test("the current folder has a name", () => {
  expect(shownPath("/p/a", { cwd: "/p/a", env: {} })).toBe(".");
});
