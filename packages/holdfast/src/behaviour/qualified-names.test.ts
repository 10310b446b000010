// Files of several tools with one name: `TOOL:NAME` means the file of a tool wherever an agent's name may
// stand, and each copy is itself.

import { mkdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ModelProject, repliesOf } from "../testing/model-project.ts";

// A test starts up to a dozen commands.
vi.setConfig({ testTimeout: 180_000 });

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
  mkdirSync(project.home, { recursive: true });
  write(".holdfast/agents/reviewer.md", "reviewer", "Ours reviews.");
  write(".claude/agents/reviewer.md", "reviewer", "Claude reviews.");
  project.script = ({ system }) => ({ text: system.includes("Claude reviews.") ? "claude" : "ours" });
});
afterEach(() => project.dispose());

function write(path: string, name: string, prompt: string, more = ""): void {
  project.write(path, `---\nname: ${name}\ndescription: Works.\n${more}---\n${prompt}\n`);
}

async function ran(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await project.finish(args, { stdin: "" });
  expect(code, stderr).toBe(0);
  return stdout;
}

test("run, chat, schedule and agents check take the file of a tool, and its session continues with that file", async () => {
  await ran("agents", "trust");
  expect(await ran("run", "reviewer", "go")).toContain("ours");
  await ran("run", "claude:reviewer", "go", "--session", "c", "--conversation");
  await ran("signal", "c", "next_input", '"again"');
  await ran("resume", "c", "--park");
  expect((await ran("logs", "c")).match(/claude$/gm)).toHaveLength(2);
  expect(await ran("chat", "claude:reviewer", "go")).toContain("claude");
  await ran("schedule", "add", "0 3 * * *", "--run", "claude:reviewer", "--input", '"go"', "--id", "nightly");
  expect(await ran("schedule", "list", "--json")).toContain(".claude/agents/reviewer.md");
  const checked = await ran("agents", "check", "claude:reviewer");
  expect(checked).toContain(".claude/agents/reviewer.md: reviewer (claude), hidden");
  expect(checked).toContain("it runs as claude:reviewer");
  expect(checked).toContain("1 file, 0 refused");
  const { stderr } = await project.finish(["run", "codex:reviewer", "go"], { stdin: "" });
  expect(stderr).toContain("there is no agent codex:reviewer");
});

test("agents list shows by which name each of the copies runs", async () => {
  write(".claude/agents/planner.md", "planner", "Plans.");
  await ran("agents", "trust");
  const listed = JSON.parse(await ran("agents", "list", "--json")) as Record<string, unknown>[];
  expect(listed.map(({ name, status, qualifiedName }) => [name, status, qualifiedName])).toEqual([
    ["reviewer", "loaded", "holdfast:reviewer"],
    ["planner", "loaded", null],
    ["reviewer", "hidden", "claude:reviewer"],
  ]);
  const lines = (await ran("agents", "list")).split("\n");
  expect(lines.map((line) => line.split(" ")[0])).toEqual([
    "NAME",
    "reviewer",
    "planner",
    "claude:reviewer",
    "",
  ]);
});

test("an agent file names both copies as its agents, and starts each of them", async () => {
  write(
    ".holdfast/agents/lead.md",
    "lead",
    "You lead.",
    "holdfast: { agents: [reviewer, 'claude:reviewer'] }\n",
  );
  await ran("agents", "trust");
  let said = "";
  project.script = (conversation) => {
    const { system, messages } = conversation;
    if (!system.includes("You lead."))
      return { text: system.includes("Claude reviews.") ? "claude" : "ours" };
    if (repliesOf(conversation) > 0) {
      said = JSON.stringify(messages.flatMap(({ toolResults }) => toolResults));
      return { text: "Done." };
    }
    const calls = ["reviewer", "claude:reviewer"].map((agent) => ({
      name: "delegate",
      input: { agent, input: "Review." },
    }));
    return { toolCalls: calls };
  };
  await ran("run", "lead", "go", "--session", "l");
  expect(said).toMatch(/ours.*claude/);
  const { stdout } = await project.finish(["list", "--json"], { stdin: "" });
  expect(stdout).toContain('"claude:reviewer"');
});

test("a copy that starts itself by its qualified name is a circle", async () => {
  write(".claude/agents/lead.md", "lead", "Leads.", "tools: Task(codex:lead)\n");
  project.write(
    ".codex/agents/lead.toml",
    'name = "lead"\ndescription = "Leads."\ndeveloper_instructions = "Leads."\n',
  );
  write(".holdfast/agents/lead.md", "lead", "Leads.", "holdfast: { agents: ['claude:lead'] }\n");
  write(".holdfast/agents/loop.md", "loop", "Loops.", "holdfast: { agents: ['holdfast:loop'] }\n");
  await ran("agents", "trust");
  const listed = JSON.parse(await ran("agents", "list", "--json")) as { name: string; status: string }[];
  expect(listed.filter(({ status }) => status === "refused").map(({ name }) => name)).toEqual(["loop"]);
  const { stderr } = await project.finish(["agents", "check", "loop"], { stdin: "" });
  expect(stderr).toBe("");
  expect(await ran("run", "lead", "go")).toContain("ours");
});

test("two files of one name below one session are refused, and the advice makes two agents of them", async () => {
  const named = (agent: string) =>
    write(".claude/agents/reviewer.md", "reviewer", "Claude reviews.", `tools: Task(${agent})\n`);
  named("reviewer");
  await ran("agents", "trust");
  const { stderr } = await project.finish(["run", "claude:reviewer", "go"], { stdin: "" });
  expect(stderr).toContain('two files have the agent "reviewer"');
  expect(stderr).toContain("`holdfast:reviewer`");
  named("holdfast:reviewer");
  await ran("agents", "trust");
  expect(await ran("run", "claude:reviewer", "go")).toContain("claude");
});
