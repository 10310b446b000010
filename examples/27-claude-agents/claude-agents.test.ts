import { cpSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startScriptedModelServer, type ScriptedModelServer } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

let project: Project;
let server: ScriptedModelServer;
beforeEach(async () => {
  project = new Project();
  const folder = ".claude/agents";
  cpSync(fileURLToPath(new URL(folder, import.meta.url)), project.path(folder), { recursive: true });
  server = await startScriptedModelServer({
    script: ({ system, messages }) => {
      if (system.includes("You find code.")) return { text: "src/price.ts:3" };
      const [result] = messages.at(-1)?.toolResults ?? [];
      return result === undefined
        ? { toolCalls: [{ name: "delegate", input: { agent: "code-searcher", input: "Where are prices?" } }] }
        : { text: `1. Change ${result.text.trim()}.` };
    },
  });
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

test(
  "agents of Claude Code run as they are, and each field without effect is reported",
  ofCampaign,
  async () => {
    const env = { HOME: project.path("home"), HOLDFAST_SCRIPTED_MODEL_URL: server.url };
    const run = (...args: string[]) => project.start(args, { stdin: "", env }).finished;
    await run("agents", "trust");
    const check = await run("agents", "check");
    expect(check.code, check.stderr).toBe(0);
    expect(check.stdout).toMatch(/color: ignored/);
    expect(check.stdout).toMatch(/memory: ignored/);
    expect(check.stdout).toContain("not available: WebSearch");
    const { code, stdout, stderr } = await run("run", "architect", "Plan a cache for prices.");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("1. Change src/price.ts:3.");
  },
);
