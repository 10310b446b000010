// The list of kept rules shows each rule as it counts.

import { mkdirSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.dispose());

test("a rule is listed with all of its blanks, because they are a part of it", async () => {
  const rule = { decision: "allow", tool: "shell", pattern: "touch 'x  y\n'" };
  const kept = { ...rule, session: "s", principal: "ada", at: 0 };
  mkdirSync(project.path("home/.local/share/holdfast"), { recursive: true, mode: 0o700 });
  const rules = { projects: { [project.folder]: [kept] } };
  writeFileSync(project.path("home/.local/share/holdfast/permission-rules.json"), JSON.stringify(rules), {
    mode: 0o600,
  });
  const env = { HOME: project.path("home"), XDG_DATA_HOME: undefined };
  const { stdout, stderr } = await project.finish(["rules", "list"], { stdin: "", env });
  expect(stdout, stderr).toContain("allow shell(touch 'x  y\\n')");
});
