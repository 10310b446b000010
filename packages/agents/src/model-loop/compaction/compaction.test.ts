import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJson, HoldfastError, type AgentTracer } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { crashEverywhere } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { z } from "zod";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { ModelRequest } from "../../models/model-provider.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel, type FakeModel, type Say } from "../../testing/fake-model.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import type { AnyCapability } from "../capability.ts";
import { ModelLoop } from "../model-loop.ts";
import { defineTool } from "../tools/tool.ts";
import { entryBytes } from "./context-size.ts";
import { READ_RESULT } from "./read-result.ts";

/** Small, so that few turns fill it. The system prompt and the tools take 3,000 tokens of it. */
const WINDOW = 12_000;
const LINE = "0123456789abcdef".repeat(4);
const REQUEST = "Read all parts, and name the last word.";

let folder: string;
let runtime: Runtime | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "compaction-"));
  for (let part = 0; part < 40; part++)
    await writeFile(join(folder, `part-${part}.txt`), `part ${part}\n${`${LINE}\n`.repeat(70)}`);
});
afterEach(async () => {
  await runtime?.close();
  await rm(folder, { recursive: true, force: true });
});

/** The size that a real model would count. */
const tokensOf = ({ system, tools, messages }: ModelRequest): number =>
  Math.ceil((entryBytes(system) + entryBytes(tools) + entryBytes(messages)) / 3);

const textOf = (request: ModelRequest): string => JSON.stringify(request.messages);
const isSummary = ({ messages }: ModelRequest): boolean =>
  JSON.stringify(messages.at(-1)).includes("Write a summary of it");

/**
 * A model that reads the parts in turn. It knows which part is next only from what it reads, as a real model
 * does, and counts its tokens.
 */
function reader(
  parts: number,
  more: (request: ModelRequest) => Say | undefined = () => undefined,
): FakeModel {
  return fakeModel((request) => {
    const usage = {
      inputTokens: tokensOf(request),
      outputTokens: 20,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
      costMicroUsd: 1,
    };
    const own = more(request);
    if (own !== undefined) return { usage, ...own };
    const read = [...textOf(request).matchAll(/part (\d+)\b/g)].map(([, part]) => Number(part));
    const next = Math.max(-1, ...read) + 1;
    if (isSummary(request)) return { text: `# Done\n\nI have read up to part ${next - 1}.`, usage };
    if (next >= parts) return { text: `the end, after ${next}`, usage };
    return { calls: [["read_file", { path: `part-${next}.txt` }]], usage };
  });
}

function loopOf(model: FakeModel, window = WINDOW, capabilities: readonly AnyCapability[] = []): ModelLoop {
  const workspace = workspacesByRoot();
  return new ModelLoop({ model, workspace, root: folder, contextWindow: () => window, capabilities });
}

async function play(
  model: FakeModel,
  record: Partial<AgentRecord> = {},
  answers: readonly unknown[] = [],
  window = WINDOW,
  capabilities: readonly AnyCapability[] = [],
) {
  const questions: string[] = [];
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input") continue;
        questions.push(wait.prompt);
        const answer = answers[questions.length - 1] ?? { approved: false };
        void runtime?.answer(event.sessionId, answer, { question: wait.id });
      }
    },
  };
  const storage = new MemoryStorage();
  const agent = loopOf(model, window, capabilities).agent({ ...RECORD, ...record });
  runtime = createRuntime({ storage, tracer, agents: [agent] });
  const handle = await runtime.start(agent, REQUEST);
  const output = await handle.result().catch((error: unknown) => error);
  const entries = (await storage.reader.entries(handle.sessionId, 0, 1_000)).map(({ role, content }) => ({
    role,
    content: asObject(decodeJson(content)),
  }));
  return { output, questions, entries, boundaries: entries.filter(({ content }) => "boundary" in content) };
}

function asObject(content: unknown): Record<string, unknown> {
  return typeof content === "string" ? { text: content } : (content as Record<string, unknown>);
}

test("a long session stays within the window of its model, and no call is made twice", async () => {
  const model = reader(24);
  const { output, boundaries, entries } = await play(model);
  expect(output).toBe("the end, after 24");
  expect(boundaries.length).toBeGreaterThanOrEqual(5);
  for (const request of model.requests) expect(tokensOf(request)).toBeLessThan(WINDOW);
  const paths = entries
    .filter(({ role }) => role === "assistant")
    .flatMap(({ content }) => content["toolCalls"] as { input: { path: string } }[])
    .map(({ input }) => input.path);
  expect(new Set(paths).size).toBe(paths.length - repeatedInTails(entries));
  for (const request of model.requests) expect(textOf(request)).toContain(REQUEST);
});

