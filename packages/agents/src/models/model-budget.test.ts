// Budgets over real model calls. The scripted server fails, falls silent and is cut off, sessions crash and
// ask for children, and the account never exceeds its limit.

import type { Account } from "@holdfast/core";
import {
  createRuntime,
  defineAgent,
  local,
  type Agent,
  MemoryStorage,
  type Runtime,
} from "@holdfast/runtime";
import { startScriptedModelServer, type ModelFault, type ScriptedModelServer } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { modelTask } from "./model-task.ts";
import { modelPrices } from "./prices.ts";
import { resolveModel, scriptedModel } from "./resolve-model.ts";

const IN_MICRO = 3;
const OUT_MICRO = 15;
const prices = modelPrices(({ model, inputTokens, outputTokens }) =>
  model.startsWith("scripted/") ? inputTokens * IN_MICRO + outputTokens * OUT_MICRO : undefined,
);
const RETRY = { initialDelayMs: 1, maxDelayMs: 5 };
const CALLS = 5;

let server: ScriptedModelServer;
let runtime: Runtime;
let storage: MemoryStorage;

beforeEach(async () => {
  storage = new MemoryStorage();
  server = await startScriptedModelServer({
    script: ({ messages }) => ({ text: `${"word ".repeat(messages.length * 40)}.` }),
  });
});
afterEach(async () => {
  await runtime.close();
  await server.close();
});

/** A conversation of some calls, as long as it takes; `who` makes it another one. */
function talker(maxOutputTokens = 2_000, provider = scriptedModel(server.url)): Agent<string, string> {
  const model = modelTask(provider, { retry: RETRY });
  return defineAgent({
    name: "talker",
    tasks: [model],
    run: async (ctx, who: string) => {
      for (let n = 0; n < CALLS; n++) {
        ctx.appendEntry({ role: "user", content: `${who}, say more (${n}): ${"please ".repeat(30)}` });
        const { text } = await ctx.scheduleTask(model, {
          system: "You talk.",
          messages: ctx.conversation(),
          maxConversationTokens: 20_000,
          maxOutputTokens,
        });
        ctx.appendEntry({ role: "assistant", content: { text, toolCalls: [] } });
      }
      return who;
    },
  });
}

function family(child = talker()): Agent {
  return defineAgent({
    name: "family",
    agents: [child],
    run: async (ctx) =>
      Promise.all(["Ada", "Bob", "Cyd"].map((who) => ctx.waitForChild(ctx.spawnAgent(local(child), who)))),
  });
}

function open(...agents: readonly Agent[]): Runtime {
  return createRuntime({ storage, prices, agents });
}

/** Look at an account after every commit, and tell what is wrong with it: B1, B2, budget-3. */
function watchAccount(sessionId: string): { last: Account | undefined; readonly wrong: string[] } {
  const watch: { last: Account | undefined; readonly wrong: string[] } = { last: undefined, wrong: [] };
  const commit = storage.commit.bind(storage);
  storage.commit = async (changes, now) => {
    const results = await commit(changes, now);
    const account = (await storage.reader.session(sessionId))?.account;
    if (account === undefined) return results;
    const { limits, spent, reserved } = account;
    const used = spent.costMicroUsd + reserved.costMicroUsd;
    if (used > (limits.maxCostMicroUsd ?? 0)) watch.wrong.push(`B1: ${used} of ${limits.maxCostMicroUsd}`);
    for (const kind of ["tokens", "costMicroUsd"] as const) {
      if (spent[kind] < (watch.last?.spent[kind] ?? 0)) watch.wrong.push(`B2: less ${kind} are spent`);
      if (![spent[kind], reserved[kind]].every(Number.isSafeInteger)) watch.wrong.push(`B3: ${kind}`);
    }
    watch.last = account;
    return results;
  };
  return watch;
}

/** Faults by the number of the request: what is billed, what is not, and what nobody knows. */
const FAULTS: Readonly<Record<number, ModelFault>> = {
  2: { type: "rate_limited", retryAfterSeconds: 0 },
  3: { type: "server_error" },
  5: { type: "cut", afterChunks: 3 },
  7: { type: "garbage" },
  9: { type: "malformed" },
};

