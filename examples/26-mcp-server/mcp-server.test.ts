import { cpSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startScriptedModelServer, type ScriptedModelServer } from "holdfast/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../../packages/holdfast/src/testing/holdfast-process.ts";

let project: Project;
let server: ScriptedModelServer;
beforeEach(async () => {
  project = new Project({ fromSources: true });
  for (const name of [".holdfast/agents", "prices-server.mjs"])
    cpSync(fileURLToPath(new URL(name, import.meta.url)), project.path(name), { recursive: true });
  server = await startScriptedModelServer({
    script: ({ messages }) => {
      const [result] = messages.at(-1)?.toolResults ?? [];
      return result === undefined
        ? { toolCalls: [{ name: "mcp__prices__price", input: { thing: "tea" } }] }
        : { text: `Tea costs ${result.text.trim()}.` };
    },
  });
});
afterEach(async () => {
  await project.dispose();
  await server.close();
});

test("the agent looks a price up by its own MCP server", ofCampaign, async () => {
  const env = { HOME: project.path("home"), HOLDFAST_SCRIPTED_MODEL_URL: server.url };
  const run = (...args: string[]) => project.start(args, { stdin: "", env }).finished;
  await run("agents", "trust");
  const { code, stdout, stderr } = await run("run", "shopkeeper", "What does tea cost?");
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("Tea costs 250 cents");
});
