// The agent files of this example, run by the command over a scripted model server and a real repository.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Conversation, Reply } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ModelProject } from "../../packages/holdfast/src/testing/model-project.ts";

const AGENTS = new URL("./agents", import.meta.url).pathname;
/** The file that each of the three agents writes. */
const FILES = {
  "You change the code": ["greet.txt", "Good day\n"],
  "You write the tests": ["greet.test.txt", "expects Good day\n"],
  "You write the documentation": ["README.md", "It greets politely.\n"],
} as const;

let project: ModelProject;

beforeEach(async () => {
  project = await ModelProject.open();
  project.script = script;
  writeFileSync(project.path("greet.txt"), "Hi\n");
  writeFileSync(project.path(".gitignore"), ".holdfast/\n");
  git("init", "--quiet", "--initial-branch=main");
  git("config", "user.name", "Test");
  git("config", "user.email", "test@example.invalid");
  git("add", "--all");
  git("commit", "--quiet", "-m", "base");
  cpSync(AGENTS, project.path(".holdfast/agents"), { recursive: true });
});

afterEach(() => project.dispose());

function git(...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: project.folder, encoding: "utf8" });
}

async function ran(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await project.run(...args);
  expect(code, stderr).toBe(0);
  return stdout;
}

function script({ system, messages }: Conversation): Reply {
  const said = messages.filter(({ role }) => role === "assistant").length;
  const own = Object.entries(FILES).find(([prompt]) => system.includes(prompt))?.[1];
  if (own !== undefined) {
    const [path, content] = own;
    return said === 0 ? { toolCalls: [{ name: "write_file", input: { path, content } }] } : { text: "Done." };
  }
  if (said === 0)
    return {
      toolCalls: ["coder", "tester", "writer"].map((agent) => ({
        name: "delegate",
        input: { agent, input: "Make the greeting polite." },
      })),
    };
  const results = messages.flatMap(({ toolResults }) => toolResults);
  const branches = [...JSON.stringify(results).matchAll(/on the git branch (holdfast\/[\w-]+)/g)].map(
    ([, branch = ""]) => branch,
  );
  const command = branches[said - 1];
  return command === undefined
    ? { text: "The greeting is polite." }
    : { toolCalls: [{ name: "shell", input: { command: `git merge --no-edit ${command}` } }] };
}

test(
  "three agents work in worktrees, the lead merges them over a kill, and a person takes the result over",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    await ran("agents", "trust");
    const args = ["run", "lead", "Make the greeting polite.", "--session", "greeting"];
    const running = project.start(args, { stdin: "" });
    await running.says("✓ Done.");
    running.kill("SIGKILL");
    await running.finished;
    expect(readFileSync(project.path("greet.txt"), "utf8")).toBe("Hi\n");
    await project.run("resume", "greeting"); // It may have ended before the kill.
    expect(await ran("result", "greeting")).toBe("The greeting is polite.\n");

    await ran("merge", "greeting");
    for (const [path, content] of Object.values(FILES))
      expect(readFileSync(project.path(path), "utf8")).toBe(content);
    // The work of all four is in the project, so nothing holds the worktrees.
    const worktrees = JSON.parse(await ran("worktrees", "list", "--json")) as readonly {
      readonly session: string;
      readonly unpushed: number;
      readonly path: string;
    }[];
    expect(worktrees.map(({ unpushed }) => unpushed)).toEqual([0, 0, 0, 0]);
    await ran("worktrees", "remove", "greeting");
    expect(worktrees.map(({ path }) => existsSync(path))).toEqual([false, true, true, true]);
  },
);
