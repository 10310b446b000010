import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { createOpenAI } from "@ai-sdk/openai";
import { decodeJson, encodeJson, recordError } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";
import {
  startScriptedModelServer,
  turns,
  type ModelFault,
  type ScriptedModelServer,
} from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { aiSdkProvider } from "./ai-sdk-provider.ts";
import type { ModelProvider, ModelReply } from "./model-provider.ts";
import { modelTask, type ModelTaskInput } from "./model-task.ts";
import { resolveModel, scriptedModel, type ModelEnvironment } from "./resolve-model.ts";

const CANARY = "canary-key-7f3a91";
/** For answers that come: however busy the machine is, they are not given up. */
const PATIENT = { firstOutputMs: 30_000, silenceMs: 30_000, totalMs: 30_000 };
/** For answers that never come. */
const HASTY = { firstOutputMs: 1_000, silenceMs: 150, totalMs: 10_000 };

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startScriptedModelServer({
    apiKeys: [CANARY],
    script: turns([
      {
        text: "I shall read it.",
        toolCalls: [
          { name: "read_file", input: { path: "a.js" } },
          { name: "no_such_tool", input: { x: 1 } },
        ],
      },
      (conversation) => ({
        text: `read: ${conversation.messages
          .at(-1)
          ?.toolResults.map((result) => result.text)
          .join("+")}`,
      }),
    ]),
  });
});

afterEach(() => server.close());

const wires = ["anthropic", "openai", "compatible", "google"] as const;

/** The same server, spoken to as each of the four. */
function provider(wire: (typeof wires)[number], key: string = CANARY, timeouts = PATIENT): ModelProvider {
  switch (wire) {
    case "anthropic":
      return found({ ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: server.url }, timeouts);
    case "google":
      return found({ GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: server.url }, timeouts);
    case "compatible":
      return found(
        {
          OPENAI_API_KEY: key,
          OPENAI_BASE_URL: `${server.openaiBaseUrl}/`,
          HOLDFAST_MODEL: "some/model",
        },
        timeouts,
      );
    case "openai":
      // The environment cannot move OpenAI's own address, so it is made here as it is made there.
      return aiSdkProvider({
        provider: "openai",
        model: "gpt-5.5",
        description: "OpenAI's wire",
        keyVariable: "OPENAI_API_KEY",
        redact: [key],
        timeouts,
        load: async () => createOpenAI({ apiKey: key, baseURL: server.openaiBaseUrl })("gpt-5.5"),
      });
  }
}

function found(env: ModelEnvironment, timeouts = PATIENT): ModelProvider {
  return resolveModel(env, { timeouts }) ?? expect.fail("no model");
}

const TOOLS = [
  {
    name: "read_file",
    description: "Read",
    inputSchema: { type: "object", properties: { path: { type: "string" } } },
  },
];
const INPUT: ModelTaskInput = {
  system: "You help.",
  messages: [{ role: "user", content: "Hello" }],
  tools: TOOLS,
};

type Seen = { readonly tokens: string[]; readonly usage: unknown[] };

const IDS = { sessionId: "ses_1", taskId: "ses_1-0", attempt: 1, overlaps: false, idempotencyKey: "ses_1-0" };

async function ask(
  source: ModelProvider,
  input = INPUT,
  context: Partial<TaskContext> = {},
): Promise<{ reply: ModelReply } & Seen> {
  const seen: Seen = { tokens: [], usage: [] };
  const reply = await modelTask(source).run(input, {
    ...IDS,
    signal: new AbortController().signal,
    secret: () => "",
    signalSession: async () => undefined,
    readSession: async () => undefined,
    remainingBudget: () => Promise.resolve(undefined),
    streamToken: (text) => seen.tokens.push(text),
    progress: () => {},
    reportUsage: (usage) => seen.usage.push(usage),
    ...context,
  });
  return { reply, ...seen };
}

async function failure(
  source: ModelProvider,
  input = INPUT,
): Promise<Error & { code: string; retryAfterMs?: number }> {
  return ask(source, input).then(
    ({ reply }) => {
      throw new Error(`replied ${JSON.stringify(reply)}`);
    },
    (error: Error & { code: string }) => error,
  );
}

// Out of descriptors, for example: the next attempt is another one.
test("a model that could not be loaded is loaded again by the next call", async () => {
  const model = { provider: "test", model: "test-model", description: "a test" };
  const reasons = ["first", "second"];
  const source = aiSdkProvider({ ...model, load: () => Promise.reject(new Error(reasons.shift())) });
  expect((await failure(source)).message).toContain("first");
  expect((await failure(source)).message).toContain("second");
});

