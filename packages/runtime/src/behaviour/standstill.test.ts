// K2 under load: an agent's journal is the same alone and among hundreds of noisy neighbours. It is also the
// same when its process ends between any two commits.

/* oxlint-disable unicorn/no-unnecessary-await, typescript/await-thenable, unicorn/no-single-promise-in-promise-methods -- agents do */

import type { AgentStorage, JournalRecord } from "@holdfast/core";
import { gate, journalOf, storageWith, until } from "@holdfast/testkit/test-runtime";
import { generateText, isStepCount, jsonSchema, streamText, tool, type LanguageModel } from "ai";
import { describe, expect, test } from "vitest";
import { defineAgent, type Agent, type AgentContext } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

/**
 * The answers of the tasks of the agents under test, and their order. A task ends when all tasks before it in
 * its agent's order have ended and been committed. Therefore the order of outcomes is fixed, and only the
 * kernel can cause a difference.
 */
interface World {
  readonly done: (sessionId: string, label: string) => Promise<string>;
}

type Body = (ctx: AgentContext, world: World) => Promise<unknown>;

const work = (ctx: AgentContext, world: World, label: string) =>
  ctx.run(label, (task) => world.done(task.sessionId, label));

const AGENTS: { readonly [name: string]: { readonly body: Body; readonly order: readonly string[] } } = {
  "nested functions": {
    order: ["b2", "a1", "b1", "a2", "c1", "a3", "c2"],
    async body(ctx, world) {
      const leaf = async (label: string, depth: number): Promise<string> => {
        if (depth === 0) return work(ctx, world, label);
        await null;
        return leaf(label, depth - 1);
      };
      const branch = async (name: string, count: number) => {
        const all: string[] = [];
        for (let i = 1; i <= count; i++) {
          all.push(await leaf(`${name}${i}`, i * 3));
          ctx.appendEntry({ role: "assistant", content: `${name}${i}` });
        }
        return all;
      };
      return Promise.all([branch("a", 3), Promise.all([leaf("b2", 1), leaf("b1", 7)]), branch("c", 2)]);
    },
  },
  "async generators": {
    order: ["g0", "h0", "h1", "g1", "h2", "g2"],
    async body(ctx, world) {
      async function* produce(name: string): AsyncGenerator<string> {
        for (let i = 0; i < 3; i++) {
          yield await work(ctx, world, `${name}${i}`);
          yield `${name}:${ctx.random()}`;
        }
      }
      async function* upper(source: AsyncIterable<string>): AsyncGenerator<string> {
        for await (const item of source) yield item.toUpperCase();
      }
      const collect = async (source: AsyncIterable<string>) => {
        const all: string[] = [];
        for await (const item of source) {
          ctx.appendEntry({ role: "tool", content: item });
          all.push(item);
        }
        return all;
      };
      return Promise.all([collect(upper(produce("g"))), collect(produce("h"))]);
    },
  },
  streams: {
    order: ["s0", "t0", "s1", "s2", "t1", "t2"],
    async body(ctx, world) {
      const stream = (name: string) => {
        let i = 0;
        return new ReadableStream<string>({
          async pull(controller) {
            if (i === 3) controller.close();
            else controller.enqueue(await work(ctx, world, `${name}${i++}`));
          },
        }).pipeThrough(
          new TransformStream<string, string>({
            transform(chunk, controller) {
              ctx.appendEntry({ role: "tool", content: chunk });
              controller.enqueue(`<${chunk}>`);
            },
          }),
        );
      };
      const read = async (source: ReadableStream<string>) => {
        let text = "";
        for await (const chunk of source) text += chunk;
        return text;
      };
      return Promise.all([read(stream("s")), read(stream("t"))]);
    },
  },
  "mixed races": {
    order: ["fast0", "slow0", "fast1", "slow1", "last"],
    async body(ctx, world) {
      const winners: string[] = [];
      for (let i = 0; i < 2; i++) {
        const [fast, slow] = [work(ctx, world, `fast${i}`), work(ctx, world, `slow${i}`)];
        winners.push(await Promise.race([slow, fast, ctx.sleep(1_000_000).then(() => "timer")]));
        winners.push(await Promise.any([slow]));
        await Promise.allSettled([fast, slow]);
      }
      const settled = await ctx.allSettled([work(ctx, world, "last"), Promise.reject(new Error("no"))]);
      return [winners, settled.map(({ status }) => status)];
    },
  },
  "the AI SDK with tools": {
    order: ["model 1", "tool paris", "tool rome", "model 2"],
    async body(ctx, world) {
      const result = await generateText({
        model: scriptedModel(ctx, world),
        prompt: "weather?",
        stopWhen: isStepCount(4),
        tools: { weather: weatherTool(ctx, world) },
      });
      ctx.appendEntry({ role: "assistant", content: result.text });
      return [result.text, result.steps.length];
    },
  },
  "the AI SDK streaming": {
    order: ["model 1", "tool paris", "tool rome", "model 2"],
    async body(ctx, world) {
      const result = streamText({
        model: scriptedModel(ctx, world),
        prompt: "weather?",
        stopWhen: isStepCount(4),
        tools: { weather: weatherTool(ctx, world) },
      });
      let text = "";
      for await (const delta of result.textStream) text += delta;
      ctx.appendEntry({ role: "assistant", content: text });
      return text;
    },
  },
};

