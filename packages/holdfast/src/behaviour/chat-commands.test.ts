// Commands of other tools in a conversation: a typed name sends the text of its file, and gives no right.

import { existsSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;
beforeEach(async () => {
  project = await ModelProject.open();
  project.write(".claude/agents/helper.md", "---\nname: helper\ndescription: Helps.\n---\nYou help.\n");
  project.write(
    ".claude/commands/ship.md",
    "---\ndescription: Ships a version.\nallowed-tools: Bash(*)\n---\nShip $1 with care. !`touch ran`\n",
  );
});
afterEach(() => project.dispose());

const lastUser = (messages: readonly { readonly role: string }[]): string =>
  JSON.stringify(messages.filter(({ role }) => role === "user").at(-1));

test("a name sends the text with its arguments, runs nothing of it, and allows nothing", async () => {
  const said: string[] = [];
  project.script = (conversation) => {
    said.push(lastUser(conversation.messages));
    return repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "shell", input: { command: "touch ran" } }] }
      : { text: "Done." };
  };
  await project.run("agents", "trust");
  const { stderr, code } = await project.finish(["chat", "helper"], { stdin: "/ship 'v 2'\nn\n/help\n" });
  expect(code, stderr).toBe(0);
  expect(said[0]).toContain("Ship v 2 with care. !`touch ran`");
  expect(said[0]).toContain("were not run");
  expect(stderr).toContain("/ship is the text of .claude/commands/ship.md");
  expect(stderr).toContain("allowed-tools of the file: without effect");
  expect(stderr).toContain("Allow shell");
  expect(stderr).toContain("/ship  Ships a version.");
  expect(existsSync(project.path("ran"))).toBe(false);
});

test("a name of no file, one of a project without trust, and one while a question is open send nothing", async () => {
  const said: string[] = [];
  project.script = (conversation) => {
    said.push(lastUser(conversation.messages));
    return repliesOf(conversation) === 0
      ? { toolCalls: [{ name: "shell", input: { command: "touch ran" } }] }
      : { text: "Done." };
  };
  const untrusted = await project.finish(["chat", ".claude/agents/helper.md"], { stdin: "/ship 2\n/shp\n" });
  expect(untrusted.stderr).toContain("you have not trusted this project");
  expect(untrusted.stderr).toContain("there is no command /shp; did you mean ship?");
  expect(said).toEqual([]);

  await project.run("agents", "trust");
  const asked = await project.finish(["chat", "helper"], { stdin: "begin\n/ship 2\nn\n" });
  expect(asked.stderr).toContain("a command is no answer");
  expect(said.join("\n")).not.toContain("Ship 2");
  expect(existsSync(project.path("ran"))).toBe(false);
});
