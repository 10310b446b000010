// Keys of models as declared secrets. The model task reads its key from the source of secrets of its runtime,
// whatever the environment has. The key is nowhere else.

import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { type SecretSource } from "@holdfast/system";
import { CanaryScan, startScriptedModelServer, turns, type ScriptedModelServer } from "@holdfast/testkit";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import type { ModelProvider } from "./model-provider.ts";
import { modelTask } from "./model-task.ts";
import { resolveModel, type KeyName, type ModelEnvironment } from "./resolve-model.ts";

const scan = new CanaryScan();
let server: ScriptedModelServer;
beforeEach(async () => {
  server = await startScriptedModelServer({ script: turns([{ text: "hello" }]), apiKeys: [scan.secret] });
});
afterEach(() => server.close());

function provider(env: ModelEnvironment, ...secrets: readonly KeyName[]): ModelProvider {
  return resolveModel(env, { secrets }) ?? expect.fail("no model");
}

/** One call in a session. Everything that the session has recorded and shown is searched for the key. */
async function call(model: ModelProvider, secrets: SecretSource) {
  const storage = new MemoryStorage();
  const task = modelTask(model, { retry: { maxAttempts: 1 } });
  const agent = defineAgent({
    name: "asks",
    tasks: [task],
    run: (ctx) => {
      ctx.appendEntry({ role: "user", content: "hi" });
      return ctx.scheduleTask(task, { system: "Help.", messages: ctx.conversation() });
    },
  });
  const runtime = createRuntime({ storage, secrets, agents: [agent], development: false });
  const handle = await runtime.start(agent);
  const settled = await handle.settled();
  scan.search("the outcome", inspect(settled, { depth: 9 }));
  scan.search("the journal", JSON.stringify(await storage.reader.journal(handle.sessionId, 0, 1_000)));
  scan.search("the provider", inspect(model, { depth: 9 }) + JSON.stringify(model));
  await runtime.close();
  expect(scan.found).toEqual([]);
  return JSON.stringify(settled);
}

describe("a declared secret is the key of a model", () => {
  test.each([
    ["anthropic", "ANTHROPIC_API_KEY", () => ({ ANTHROPIC_BASE_URL: server.url })],
    ["compatible", "OPENAI_API_KEY", () => ({ OPENAI_BASE_URL: server.openaiBaseUrl, HOLDFAST_MODEL: "m" })],
  ] as const)("the %s model takes it from there, and not from the environment", async (wire, name, env) => {
    const model = provider({ ...env(), [name]: "an-old-key-of-the-shell" }, name);
    expect(model.secrets).toEqual([name]);
    expect(await call(model, new Map([[name, scan.secret]]))).toContain("hello");
    const { headers } = server.requests[0]!;
    expect(headers[wire === "anthropic" ? "x-api-key" : "authorization"]).toMatch(scan.secret);
  });

  test("each call reads the key again, so that a new one counts at once", async () => {
    const model = provider({ ANTHROPIC_BASE_URL: server.url }, "ANTHROPIC_API_KEY");
    expect(await call(model, new Map([["ANTHROPIC_API_KEY", "the-key-before"]]))).toContain("model_auth");
    expect(await call(model, new Map([["ANTHROPIC_API_KEY", scan.secret]]))).toContain("hello");
  });

  test("a key that is not declared is taken from the environment", async () => {
    const model = provider({ ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: scan.secret });
    expect(model.secrets).toEqual([]);
    expect(await call(model, new Map())).toContain("hello");
  });

  test("a declared key decides between providers as a set variable does", () => {
    const chosen = (env: ModelEnvironment, ...secrets: readonly KeyName[]) => provider(env, ...secrets).model;
    expect(chosen({ OPENAI_API_KEY: "k" }, "ANTHROPIC_API_KEY")).toBe("claude-sonnet-5");
    expect(chosen({}, "OPENAI_API_KEY")).toBe("gpt-5.5");
  });

  test("an agent of a model declares the key, so that its command asks for it", () => {
    const model = provider({}, "ANTHROPIC_API_KEY");
    const { tasks } = new ModelLoop({ workspace: workspacesByRoot(), root: ".", model }).agent(RECORD);
    expect(tasks.flatMap(({ secrets = [] }) => secrets)).toEqual(["ANTHROPIC_API_KEY"]);
    const chosenLater = modelTask(() => model, { secrets: ["ANTHROPIC_API_KEY"] });
    expect(chosenLater.secrets).toEqual(["ANTHROPIC_API_KEY"]);
  });
});

describe("no error shows a declared key", () => {
  test("a secret without a value is named", async () => {
    const model = provider({ ANTHROPIC_BASE_URL: server.url }, "ANTHROPIC_API_KEY");
    expect(await call(model, new Map())).toContain("secret_missing");
  });

  test("a value that is no key is refused without being quoted", async () => {
    const model = provider({ ANTHROPIC_BASE_URL: server.url }, "ANTHROPIC_API_KEY");
    const outcome = await call(model, new Map([["ANTHROPIC_API_KEY", `${scan.secret} twice`]]));
    expect(outcome).toContain("model_auth");
  });

  test("a server that quotes the key and a piece of it does not get them into the error", async () => {
    const quoting = createServer((_request, response) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(
        JSON.stringify({
          type: "error",
          error: {
            type: "invalid_request_error",
            message: `bad ${scan.secret}, ${scan.secret.slice(0, 20)}…`,
          },
        }),
      );
    });
    await new Promise<void>((resolve) => quoting.listen(0, "127.0.0.1", resolve));
    const { port } = quoting.address() as AddressInfo;
    const model = provider({ ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` }, "ANTHROPIC_API_KEY");
    const outcome = await call(model, new Map([["ANTHROPIC_API_KEY", scan.secret]]));
    quoting.close();
    expect(outcome).toMatch(/refused the request \(400\): bad \[secret\], \[secret\]/);
    expect(outcome).not.toContain(scan.secret.slice(0, 20));
  });
});
