// The output of `holdfast run` for an agent of a model, by the real command.

import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
  writeFileSync(
    project.path("editor.md"),
    "---\nname: editor\ndescription: Edits.\ntools: Read, Edit, Bash\nholdfast:\n  approvals:\n    allow: [edit_file, shell]\n---\nYou edit.\n",
  );
});
afterEach(() => project.dispose());

test("a run shows texts, calls and changes, and -v every recorded event", async () => {
  const calls = [
    { name: "edit_file", input: { path: "value.txt", oldText: "one\n", newText: "two\n" } },
    { name: "shell", input: { command: "seq 9" } },
  ];
  project.script = (conversation) => {
    const call = calls[repliesOf(conversation)];
    return call === undefined ? { text: "It is two now." } : { toolCalls: [call] };
  };
  writeFileSync(project.path("value.txt"), "one\n");
  const { code, stdout, stderr } = await project.run("run", "editor.md", "Make it two.");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("It is two now.\n");
  const shown = [
    "> Make it two.",
    "▸ Edit value.txt  +1 -1",
    "    - one",
    "    + two",
    "  ✓ value.txt: changed at line 1",
    "▸ Run seq 9",
    "  ✓ 1  (9 lines)",
    "    2",
    "    3",
    "It is two now.",
  ];
  expect(stderr).toContain(shown.join("\n"));
  expect(stderr).toMatch(/✓ completed in [\d.]+ m?s  [\d,]+ tokens  \$0\.0\d+\n/);
  expect(stderr).not.toMatch(/prepare|turn 1|#\d/);
  writeFileSync(project.path("value.txt"), "one\n");
  expect((await project.run("run", "editor.md", "Make it two.", "-v")).stderr).toMatch(
    /✓ prepare #0[^]*turn 1/,
  );
});

test("an answer of a keeps the rule of its question for the session", async () => {
  writeFileSync(
    project.path("asker.md"),
    "---\nname: asker\ndescription: Asks.\ntools: Bash\n---\nYou ask.\n",
  );
  project.script = (conversation) =>
    repliesOf(conversation) < 2
      ? { toolCalls: [{ name: "shell", input: { command: "touch counted.txt" } }] }
      : { text: "Counted twice." };
  const running = project.startOnTerminal(["run", "asker.md", "Count."]);
  await running.says("or a to allow shell(");
  running.type("a");
  const { code, stdout } = await running.finished;
  expect(code, stdout).toBe(0);
  expect(stdout.match(/type y or n/g)).toHaveLength(1);
  expect(stdout).toContain("Counted twice.");
});