describe.each(wires)("a call over the wire of %s", (wire) => {
  test("streams its text, gives its tool calls as the model wrote them, and reports what it used", async () => {
    const { reply, tokens, usage } = await ask(provider(wire));
    expect(reply).toMatchObject({
      text: "I shall read it.",
      finishReason: "tool_calls",
      toolCalls: [
        { name: "read_file", input: { path: "a.js" } },
        { name: "no_such_tool", input: { x: 1 } },
      ],
    });
    expect(tokens.join("")).toBe(reply.text);
    expect(tokens.length).toBeGreaterThan(1);
    expect(usage).toEqual([{ model: reply.model, ...reply.usage }]);
    expect(reply.usage.inputTokens).toBeGreaterThan(0);
    expect(Object.values(reply.usage).every(Number.isInteger)).toBe(true);
    // It can be recorded as it is.
    expect(decodeJson(encodeJson(reply, "reply"))).toEqual(reply);
  });

  test("a conversation goes on with its tool results", async () => {
    const first = await ask(provider(wire));
    const [read, unknown] = first.reply.toolCalls;
    const { reply } = await ask(provider(wire), {
      ...INPUT,
      messages: [
        { role: "user", content: { text: "Hello" } },
        { role: "assistant", content: { text: first.reply.text, toolCalls: first.reply.toolCalls } },
        {
          role: "tool",
          content: { toolCallId: unknown?.id, name: unknown?.name, text: "no such tool", isError: true },
        },
        {
          role: "tool",
          content: { toolCallId: read?.id, name: read?.name, text: "content", isError: false },
        },
      ],
    });
    // OpenAI's Responses wire has no mark for errors, so the SDK wraps their text.
    expect(reply).toMatchObject({
      text: expect.stringMatching(/^read: content\+.*no such tool/),
      toolCalls: [],
      finishReason: "stop",
    });
  });

  test("a conversation that no server would take is made acceptable, not refused", async () => {
    const { reply } = await ask(provider(wire), {
      ...INPUT,
      messages: [
        { role: "user", content: "" },
        {
          role: "assistant",
          content: {
            text: "",
            toolCalls: [
              { id: "1", name: "", input: {} },
              { id: "2", name: "has a blank", input: {} },
            ],
          },
        },
        { role: "tool", content: { toolCallId: "1", name: "", text: "", isError: true } },
        { role: "tool", content: { toolCallId: "nobody's", name: "x", text: "stray", isError: false } },
      ],
    });
    expect(reply.text).toMatch(/^read: .*\(empty\).*\+.*There is no result: the call was interrupted\./);
  });

  test("a wrong key is an error that names the variable, not the key, and is final", async () => {
    const wrong = "wrong-key-canary-123456";
    const error = await failure(provider(wire, wrong));
    const variables = { anthropic: "ANTHROPIC_API_KEY", google: "GEMINI_API_KEY" } as const;
    const variable = wire === "anthropic" || wire === "google" ? variables[wire] : "OPENAI_API_KEY";
    expect(error).toMatchObject({ code: "model_auth", message: expect.stringContaining(variable) });
    expect(inspect(recordError(error), { depth: 9 })).not.toContain(wrong);
  });

  test.each<[string, ModelFault, RegExp]>([
    ["the server is overloaded", { type: "server_error", status: 529 }, /529/],
    ["the connection is cut before the answer", { type: "cut" }, /not available/],
    ["the connection is cut in the answer", { type: "cut", afterChunks: 4 }, /not available/],
    ["the server never answers", { type: "hang" }, /said nothing for 1000 ms/],
    ["the server falls silent", { type: "hang", afterChunks: 5 }, /silent|said nothing/],
    ["a proxy answers with a page", { type: "garbage" }, /not available/],
    ["a piece of the answer is no JSON", { type: "malformed" }, /not available/],
    ["the server reports an error in the answer", { type: "stream_error" }, /not available/],
  ])("%s: worth another attempt", async (_what, fault, message) => {
    server.setFaults({ 1: fault });
    const error = await failure(provider(wire, CANARY, fault.type === "hang" ? HASTY : PATIENT));
    expect(error).toMatchObject({ code: "model_unavailable", message: expect.stringMatching(message) });
    expect(server.requests).toHaveLength(1); // The SDK did not retry.
    expect((await ask(provider(wire))).reply.text).toBe("I shall read it.");
  });

  test("too many requests: the time the server names is honoured", async () => {
    server.setFaults({ 1: { type: "rate_limited", retryAfterSeconds: 7 } });
    expect(await failure(provider(wire))).toMatchObject({ code: "model_unavailable", retryAfterMs: 7_000 });
  });

  test("a server that asks to wait for hours has reached a usage limit, and the session is paused for it", async () => {
    server.setFaults({ 1: { type: "rate_limited", retryAfterSeconds: 3_600 } });
    const error = await failure(provider(wire), { ...INPUT, resumeAtReset: true });
    expect(error).toMatchObject({
      code: "quota_exceeded",
      message: expect.stringContaining("the usage limit of the key in"),
      fix: expect.stringContaining("wait for the reset"),
      pause: { reason: "quota", pool: expect.stringContaining("/"), resumeAtReset: true },
    });
    const { pause } = error as { pause?: { resetsAt?: number } };
    expect((pause?.resetsAt ?? 0) - Date.now()).toBeGreaterThan(3_500_000);
  });

  test("a caller that has another model gets a failure instead of a pause", async () => {
    server.setFaults(() => ({ type: "rate_limited", retryAfterSeconds: 3_600 }));
    const error = await failure(provider(wire), { ...INPUT, orFail: true });
    expect(error).toMatchObject({ code: "quota_exceeded" });
    expect(error).not.toHaveProperty("pause");
  });

  test("aborting the task ends the call at once, with the reason of the abort", async () => {
    server.setFaults({ 1: { type: "hang", afterChunks: 4 } });
    const controller = new AbortController();
    const reason = new Error("cancelled by the test");
    const asked = ask(provider(wire), INPUT, {
      signal: controller.signal,
      streamToken: () => controller.abort(reason),
    });
    queueMicrotask(() => setTimeout(() => controller.abort(reason), 50));
    await expect(asked).rejects.toBe(reason);
  });

  test("a key appears in nothing that could be recorded or printed", async () => {
    const source = provider(wire);
    const texts = [JSON.stringify(source), inspect(source, { depth: 9 }), source.describe()];
    const { reply, usage } = await ask(source);
    texts.push(JSON.stringify(reply), JSON.stringify(usage));
    server.setFaults(() => ({ type: "server_error", status: 500 }));
    const error = await failure(source);
    texts.push(JSON.stringify(recordError(error)), inspect(error, { depth: 9 }));
    expect(texts.filter((text) => text.includes(CANARY))).toEqual([]);
  });
});

