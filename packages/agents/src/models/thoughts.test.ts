// Thoughts with their signatures, and marks for caches, over the turns of an agent.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage } from "@holdfast/runtime";
import { startScriptedModelServer, turns, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { resolveModel, type ModelEnvironment } from "./resolve-model.ts";

let folder: string;
let server: ScriptedModelServer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "thoughts-"));
  await writeFile(join(folder, "value.txt"), "one\n");
  const read = (path: string) => ({ name: "read_file", input: { path } });
  server = await startScriptedModelServer({
    script: turns([
      { reasoning: "I must read it.", text: "Reading.", toolCalls: [read("value.txt")] },
      { reasoning: "Once more.", toolCalls: [read("value.txt")] },
      { text: "one" },
    ]),
  });
});

afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

/** The bodies of the requests of one run. */
async function bodiesOf(env: ModelEnvironment): Promise<readonly string[]> {
  const model = () => resolveModel(env) ?? expect.fail("no model");
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  try {
    expect(await (await runtime.start(loop.agent(RECORD), "Read it.")).result()).toBe("one");
  } finally {
    await runtime.close();
  }
  return server.requests.map(({ body }) => JSON.stringify(body));
}

test("Anthropic gets each thought back with its signature, in its place, and the ends of the prompt are marked for its cache", async () => {
  await bodiesOf({ ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: server.url });
  const body = server.requests[2]?.body as {
    readonly system: readonly object[];
    readonly messages: readonly {
      readonly role: string;
      readonly content: readonly Record<string, unknown>[];
    }[];
  };
  const ephemeral = { type: "ephemeral" };
  expect(body.messages.map(({ role, content }) => [role, ...content.map(({ type }) => type)])).toEqual([
    ["user", "text"],
    ["assistant", "thinking", "text", "tool_use"],
    ["user", "tool_result"],
    ["assistant", "thinking", "tool_use"],
    ["user", "tool_result"],
  ]);
  const signature = expect.stringMatching(/^signature_[0-9a-f]+$/);
  expect(body.messages[1]?.content[0]).toEqual({ type: "thinking", thinking: "I must read it.", signature });
  expect(body.messages[3]?.content[0]).toEqual({ type: "thinking", thinking: "Once more.", signature });
  expect(body.system.at(-1)).toMatchObject({ cache_control: ephemeral });
  expect(body.messages[4]?.content.at(-1)).toMatchObject({ cache_control: ephemeral });
});

test("Google gets the signature of a call back with the call", async () => {
  const bodies = await bodiesOf({ GEMINI_API_KEY: "k", GOOGLE_GEMINI_BASE_URL: server.url });
  expect(bodies[2]?.match(/"thoughtSignature":"signature_/g)).toHaveLength(2);
});

test("a compatible server gets the thoughts back as text", async () => {
  const bodies = await bodiesOf({
    OPENAI_BASE_URL: server.openaiBaseUrl,
    HOLDFAST_MODEL: "compatible/any",
  });
  expect(bodies[2]).toContain('"reasoning_content":"I must read it."');
});