describe("a budget over model calls", () => {
  test(
    "a family with faults, raises and crashes: never above the limit, never less, in whole numbers",
    ofCampaign,
    async () => {
      server.setFaults(FAULTS);
      const agent = family();
      runtime = open(agent);
      const sessionId = "family";
      const watch = watchAccount(sessionId);
      let limit = 250_000;
      await runtime.start(agent, undefined, { sessionId, budget: { maxCostMicroUsd: limit } });
      const isOver = async (): Promise<boolean> =>
        (await storage.reader.session(sessionId))?.status === "completed";
      let parked = 0;
      for (let crash = 1; !(await isOver());) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        const children = await storage.reader.sessions({ parent: sessionId, limit: 10 });
        if (server.requests.length > crash * 4) {
          crash++;
          await runtime.close();
          runtime = open(agent);
          await runtime.resume(sessionId);
        }
        const isStuck = children.every(({ status }) => status === "paused" || status === "completed");
        if (isStuck && children.some(({ status }) => status === "paused")) {
          parked++;
          await runtime.setBudget(sessionId, { maxCostMicroUsd: (limit += 150_000) });
        }
      }
      expect(watch.wrong).toEqual([]);
      const last = watch.last!;
      expect(parked, "it was parked for its budget, and went on").toBeGreaterThan(0);
      expect(last.reserved).toMatchObject({ tokens: 0, costMicroUsd: 0 });
      // Reported usage is a lower bound: an attempt that was cut off counts as its worst case.
      const children = await storage.reader.sessions({ parent: sessionId, limit: 10 });
      const reported = (await Promise.all(children.map((child) => costOf(child.sessionId)))).reduce(
        (a, b) => a + b,
        0,
      );
      expect(reported).toBeGreaterThan(0);
      expect(last.spent.costMicroUsd).toBeGreaterThan(reported);
    },
  );

  test("the unused reservation of a refused attempt is released", async () => {
    server.setFaults({
      1: { type: "rate_limited", retryAfterSeconds: 0 },
      2: { type: "server_error", status: 529 },
    });
    runtime = open();
    const handle = await runtime.start(talker(), "Ada", { budget: { maxCostMicroUsd: 5_000_000 } });
    await handle.result();
    const { account } = await handle.session();
    expect(account?.spent.costMicroUsd).toBe(await costOf(handle.sessionId));
  });

  test("an outage of the model costs nothing and pauses the session, and a resume continues it", async () => {
    const { port } = new URL(server.url);
    await server.close();
    runtime = open();
    const handle = await runtime.start(talker(), "Ada", { sessionId: "s", budget: { maxTokens: 500_000 } });
    expect(await handle.settled()).toMatchObject({
      status: "paused",
      fault: { code: "model_unavailable", fix: expect.stringContaining("Then `holdfast resume s`") },
    });
    expect((await handle.session()).account).toMatchObject({ spent: { tokens: 0 }, reserved: { tokens: 0 } });
    server = await startScriptedModelServer({ script: () => ({ text: "back" }), port: Number(port) });
    await handle.unpause();
    expect(await handle.result()).toBe("Ada");
  });

  test("a session pauses for a server that answers each attempt with an error", async () => {
    server.setFaults(Object.fromEntries([...Array(9).keys()].map((n) => [n + 1, { type: "server_error" }])));
    runtime = open();
    const handle = await runtime.start(talker(), "Ada", { budget: { maxTokens: 500_000 } });
    expect(await handle.settled()).toMatchObject({ status: "paused" });
    expect((await handle.session()).account?.spent.tokens).toBe(0);
    await handle.unpause();
    expect(await handle.result()).toBe("Ada");
  });

  test("the limit is met to the token: one less parks before the call", async () => {
    const held = 20_000 + 1_024 + "You talk.".length + 1_000;
    runtime = open();
    const agent = talker(1_000);
    const less = await runtime.start(agent, "Ada", { budget: { maxTokens: held - 1 } });
    expect(await less.settled()).toMatchObject({ status: "paused", fault: { code: "budget_exceeded" } });
    expect(server.requests).toHaveLength(0);
    const enough = await runtime.start(agent, "Bob", { budget: { maxTokens: held } });
    expect(await enough.settled()).toMatchObject({ status: "paused" });
    expect(server.requests, "the first call fits exactly").toHaveLength(1);
  });

  test("a model without a price is refused before the call; a limit of tokens needs none", async () => {
    runtime = createRuntime({ storage, prices: modelPrices() });
    const env = { ANTHROPIC_BASE_URL: server.url, ANTHROPIC_API_KEY: "k", HOLDFAST_MODEL: "anthropic/own" };
    const agent = talker(2_000, resolveModel(env));
    const costly = await runtime.start(agent, "Ada", { budget: { maxCostMicroUsd: 5_000_000 } });
    expect(await costly.settled()).toMatchObject({
      status: "failed",
      error: {
        cause: { code: "unknown_price", message: expect.stringContaining("anthropic/own") },
      },
    });
    expect(server.requests).toHaveLength(0);
    const counted = await runtime.start(agent, "Bob", { budget: { maxTokens: 5_000_000 } });
    expect((await counted.settled()).status).toBe("completed");
  });

  test("a scripted model costs nothing, so a limit of money lets it work", async () => {
    runtime = createRuntime({ storage, prices: modelPrices() });
    const session = await runtime.start(talker(), "Ada", { budget: { maxCostMicroUsd: 1 } });
    expect((await session.settled()).status).toBe("completed");
    expect((await storage.reader.session(session.sessionId))?.cost).toMatchObject({
      calls: CALLS,
      unpriced: 0,
      costMicroUsd: 0,
    });
  });

  test("a conversation that is longer than was told is refused before the call", async () => {
    const model = modelTask(scriptedModel(server.url));
    const agent = defineAgent({
      name: "liar",
      tasks: [model],
      run: async (ctx) =>
        ctx.scheduleTask(model, {
          system: "",
          messages: [{ role: "user", content: "x".repeat(500) }],
          maxConversationTokens: 100,
        }),
    });
    runtime = createRuntime({ storage });
    expect(await (await runtime.start(agent)).settled()).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("longer than the model task was told") },
    });
    expect(server.requests).toHaveLength(0);
  });
});

/** The cost that the attempts of a session reported. */
async function costOf(sessionId: string): Promise<number> {
  const records = await storage.reader.journal(sessionId, 0, 10_000);
  return records.reduce(
    (sum, record) => sum + (("usage" in record ? record.usage?.costMicroUsd : undefined) ?? 0),
    0,
  );
}

describe("prices", () => {
  const usage = { inputTokens: 1_000, outputTokens: 100 };
  test("prices come from the table, a custom price overrides it, and other servers have none", () => {
    expect(modelPrices()({ model: "anthropic/claude-sonnet-4-5", ...usage })).toBe(4_500);
    expect(modelPrices(() => 7)({ model: "anthropic/claude-sonnet-4-5", ...usage })).toBe(7);
    expect(modelPrices()({ model: "openai-compatible/gpt-5", ...usage })).toBeUndefined();
    expect(modelPrices()({ model: "anthropic/no-such-model", ...usage })).toBeUndefined();
    expect(modelPrices()({ model: "", ...usage })).toBeUndefined();
  });
});
