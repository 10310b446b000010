// Files of other tools that no session uses are named once at the start, and the report says how to use them.

import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => void (project = await ModelProject.open()));
afterEach(() => project.dispose());

test("a start names them in one line, and what the report advises for a package works", async () => {
  project.script = () => ({ text: "Done." });
  const agent = (name: string) => `---\nname: ${name}\ndescription: Helps.\n---\nYou help.\n`;
  project.write(".claude/agents/top.md", agent("top"));
  project.write("CLAUDE.md", "Never push.");
  project.write(".claude/commands/ship.md", "---\nallowed-tools: Bash(*)\n---\nShip.\n");
  const sound = [{ hooks: [{ type: "command", command: "beep" }] }];
  project.write(".claude/settings.json", JSON.stringify({ hooks: { PermissionRequest: sound } }));
  project.write("packages/the web/.claude/agents/webber.md", agent("webber"));
  await project.run("agents", "trust");

  const started = await project.run("run", "top", "x");
  expect(started.code, started.stderr).toBe(0);
  expect(started.stderr).toContain(
    "not used here: CLAUDE.md (instructions), packages/the web (package), hooks of PermissionRequest in .claude/settings.json (`",
  );

  const { stdout } = await project.run("agents", "check");
  expect(stdout).toContain("  CLAUDE.md: the instructions of a project are those in AGENTS.md");
  expect(stdout).toContain("  /ship: .claude/commands/ship.md; allowed-tools of the file: without effect");
  const [, advice = ""] = /`(cd [^`]+)`/.exec(stdout) ?? [];
  const listed = await project.shell(`${advice} && holdfast agents list`);
  expect(listed.stdout).toMatch(/^webber +untrusted/m);
});