describe("limits of a model call", () => {
  test("a call prints nothing, whatever goes wrong", async () => {
    const spies = (["log", "warn", "error", "info"] as const).map((name) =>
      vi.spyOn(console, name).mockImplementation(() => {}),
    );
    server.setFaults({ 1: { type: "server_error" } });
    for (const wire of wires) await ask(provider(wire)).catch(() => {});
    const calls = spies.flatMap((spy) => spy.mock.calls);
    vi.restoreAllMocks();
    expect(calls).toEqual([]);
  });

  test("a call does not begin when the task is already aborted", async () => {
    await expect(
      ask(provider("anthropic"), INPUT, { signal: AbortSignal.abort(new Error("before")) }),
    ).rejects.toThrow("before");
    expect(server.requests).toEqual([]);
  });
});

describe("servers that behave oddly", () => {
  let odd: Server | undefined;
  afterEach(() => odd?.close());

  /** Answers every request with these chunks of OpenAI's chat protocol, or with this status. */
  async function oddProvider(
    answer: { status: number; body: string } | readonly object[],
  ): Promise<ModelProvider> {
    odd = createServer((request, response) => {
      request.resume();
      if (!Array.isArray(answer)) {
        const { status, body } = answer as { status: number; body: string };
        response.writeHead(status, { "content-type": "application/json" }).end(body);
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const chunk of answer as object[])
        response.write(`data: ${JSON.stringify({ id: "x", created: 1, model: "m", ...chunk })}\n\n`);
      response.end("data: [DONE]\n\n");
    });
    await new Promise<void>((resolve) => odd?.listen(0, "127.0.0.1", resolve));
    const { port } = odd.address() as AddressInfo;
    const env = {
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
      OPENAI_API_KEY: CANARY,
      HOLDFAST_MODEL: "m",
    };
    return found(env);
  }

  const call = (index: number, id: string, name: string, args: string): object => ({
    index,
    id,
    type: "function",
    function: { name, arguments: args },
  });
  const delta = (part: object, finish: string | null = null): object => ({
    choices: [{ index: 0, delta: part, finish_reason: finish }],
  });

  test("ids that are empty or used before are made unique, arguments that are no object are reported", async () => {
    const source = await oddProvider([
      delta({
        role: "assistant",
        tool_calls: [call(0, "call_0", "read_file", "[1]"), call(1, "call_1", "read_file", '{"path": "a')],
      }),
      delta({}, "tool_calls"),
    ]);
    const { reply } = await ask(source, {
      ...INPUT,
      messages: [
        { role: "user", content: "Hello" },
        {
          role: "assistant",
          content: { text: "", toolCalls: [{ id: "call_0", name: "read_file", input: {} }] },
        },
        { role: "tool", content: { toolCallId: "call_0", name: "read_file", text: "x", isError: false } },
      ],
    });
    expect(reply.toolCalls).toEqual([
      { id: "call_0_2", name: "read_file", input: {}, problem: "the arguments are not a JSON object: [1]" },
      {
        id: "call_1",
        name: "read_file",
        input: {},
        problem: 'the arguments are not a JSON object: {"path": "a',
      },
    ]);
  });

  test("arguments that are nested too deeply to be kept are the model's mistake, not the task's failure", async () => {
    const deep = `{"a":${"[".repeat(100)}${"]".repeat(100)}}`;
    const source = await oddProvider([
      delta({ role: "assistant", tool_calls: [call(0, "c", "read_file", deep)] }),
      delta({}, "tool_calls"),
    ]);
    const { reply } = await ask(source);
    expect(reply.toolCalls).toEqual([
      { id: "c", name: "read_file", input: {}, problem: expect.stringContaining("levels deep") },
    ]);
    expect(() => encodeJson(reply, "the reply")).not.toThrow();
  });

  test.each([["content"], ["reasoning_content"]])(
    "ai-sdk-provider-4: a server that never stops (%s) is hung up on",
    async (field) => {
      const gone = Promise.withResolvers<void>();
      odd = createServer((request, response) => {
        request.resume();
        response.on("error", () => {}).on("close", gone.resolve);
        response.writeHead(200, { "content-type": "text/event-stream" });
        const piece = { id: "x", created: 1, model: "m", ...delta({ [field]: "y".repeat(100_000) }) };
        const flood = (): void => {
          while (!response.closed && response.write(`data: ${JSON.stringify(piece)}\n\n`)) {}
          if (!response.closed) response.once("drain", flood);
        };
        flood();
      });
      await new Promise<void>((resolve) => odd?.listen(0, "127.0.0.1", resolve));
      const { port } = odd.address() as AddressInfo;
      const env = { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, HOLDFAST_MODEL: "m" };
      // With the usual time-outs: what ends it here is its length.
      const source = resolveModel(env);
      expect(source === undefined ? undefined : await failure(source)).toMatchObject({
        code: "limit_exceeded",
        expected: expect.stringContaining("payloadChars"),
      });
      await gone.promise;
    },
  );

  test("an answer that was cut off at the limit says so", async () => {
    const { reply } = await ask(
      await oddProvider([delta({ role: "assistant", content: "half of" }), delta({}, "length")]),
    );
    expect(reply).toMatchObject({
      text: "half of",
      finishReason: "length",
      usage: { inputTokens: 0, outputTokens: 0 },
    });
    expect(reply.usage.costMicroUsd).toBeUndefined();
  });

  test.each([
    [401, "{}", "model_auth"],
    [403, "{}", "model_auth"],
    [402, "{}", "quota_exceeded"],
    [429, '{"error":{"message":"no money","code":"insufficient_quota"}}', "quota_exceeded"],
    [404, '{"error":{"message":"no such model"}}', "config_invalid"],
    [400, '{"error":{"message":"too long"}}', "invalid_input"],
    [413, "", "invalid_input"],
    [408, "", "model_unavailable"],
    [503, "<html>", "model_unavailable"],
  ])("status %i", async (status, body, code) => {
    expect(await failure(await oddProvider({ status, body }))).toMatchObject({ code });
  });

  test("a server that quotes the key does not get it into the error", async () => {
    for (const status of [400, 401, 404, 500]) {
      const error = await failure(
        await oddProvider({
          status,
          body: JSON.stringify({
            error: { message: `your key ${CANARY} is bad, ${Buffer.from(CANARY).toString("base64")} too` },
          }),
        }),
      );
      expect(JSON.stringify(recordError(error))).not.toContain(CANARY);
      expect(JSON.stringify(recordError(error))).not.toContain(Buffer.from(CANARY).toString("base64"));
      odd?.close();
    }
  });

  test("a server that is not there", async () => {
    const source = await oddProvider([]);
    await new Promise((resolve) => odd?.close(resolve));
    expect(await failure(source)).toMatchObject({
      code: "model_unavailable",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  });
});

test("the scripted model needs no key", async () => {
  const open = await startScriptedModelServer({ script: () => ({ text: "hi" }) });
  const source = scriptedModel(open.url);
  const reply = { text: "hi", model: "scripted/scripted-model", usage: { costMicroUsd: 0 } };
  expect([source, await ask(source)]).toMatchObject([{ isScripted: true, isPriced: true }, { reply }]);
  expect(source.describe()).toContain("no real model is asked");
  await open.close();
});

test("an input that is none is refused before anybody is asked", async () => {
  for (const input of [
    {},
    { system: "x", messages: [] },
    { system: "x", messages: [{ role: "assistant", content: { text: 1 } }] },
  ]) {
    expect(await failure(provider("anthropic"), input as never)).toMatchObject({ code: "invalid_input" });
  }
  expect(server.requests).toEqual([]);
});
