// Several external agents under one budget. A budget that each of them reads at its start alone is spent once
// by each.

import { setTimeout as delay } from "node:timers/promises";
import { createRuntime, defineAgent, local, MemoryStorage } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { startScriptedModelServer } from "@holdfast/testkit";
import { releaseClaim } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";

import { externalAgent } from "../external-agent.ts";
import type { ExternalAgentProtocol } from "../external-agent-protocol.ts";
import { RemoteTurn } from "../../adapters/remote/remote-turn.ts";

/** The tokens of one request to the model. */
const REQUEST = 1_000;

/** An agent that asks its model without end, and counts the requests. */
class Worker {
  requests = 0;
  readonly program: { -readonly [part in keyof ExternalAgentProtocol]: ExternalAgentProtocol[part] };

  constructor(name: string, ends = Infinity) {
    const work = (): Promise<RemoteTurn> =>
      Promise.resolve(
        new RemoteTurn(async ({ emit, signal }) => {
          emit({ type: "session_started", model: "own/model", boundId: name });
          while (!signal.aborted && this.requests < ends) {
            this.requests++;
            await delay(10);
            emit({
              type: "usage",
              usage: { model: "own/model", inputTokens: REQUEST - 10, outputTokens: 10 },
            });
          }
          return signal.aborted ? { type: "aborted" } : { type: "answered", text: "Done." };
        }),
      );
    this.program = {
      name,
      capabilities: () => ({ steer: "none", followUp: "none", resume: "id", usage: "message", model: false }),
      find: () => Promise.resolve({ program: process.execPath, version: "1" }),
      locate: () => process.execPath,
      start: work,
      sendMessage: work,
      resume: work,
      ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
      endLost: () => Promise.resolve(),
    };
  }
}