describe("standstill under load equals alone", () => {
  test.each(Object.keys(AGENTS))("%s", async (name) => {
    const alone = await runAlone(name);
    expect(alone.output).toBeDefined();
    const crowded = await runCrowded(name, 200);
    expect(crowded.output).toEqual(alone.output);
    expect(crowded.records).toEqual(alone.records);
    expect(crowded.entries).toEqual(alone.entries);
  });
});

describe("a journal is the same when its process ends between any two commits", () => {
  test.each(Object.keys(AGENTS))("%s", async (name) => {
    const alone = await runAlone(name);
    expect(alone.commits).toBeGreaterThan(3);
    for (let dieAfter = 1; dieAfter < alone.commits; dieAfter++) {
      const crashed = await runWithCrash(name, dieAfter);
      expect(crashed.output, `after commit ${dieAfter}`).toEqual(alone.output);
      expect(crashed.entries, `after commit ${dieAfter}`).toEqual(alone.entries);
      expect(crashed.commands, `after commit ${dieAfter}`).toEqual(alone.commands);
    }
  });
});

// ---- running ------------------------------------------------------------------------------------------------------

interface Ran {
  readonly output: unknown;
  readonly records: readonly unknown[];
  readonly commands: readonly unknown[];
  readonly entries: readonly unknown[];
  readonly commits: number;
}

const SUBJECT = "subject";

async function runAlone(name: string): Promise<Ran> {
  const storage = new MemoryStorage();
  const counting = countCommits(storage);
  const runtime = makeRuntime(counting.storage);
  const world = orderedWorld(AGENTS[name]!.order, storage);
  const handle = await runtime.start(agentOf(name, world), undefined, { sessionId: SUBJECT });
  const output = await handle.result();
  await runtime.close();
  return { ...(await recordedIn(storage)), output, commits: counting.count() };
}

async function runCrowded(name: string, neighbours: number): Promise<Ran> {
  const storage = new MemoryStorage();
  const runtime = makeRuntime(storage);
  const noise = { isOn: true };
  const noisy = defineAgent<number, number>({
    name: "noisy",
    async run(ctx, seed) {
      let rounds = 0;
      while (noise.isOn) {
        const hops = 1 + ((seed + rounds) % 5);
        await Promise.all([
          ctx.run("noise", async () => {
            for (let i = 0; i < hops; i++) await new Promise((resolve) => setImmediate(resolve));
          }),
          ctx.run("timed noise", () => new Promise((resolve) => setTimeout(resolve, Math.random() * 3))),
          rounds % 3 === 0 ? ctx.sleep(1) : null,
        ]);
        rounds++;
      }
      return rounds;
    },
  });
  const others = await Promise.all(
    Array.from({ length: neighbours }, (_, i) => runtime.start(noisy, i, { sessionId: `noisy-${i}` })),
  );
  const world = orderedWorld(AGENTS[name]!.order, storage);
  const handle = await runtime.start(agentOf(name, world), undefined, { sessionId: SUBJECT });
  const output = await handle.result();
  noise.isOn = false;
  const rounds = await Promise.all(others.map((other) => other.result()));
  expect(Math.min(...rounds)).toBeGreaterThan(0);
  await runtime.close();
  return { ...(await recordedIn(storage)), output, commits: 0 };
}

async function runWithCrash(name: string, dieAfter: number): Promise<Ran> {
  const storage = new MemoryStorage();
  const world = orderedWorld(AGENTS[name]!.order, storage);
  const dying = countCommits(storage, dieAfter);
  const first = makeRuntime(dying.storage, "first");
  const started = first.start(agentOf(name, world), undefined, { sessionId: SUBJECT });
  void started.catch(() => {});
  await until(() => dying.dead(), "the crash");
  vanishRuntime(first);
  const second = makeRuntime(afterDeath(storage), "second", agentOf(name, world));
  const handle = await second.resume(SUBJECT);
  const output = await handle.result();
  await second.close();
  return { ...(await recordedIn(storage)), output, commits: 0 };
}