/** Entries that a boundary repeats word for word. */
function repeatedInTails(entries: readonly { role: string; content: Record<string, unknown> }[]): number {
  const seen = new Set<string>();
  return entries.filter(({ role, content }) => {
    if (role !== "assistant") return false;
    const [call] = content["toolCalls"] as { id: string; input: { path: string } }[];
    if (call === undefined) return false;
    const isRepeated = seen.has(call.input.path);
    seen.add(call.input.path);
    return isRepeated;
  }).length;
}

test("the plan, the steps and the written files are in each request after a boundary, word for word", async () => {
  const steps = [{ text: "read every part", status: "in_progress" }];
  let written = 0;
  const model = reader(16, (request) => {
    const text = textOf(request);
    if (!text.includes("the plan in full"))
      return { calls: [["propose_plan", { plan: "the plan in full" }]] };
    if (!text.includes("read every part")) return { calls: [["todo", { todos: steps }]] };
    if (written++ === 0) return { calls: [["write_file", { path: "notes.md", content: "x" }]] };
    return undefined;
  });
  const permissions = [{ decision: "allow", tool: "write_file", pattern: null }] as const;
  const answers = [{ approved: true }];
  const { output, boundaries } = await play(model, { planFirst: true, permissions }, answers);
  expect(output).toBe("the end, after 16");
  expect(boundaries.length).toBeGreaterThanOrEqual(3);
  const after = model.requests.slice(-1)[0]!;
  const [first] = after.messages;
  expect(first?.content).toMatchObject({ text: expect.stringContaining("the plan in full") });
  expect(first?.content).toMatchObject({ text: expect.stringContaining("- [in_progress] read every part") });
  expect(first?.content).toMatchObject({ text: expect.stringContaining("- notes.md") });
});

/** A capability with skills of these sizes. */
const skillsOfSizes = (sizes: Readonly<Record<string, number>>): AnyCapability => ({
  name: "skills",
  prepare: () => Promise.resolve({}),
  offer: () => ({
    tools: [
      defineTool({
        name: "read_skill",
        description: "Reads a skill.",
        input: z.object({ name: z.string(), file: z.string().optional() }),
        isReading: true,
        run: (_ctx, { name, file }) =>
          Promise.resolve(`text of ${name}${file ?? ""}. ${"s".repeat(sizes[name] ?? 0)}`),
      }),
    ],
  }),
});

test("a skill that was read stays word for word over all boundaries, and one without room can be read again", async () => {
  const reads = [
    { name: "long" },
    { name: "tag" },
    { name: "tag" },
    { name: "build", file: "/notes.md" },
    { name: "build" },
  ];
  let asked = 0;
  const model = reader(16, (request) => {
    if (isSummary(request) || asked++ > 0) return undefined;
    return { calls: reads.map((read): [string, object] => ["read_skill", read]) };
  });
  const sizes = { long: 6_000, tag: 900, build: 900 };
  const { output, boundaries } = await play(model, {}, [], WINDOW, [skillsOfSizes(sizes)]);
  expect(output).toBe("the end, after 16");
  expect(boundaries.length).toBeGreaterThanOrEqual(3);
  const last = textOf(model.requests.at(-1)!);
  expect(last.split("text of tag.")).toHaveLength(2);
  expect(last.split("text of build.")).toHaveLength(2);
  expect(last).not.toContain("text of build/notes.md");
  expect(last).not.toContain("text of long");
  expect(last).toMatch(/- call_\w+: read_skill long, 60\d\d characters/);
  for (const request of model.requests) expect(tokensOf(request)).toBeLessThan(WINDOW);
});

/** A campaign crashes at every point of a longer session. */
const CRASHES = isCampaign ? { parts: 24, every: 1 } : { parts: 9, every: 23 };

test(
  "a crash at any point of a session with boundaries changes nothing",
  { ...ofCampaign, timeout: 900_000 },
  async () => {
    const model = reader(CRASHES.parts);
    const report = await crashEverywhere(
      { name: "boundaries", agent: loopOf(model).agent(RECORD), input: REQUEST },
      undefined,
      { every: CRASHES.every },
    );
    expect(report.failures).toEqual([]);
    expect(report.outcome).toMatchObject({ status: "completed" });
  },
);

