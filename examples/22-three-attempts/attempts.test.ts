// The lead's model is scripted, and the programs of its agents are fakes that speak their protocols.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { startScriptedModelServer, type Conversation, type Reply } from "holdfast/testing";
import { expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ExternalProject } from "../../packages/holdfast/src/testing/external-project.ts";

const AGENTS = ["claude-code", "codex", "pi"];

/** A model that lets three agents write a file each, and merges the branch of the second one. */
function script({ messages }: Conversation): Reply {
  const said = messages.filter(({ role }) => role === "assistant").length;
  if (said === 0)
    return {
      toolCalls: AGENTS.map((agent) => ({
        name: "delegate",
        input: { agent, input: { text: `write:${agent}.txt`, worktree: true } },
      })),
    };
  const results = JSON.stringify(messages.flatMap(({ toolResults }) => toolResults));
  const branches = [...results.matchAll(/on the git branch (holdfast\/[\w-]+)/g)].map(([, branch]) => branch);
  if (said > 1) return { text: `The best of ${branches.length} is the second.` };
  return { toolCalls: [{ name: "shell", input: { command: `git merge --no-edit ${branches[1]}` } }] };
}

test(
  "three agents work on one issue in worktrees, and the best one is merged",
  { ...ofCampaign, timeout: 180_000 },
  async () => {
    const project = new ExternalProject();
    const server = await startScriptedModelServer({ script });
    try {
      const git = (...args: string[]) => execFileSync("git", args, { cwd: project.folder, encoding: "utf8" });
      cpSync(new URL("agents", import.meta.url), project.path(".holdfast/agents"), { recursive: true });
      writeFileSync(project.path(".gitignore"), "*\n!.gitignore\n!codex.txt\n!pi.txt\n!claude-code.txt\n");
      git("init", "--quiet", "--initial-branch=main");
      git("config", "user.name", "Test");
      git("config", "user.email", "test@example.invalid");
      git("add", "--all");
      git("commit", "--quiet", "-m", "base");
      const run = (...args: string[]) =>
        project.startHere(args, { HOLDFAST_SCRIPTED_MODEL_URL: server.url }).finished;
      expect((await run("agents", "trust")).code).toBe(0);
      const { code, stdout, stderr } = await run("run", "lead", "Fix it.", "--session", "issue");
      expect(code, stderr).toBe(0);
      expect(stdout).toBe("The best of 3 is the second.\n");
      expect((await run("merge", "issue")).code).toBe(0);
      expect(AGENTS.map((agent) => existsSync(project.path(`${agent}.txt`)))).toEqual([false, true, false]);
    } finally {
      await server.close();
      await project.dispose();
    }
  },
);
