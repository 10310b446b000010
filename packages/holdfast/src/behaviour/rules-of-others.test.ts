// The rules of an agent and of the tool whose file it is, by the real command against a scripted model server.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
});

afterEach(() => project.dispose());

const run = (...args: string[]) => project.run(...args);

function put(path: string, content: string | object): void {
  const at = project.path(path);
  mkdirSync(dirname(at), { recursive: true });
  writeFileSync(at, typeof content === "string" ? content : JSON.stringify(content));
}

/** An agent of Claude Code. */
function agent(frontMatter: string): void {
  put(".claude/agents/doer.md", `---\nname: doer\ndescription: Does.\n${frontMatter}---\nYou help.\n`);
}

interface Call {
  readonly name: string;
  readonly input: object;
}

const shell = (command: string): Call => ({ name: "shell", input: { command } });

/** Runs an agent whose model makes the calls one after the other. @returns the texts of the conversation. */
async function carryOut(name: string, ...calls: readonly Call[]): Promise<string> {
  project.script = (conversation) => {
    const call = calls[repliesOf(conversation)];
    return call === undefined ? { text: "Done." } : { toolCalls: [call] };
  };
  const { code, stdout, stderr } = await run("run", name, "Go.", "--park");
  expect(code, stderr).toBe(0);
  return stdout + stderr;
}

test("a denied command runs in no spelling, and another one runs without a question", async () => {
  agent("disallowedTools: Bash(touch:*)\nholdfast: { approvals: { allow: [Bash] } }\n");
  await run("agents", "trust");
  const spellings = [
    "X=1 touch f",
    "timeout 5 touch f",
    "if true; then touch f; fi",
    '"touch" f',
    "\\touch f",
  ];
  const said = await carryOut(
    "doer",
    ...[...spellings, "echo f | xargs -n 1 touch f", "sh -c 'touch f'", "/usr/bin/touch f"].map(shell),
    shell("echo ran > other"),
  );
  expect(said).toContain("Done.");
  expect(said).toContain("A rule forbids it");
  expect(existsSync(project.path("f"))).toBe(false);
  expect(existsSync(project.path("other"))).toBe(true);
  const asked = await carryOut("doer", shell("$(echo touch) f"));
  expect(asked).toContain("Allow shell: $(echo touch) f?");
  expect(existsSync(project.path("f"))).toBe(false);
});
