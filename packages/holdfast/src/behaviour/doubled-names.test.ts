// A name that an agent file and an external agent share is an error that names both, wherever the name is
// used.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../testing/holdfast-process.ts";

let project: Project;
let home: string;
beforeEach(async () => {
  project = new Project();
  home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  mkdirSync(join(home, ".holdfast/profiles"), { recursive: true });
  writeFileSync(
    join(home, ".holdfast/profiles/writer.yaml"),
    'description: Writes.\na2a: { url: "https://a.example" }\n',
    { mode: 0o600 },
  );
  agentFile("writer");
});
afterEach(async () => {
  await project.dispose();
  rmSync(home, { recursive: true, force: true });
});

function agentFile(name: string, more = ""): void {
  project.write(
    `.holdfast/agents/${name}.md`,
    `---\nname: ${name}\ndescription: Works.\n${more}---\nYou work.\n`,
  );
}

const run = (...args: string[]) =>
  project.finish(args, { stdin: "", env: { HOME: home, XDG_DATA_HOME: undefined } });

test("run, chat, agents show and delegate refuse a doubled name, and name both agents and how to choose one", async () => {
  agentFile("lead", "holdfast: { agents: [writer] }\n");
  await run("agents", "trust");
  const calls = [
    ["run", "writer", "go"],
    ["chat", "writer", "go"],
    ["agents", "show", "writer"],
    ["run", "lead", "go"],
  ];
  for (const call of calls) {
    const { code, stderr } = await run(...call);
    expect(code, call.join(" ")).toBe(3);
    expect(stderr).toContain("an agent file and an external agent have the name writer");
    expect(stderr).toContain(project.path(".holdfast/agents/writer.md"));
    expect(stderr).toContain(join(home, ".holdfast/profiles/writer.yaml"));
    expect(stderr).toContain("external:writer");
  }
  expect((await run("agents", "show", ".holdfast/agents/writer.md")).stdout).toContain("You work.");
  expect((await run("agents", "show", "external:writer")).stdout).toContain("https://a.example");
});

test("agents list shows both as doubled, and a program of this machine as the other one", async () => {
  agentFile("codex");
  await run("agents", "trust");
  const { stdout } = await run("agents", "list", "--json");
  const listed = JSON.parse(stdout) as { name: string; status: string; others: string[] }[];
  expect(listed.map(({ name, status, others }) => [name, status, others])).toEqual([
    ["codex", "doubled", ["external:codex"]],
    ["writer", "doubled", [join(home, ".holdfast/profiles/writer.yaml")]],
    ["writer", "doubled", [project.path(".holdfast/agents/writer.md")]],
  ]);
});

test("a file of a project that is not trusted doubles no name", async () => {
  const { stderr } = await run("agents", "show", "writer");
  expect(stderr).not.toContain("have the name writer");
});

test("agents show and check take one agent of several tools: ours, or the one of a tool", async () => {
  agentFile("reviewer");
  project.write(".claude/agents/reviewer.md", "---\nname: reviewer\ndescription: x\n---\nClaude reviews.\n");
  await run("agents", "trust");
  expect((await run("agents", "show", "reviewer")).stdout).toContain("You work.");
  expect((await run("agents", "show", "claude:reviewer")).stdout).toContain("Claude reviews.");
  expect((await run("run", "claude:reviewer", "go")).stderr).not.toContain("no agent");
});