test("three agents of a tree spend one budget, and at most what was under way at its end", async () => {
  const workers = ["a", "b", "c"].map((name) => new Worker(name));
  const agents = workers.map(({ program }) =>
    externalAgent(program, { folder: process.cwd(), permissionModes: ["default"] }),
  );
  const lead = defineAgent({
    name: "lead",
    agents,
    run: async (ctx) => {
      const children = agents.map((agent) => ctx.spawnAgent(local(agent), "work"));
      await Promise.all(children.map((child) => ctx.waitForChild(child)));
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const handle = await runtime.start(lead, undefined, { budget: { maxTokens: 20 * REQUEST } });
  const session = () => handle.session();
  // It is charged while they work, and not at the ends of their turns.
  await expect.poll(async () => (await session()).account!.spent.tokens).toBeGreaterThan(2 * REQUEST);
  await expect
    .poll(async () => (await session()).account!.spent.tokens, { timeout: 30_000 })
    .toBeGreaterThanOrEqual(20 * REQUEST);
  let before = -1;
  const made = (): number => workers.reduce((sum, { requests }) => sum + requests, 0);
  while (before !== made()) {
    before = made();
    await delay(200);
  }
  // One request of each was under way, and each had begun one more before its stop arrived.
  expect(made()).toBeLessThanOrEqual(20 + workers.length * 2);
  await expect.poll(async () => (await session()).account!.spent.tokens).toBe(made() * REQUEST);
  await runtime.close();
});

/** An agent that asks its model once by the gateway of its turn, when it is told to. */
class Asker extends Worker {
  readonly status: Promise<number>;

  constructor(name: string, upstream: string, go: Promise<void>) {
    super(name);
    const { promise, resolve } = Promise.withResolvers<number>();
    this.status = promise;
    const key = { api: "anthropic", variable: "KEY", key: "sk-canary-0123456789", upstream } as const;
    this.program.keyAccess = () => ({ byGateway: [key], proxies: {}, held: ["KEY"], readable: [] });
    this.program.start = ({ gateway }) =>
      Promise.resolve(
        new RemoteTurn(async ({ emit, signal }) => {
          emit({ type: "session_started", model: "own/model", boundId: name });
          await go;
          const { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: token } = gateway!.env;
          const answer = await fetch(`${url}/v1/messages`, {
            method: "POST",
            headers: { "x-api-key": token!, "content-type": "application/json", "anthropic-version": "1" },
            body: JSON.stringify({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "hi" }] }),
          });
          resolve(answer.status);
          return signal.aborted ? { type: "aborted" } : { type: "answered", text: "Done." };
        }),
      );
  }
}

test("a request is not sent once another agent of the tree has used up the budget", async () => {
  const server = await startScriptedModelServer({ script: () => ({ text: "Hello." }) });
  const { promise: go, resolve: tell } = Promise.withResolvers<void>();
  const workers = [new Worker("a"), new Asker("b", server.url, go)];
  const agents = workers.map(({ program }) =>
    externalAgent(program, { folder: process.cwd(), permissionModes: ["default"] }),
  );
  const lead = defineAgent({
    name: "lead",
    agents,
    run: async (ctx) => {
      const children = agents.map((agent) => ctx.spawnAgent(local(agent), "work"));
      await Promise.all(children.map((child) => ctx.waitForChild(child)));
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const handle = await runtime.start(lead, undefined, { budget: { maxTokens: 5 * REQUEST } });
  await expect
    .poll(async () => (await handle.session()).account!.spent.tokens)
    .toBeGreaterThanOrEqual(5 * REQUEST);
  tell();
  expect(await (workers[1] as Asker).status).toBe(409);
  expect(server.requests).toEqual([]);
  await runtime.close();
  await server.close();
});

/** An agent that waits for the answer to its question. */
class Asking extends Worker {
  readonly ended: Promise<string>;

  constructor(name: string) {
    super(name);
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    this.program.start = () =>
      Promise.resolve(
        new RemoteTurn(async ({ emit, signal }) => {
          emit({ type: "session_started", model: "own/model", boundId: name });
          const request = { requestId: "r", toolCallId: "c", tool: "shell", input: { command: "date" } };
          emit({ type: "permission_request", request });
          await new Promise((aborted) => signal.addEventListener("abort", aborted, { once: true }));
          resolve("aborted");
          return { type: "aborted" };
        }),
      );
  }
}

test("an agent that waits ends its turn once another agent of the tree has used up the budget", async () => {
  const asking = new Asking("b");
  const agents = [new Worker("a"), asking].map(({ program }) =>
    externalAgent(program, { folder: process.cwd(), permissionModes: ["default"] }),
  );
  const lead = defineAgent({
    name: "lead",
    agents,
    run: async (ctx) => {
      const children = agents.map((agent) => ctx.spawnAgent(local(agent), "work"));
      await Promise.all(children.map((child) => ctx.waitForChild(child)));
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage() });
  await runtime.start(lead, undefined, { budget: { maxTokens: 5 * REQUEST } });
  expect(await asking.ended).toBe("aborted");
  await runtime.close();
});

test("usage is charged once, also where its process is gone in between", async () => {
  const folder = process.cwd();
  const agentOf = ({ program }: Worker) => externalAgent(program, { folder, permissionModes: ["default"] });
  const storage = new MemoryStorage();
  const first = createRuntime({ storage });
  const { sessionId } = await first.start(agentOf(new Worker("a")), "work", {
    budget: { maxTokens: 100 * REQUEST },
  });
  const spent = async () => (await storage.reader.session(sessionId))!.account!.spent.tokens;
  await expect.poll(spent).toBeGreaterThanOrEqual(2 * REQUEST);
  vanishRuntime(first);
  await delay(100);
  const counted = await spent();
  await releaseClaim(storage, sessionId);
  const next = createRuntime({ storage, agents: [agentOf(new Worker("a", 3))] });
  expect(await (await next.resume(sessionId)).result()).toBe("Done.");
  expect(await spent()).toBe(counted + 3 * REQUEST);
  await next.close();
});
