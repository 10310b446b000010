import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startScriptedModelServer, type Conversation, type ScriptedModelServer } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

const FILE = fileURLToPath(new URL("reviewer.md", import.meta.url));
let project: Project;
let server: ScriptedModelServer;
let last: Conversation | undefined;
beforeEach(async () => {
  project = new Project({ fromSources: true });
  server = await startScriptedModelServer({
    script: (conversation) => {
      last = conversation;
      const isFirst = !conversation.messages.some(({ role }) => role === "assistant");
      const shell = (command: string) => ({ name: "shell", input: { command } });
      return isFirst
        ? { toolCalls: [shell("git diff"), shell("git commit -am done")] }
        : { text: "price.txt:1: 0 is no price." };
    },
  });
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

test("the reviewer is at most 15 lines, reads the changes, and cannot commit them", async () => {
  expect(readFileSync(FILE, "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(15);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: project.path(".") });
  git("init", "-q");
  writeFileSync(project.path("price.txt"), "250\n");
  git("add", "price.txt");
  git("commit", "-qm", "price");
  writeFileSync(project.path("price.txt"), "0\n");
  const env = { HOME: project.path("home"), HOLDFAST_SCRIPTED_MODEL_URL: server.url };
  const { code, stdout, stderr } = await project.start(["run", FILE, "Review."], { stdin: "", env }).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("0 is no price");
  const [diff, commit] = last?.messages.flatMap(({ toolResults }) => toolResults) ?? [];
  expect(diff?.text).toContain("-250\n+0");
  expect(commit?.text).not.toContain("exit code 0");
  expect(git("log", "--oneline").toString().trim().split("\n")).toHaveLength(1);
});