test("results can be read again whole after many boundaries, by the ids of their calls", async () => {
  let listed: string[] = [];
  const model = reader(16, (request) => {
    const text = textOf(request);
    if (isSummary(request) || !text.includes("part 15") || listed.length > 0) return undefined;
    listed = [...text.matchAll(/- (call_\w+): read_file part-\d+.txt, \d+ characters/g)].map(([, id]) => id!);
    return {
      calls: listed.map((id): [string, object] => [READ_RESULT, { call_id: id, offset: 1_990, chars: 30 }]),
    };
  });
  const { entries, boundaries } = await play(model);
  expect(boundaries.length).toBeGreaterThanOrEqual(4);
  const read = entries.filter(({ content }) => content["name"] === READ_RESULT);
  expect(read.length).toBeGreaterThanOrEqual(12);
  for (const { content } of read) expect(content["text"]).toMatch(/^[0-9a-f\n]{30}\n\[\d+ characters follow/);
  expect(model.requests[0]?.tools.map(({ name }) => name)).not.toContain(READ_RESULT);
});

test("the middle of a result that is too long to be shown whole can be read without a boundary", async () => {
  const text = `${"a".repeat(15_000)}the middle${"b".repeat(15_000)}`;
  await writeFile(join(folder, "long.txt"), text);
  let calls = 0;
  const model = fakeModel((request) => {
    const [id] = /call_\w+(?= reads them)/.exec(textOf(request)) ?? [];
    if (calls++ === 0) return { calls: [["read_file", { path: "long.txt" }]] };
    if (calls === 2) return { calls: [[READ_RESULT, { call_id: id, offset: 15_000, chars: 10 }]] };
    return { text: "the end" };
  });
  const { output, entries } = await play(model, {}, [], 128_000);
  expect(output).toBe("the end");
  const read = entries.find(({ content }) => content["name"] === READ_RESULT);
  expect(read?.content["text"]).toMatch(/^the middle\n\[15000 characters follow/);
  for (const request of model.requests) expect(textOf(request)).not.toContain("the middleb");
});

test("the results of one reply leave room for the summary of it", async () => {
  let calls = 0;
  const model = fakeModel((request) => {
    const usage = {
      inputTokens: tokensOf(request),
      outputTokens: 20,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    };
    if (isSummary(request)) return { text: "All parts were read.", usage };
    if (calls++ > 0) return { text: "the end", usage };
    return {
      calls: Array.from({ length: 10 }, (_, part): [string, object] => [
        "read_file",
        { path: `part-${part}.txt` },
      ]),
      usage,
    };
  });
  const { output, questions, boundaries, entries } = await play(model);
  expect([output, questions]).toEqual(["the end", []]);
  expect(boundaries).toHaveLength(1);
  for (const request of model.requests) expect(tokensOf(request)).toBeLessThan(WINDOW);
  expect(entries.filter(({ content }) => content["type"] === "whole_result").length).toBeGreaterThan(3);
});

test("a model that cannot be reached is replaced for a summary too", async () => {
  const asked: (string | undefined)[] = [];
  const model = reader(9, (request) => {
    if (isSummary(request) && asked.length === 0) {
      asked.push("refused");
      throw new HoldfastError("config_invalid", "fake/model is not known here");
    }
    return undefined;
  });
  const { output, entries, boundaries } = await play(model, { fallbackModels: ["fake/other"] });
  expect(output).toBe("the end, after 9");
  expect(asked).toEqual(["refused"]);
  expect(JSON.stringify(entries)).toContain("I have read up to part");
  expect(boundaries.length).toBeGreaterThanOrEqual(1);
});

test("a session whose boundaries free nothing is paused, says what helps, and a resume tries two more", async () => {
  // The summary is as long as what it replaces, and the model calls no tool in between.
  let summaries = 0;
  const model = fakeModel((request) => {
    if (isSummary(request)) summaries++;
    const isHelping = summaries > 4;
    const long = isSummary(request) ? LINE.repeat(500) : "";
    return {
      text: isHelping ? "the end" : long,
      usage: {
        inputTokens: isHelping ? 100 : WINDOW,
        outputTokens: 20,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
      },
    };
  });
  const agent = loopOf(model).agent(RECORD);
  runtime = createRuntime({ storage: new MemoryStorage(), agents: [agent] });
  const handle = await runtime.start(agent, REQUEST, { sessionId: "s" });
  for (const expected of [2, 4]) {
    const settled = await handle.settled();
    expect(settled).toMatchObject({
      status: "paused",
      fault: {
        code: "quota_exceeded",
        message: expect.stringMatching(
          /is paused \(quota\): agent ".*" was stopped because .* context window of fake\/model, and two summaries/,
        ),
        fix: expect.stringMatching(/holdfast fork s --agent FILE.*Then `holdfast resume s`/),
      },
    });
    expect(summaries).toBe(expected);
    await handle.unpause();
  }
  expect(await handle.result()).toBe("the end");
});

test("a request that the model refuses as too long is repeated after one boundary", async () => {
  let refused = 0;
  const model = reader(3, (request) => {
    if (refused > 0 || textOf(request).length < 6_000) return undefined;
    refused++;
    throw new HoldfastError(
      "invalid_input",
      "fake/model refused the request (400): prompt is too long: 9 > 8",
    );
  });
  const { output, boundaries } = await play(model);
  expect([output, boundaries.length, refused]).toEqual(["the end, after 3", 1, 1]);
});