function makeRuntime(storage: AgentStorage, owner = "one", ...agents: Agent[]): Runtime {
  return createRuntime({ storage, owner, agents, random: { u32: () => 7 }, development: false });
}

function agentOf(name: string, world: World): Agent {
  const { body } = AGENTS[name]!;
  return defineAgent({ name, run: (ctx) => body(ctx, world) });
}

/** Outcomes in a fixed order: each label waits until the one before it is in the journal. */
function orderedWorld(order: readonly string[], storage: AgentStorage): World {
  const ended = (journal: readonly JournalRecord[]) =>
    journal.filter(({ type }) => type === "task_completed" || type === "outcome_kept").length;
  const gates = new Map(order.map((label) => [label, gate()]));
  return {
    async done(sessionId, label) {
      const at = order.indexOf(label);
      if (at < 0) throw new Error(`no task ${label} in the order`);
      await until(async () => {
        const journal = await journalOf(storage, sessionId);
        return (
          new Set(
            journal.flatMap((record) =>
              record.type === "task_completed" || record.type === "outcome_kept" ? record.task : [],
            ),
          ).size >= at && ended(journal) >= at
        );
      }, `what comes before ${label}`);
      gates.get(label)?.open();
      return `done ${label}`;
    },
  };
}

/** Counts the commits of the session; from `dieAfter` on nothing is answered any more. */
function countCommits(storage: AgentStorage, dieAfter = Infinity) {
  let count = 0;
  const wrapped = storageWith(storage, {
    async commit(group, now) {
      if (count >= dieAfter) return new Promise(() => {});
      count += group.filter(
        (change) =>
          (change.type === "commit_batch" || change.type === "create_session") &&
          change.sessionId === SUBJECT,
      ).length;
      const results = await storage.commit(group, now);
      return count >= dieAfter ? new Promise(() => {}) : results;
    },
  });
  return { storage: wrapped, count: () => count, dead: () => count >= dieAfter };
}

/** In memory the claim of a dead process never ends, so this replaces the lease or the lock. */
function afterDeath(storage: AgentStorage): AgentStorage {
  return storageWith(storage, {
    async claim(claim) {
      return storage.claim({ ...claim, owner: "first" });
    },
  });
}

async function recordedIn(storage: AgentStorage) {
  const journal = await journalOf(storage, SUBJECT);
  const records = journal.map((record) => ({ ...record, at: 0 }));
  // A crash adds notes and attempts. The agent's commands must be the same, in the same order.
  const commands = journal
    .filter((record) => "id" in record)
    .map((record) => ({ ...record, seq: 0, fireAt: 0 }));
  const entries = (await storage.reader.entries(SUBJECT, 0, 1_000)).map((entry) => ({
    ...entry,
    createdAt: 0,
  }));
  return { records: records.map((record) => ({ ...record, fireAt: 0 })), commands, entries };
}

// ---- the AI SDK ------------------------------------------------------------------------------------------------------

function weatherTool(ctx: AgentContext, world: World) {
  return tool({
    description: "the weather of a city",
    inputSchema: jsonSchema<{ city: string }>({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
    }),
    execute: async ({ city }) => work(ctx, world, `tool ${city}`),
  });
}

/** A model whose calls are durable tasks, as an author of agents would write it. */
function scriptedModel(ctx: AgentContext, world: World): LanguageModel {
  let calls = 0;
  const ask = async () => {
    const call = ++calls;
    await work(ctx, world, `model ${call}`);
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    };
    const content =
      call === 1
        ? ["paris", "rome"].map((city) => ({
            type: "tool-call" as const,
            toolCallId: `call-${city}`,
            toolName: "weather",
            input: JSON.stringify({ city }),
          }))
        : [{ type: "text" as const, text: "Sunny in both." }];
    const reason = call === 1 ? "tool-calls" : "stop";
    return { content, usage, finishReason: { unified: reason, raw: reason } };
  };
  return {
    specificationVersion: "v4",
    provider: "test",
    modelId: "scripted",
    supportedUrls: {},
    async doGenerate() {
      return { ...(await ask()), warnings: [] };
    },
    async doStream() {
      const { content, usage, finishReason } = await ask();
      const parts: unknown[] = [{ type: "stream-start", warnings: [] }];
      for (const part of content) {
        if (part.type === "tool-call") parts.push(part);
        else {
          parts.push({ type: "text-start", id: "t" });
          for (const word of part.text.split(/(?<= )/))
            parts.push({ type: "text-delta", id: "t", delta: word });
          parts.push({ type: "text-end", id: "t" });
        }
      }
      parts.push({ type: "finish", usage, finishReason });
      return {
        stream: new ReadableStream({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
  } as unknown as LanguageModel;
}
