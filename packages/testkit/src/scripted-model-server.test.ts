// The server as users meet it: through the AI SDK, over every wire. Formats in detail are tested beside the
// wires.

import { connect } from "node:net";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  generateText,
  isStepCount,
  jsonSchema,
  streamText,
  tool,
  type LanguageModel,
  type StopCondition,
  type ToolSet,
} from "ai";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import {
  startScriptedModelServer,
  type ScriptedModelServer,
  type ScriptedModelServerOptions,
} from "./scripted-model-server.ts";
import type { Conversation } from "./scripted-model/conversation.ts";
import type { ModelFault } from "./scripted-model/faults.ts";
import { turns, type Reply, type ModelScript } from "./scripted-model/script.ts";

const KEY = "key-of-the-test";

/** Every way the AI SDK reaches a model, and the path it is known to take. */
const WAYS = [
  { way: "anthropic", path: "/v1/messages" },
  { way: "openai", path: "/v1/responses" },
  { way: "openai reasoning model", path: "/v1/responses" },
  { way: "openai.chat", path: "/v1/chat/completions" },
  { way: "openai-compatible", path: "/v1/chat/completions" },
] as const;
type Way = (typeof WAYS)[number]["way"];

let server: ScriptedModelServer;
afterEach(() => server.close());

describe.each(WAYS)("through $way", ({ way, path }) => {
  test("text arrives whole and streamed, by the path this provider takes", async () => {
    await start({ script: () => ({ text: "Hello there, dear world." }) });

    const whole = await generateText({ model: modelFor(way), prompt: "hi" });
    const streamed = await stream(way, { prompt: "hi" });

    expect(whole.text).toBe("Hello there, dear world.");
    expect(streamed.deltas).toEqual(["Hello", " there,", " dear", " world."]);
    expect(streamed.finishReason).toBe("stop");
    expect(server.requests.map((request) => [request.method, request.path])).toEqual([
      ["POST", path],
      ["POST", path],
    ]);
  });

  test("parallel tool calls run, and their results reach the next turn of the script", async () => {
    await start({ script: sumScript });

    const whole = await generateText({ model: modelFor(way), ...sumTask });
    const streamed = await stream(way, sumTask);

    expect(whole.text).toBe("The sums are 3 and 7.");
    expect(whole.steps.map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
    expect(whole.steps[0]?.toolCalls.map((call) => call.input)).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]);
    expect(streamed.text).toBe(whole.steps.map((step) => step.text).join(""));
    expect(server.requests).toHaveLength(4);
  });

  test("a stream says what the whole reply says, whatever it is", ofCampaign, async () => {
    let reply: Reply = {};
    await start({ script: () => reply });
    const tools: ToolSet = { act: tool({ inputSchema: jsonSchema<object>({ type: "object" }) }) };

    await fc.assert(
      fc.asyncProperty(arbitraryReply, async (generated) => {
        reply = generated;
        const whole = await generateText({ model: modelFor(way), prompt: "hi", tools });
        const streamed = await stream(way, { prompt: "hi", tools });
        expect(streamed.text).toBe(whole.text);
        expect(whole.text).toBe(generated.text ?? "");
        expect(streamed.reasoning).toBe(whole.reasoningText ?? "");
        expect(streamed.toolCalls).toEqual(
          whole.toolCalls.map(({ toolCallId, input }) => ({ toolCallId, input })),
        );
        expect(whole.toolCalls.map((call) => call.input)).toEqual(
          (generated.toolCalls ?? []).map((call) => JSON.parse(JSON.stringify(call.input))),
        );
        expect(streamed.finishReason).toBe(whole.finishReason);
        expect(streamed.usage).toEqual(whole.usage);
      }),
      { numRuns: 15 },
    );
  });

  // A durable agent depends on this: it retries, or another process resumes it with a server that never saw
  // the first half.
  test("the same request gets the same bytes, again and from another server", async () => {
    await start({ script: sumScript });
    await generateText({ model: modelFor(way), ...sumTask });
    await stream(way, sumTask);
    const recorded = [...server.requests];
    const first = await Promise.all(recorded.map(({ body }) => send(path, body)));
    const second = await Promise.all(recorded.map(({ body }) => send(path, body)));
    await server.close();
    await start({ script: sumScript });
    const elsewhere = await Promise.all(recorded.map(({ body }) => send(path, body)));

    expect(first.map((reply) => reply.status)).toEqual([200, 200, 200, 200]);
    expect(second).toEqual(first);
    expect(elsewhere).toEqual(first);
  });

  test("output ends at the tokens the caller allows", async () => {
    await start({ script: () => ({ text: "one two three four five six seven" }) });

    // A token is four characters here.
    const { text, finishReason, usage } = await generateText({
      model: modelFor(way),
      prompt: "hi",
      maxOutputTokens: 5,
    });

    expect(text).toBe("one two three four f");
    expect(finishReason).toBe("length");
    expect(usage.outputTokens).toBe(5);
  });

  test("a wrong key is refused, the right one is not", async () => {
    await start({ script: () => ({ text: "in" }), apiKeys: [KEY] });

    const error = await errorOf(generateText({ model: modelFor(way, "another-key"), prompt: "hi" }));
    expect(error).toMatchObject({
      statusCode: 401,
      isRetryable: false,
      message: "Incorrect API key provided",
    });
    expect((await generateText({ model: modelFor(way), prompt: "hi" })).text).toBe("in");
  });

  test("a mistake in the script is the caller's error at once, without retries", async () => {
    await start({ script: turns([]) });

    const error = await errorOf(generateText({ model: modelFor(way), prompt: "hi" }));
    expect(error.message).toContain("The script failed: the script has 0 turns");
    expect(error.statusCode).toBe(400);
    expect(server.requests).toHaveLength(1);
  });

  describe("faults", () => {
    test.each<[ModelFault, object]>([
      [{ type: "unauthorized" }, { statusCode: 401, isRetryable: false }],
      [
        { type: "rate_limited", retryAfterSeconds: 7 },
        { statusCode: 429, isRetryable: true, responseHeaders: { "retry-after": "7" } },
      ],
      [{ type: "server_error" }, { statusCode: 500, isRetryable: true }],
      [
        { type: "server_error", status: 529 },
        { statusCode: 529, isRetryable: true, message: "Overloaded" },
      ],
      [
        { type: "stream_error", status: 529 },
        { statusCode: 529, isRetryable: true },
      ],
      [{ type: "cut" }, { statusCode: undefined, isRetryable: true }],
      [
        { type: "cut", afterChunks: 1 },
        { statusCode: 200, isRetryable: true },
      ],
      [{ type: "garbage" }, { statusCode: 200, message: "Invalid JSON response" }],
      [{ type: "malformed" }, { statusCode: 200, message: "Invalid JSON response" }],
    ])("%j fails a whole reply", async (fault, expected) => {
      await start({ script: () => ({ text: "one two three" }), faults: { 1: fault } });

      expect(
        await errorOf(generateText({ model: modelFor(way), prompt: "hi", maxRetries: 0 })),
      ).toMatchObject(expected);
      expect((await generateText({ model: modelFor(way), prompt: "hi" })).text).toBe("one two three");
    });

    test("the SDK waits as long as `retry-after` says and succeeds", async () => {
      const faults = { 1: { type: "rate_limited", retryAfterSeconds: 0 } } as const;
      await start({ script: () => ({ text: "at last" }), faults });

      expect((await generateText({ model: modelFor(way), prompt: "hi" })).text).toBe("at last");
      expect(server.requests).toHaveLength(2);
    });

    test("a stream that is cut delivers what was sent, and then an error", async () => {
      await start({ script: () => ({ text: TEN_WORDS }) });
      server.setFaults({ 1: { type: "cut", afterChunks: 7 } });

      const { text, errors } = await stream(way, { prompt: "hi" });

      expect(text).toMatch(/^one two/);
      expect(text).not.toContain("ten");
      expect(errors).toEqual([expect.objectContaining({ statusCode: 200, isRetryable: true })]);
    });

    test("a malformed event loses its words and is reported", async () => {
      await start({ script: () => ({ text: TEN_WORDS }) });
      server.setFaults({ 1: { type: "malformed", afterChunks: 5 } });

      const { text, errors } = await stream(way, { prompt: "hi" });

      expect(text.length).toBeLessThan(TEN_WORDS.length);
      expect(errors).toEqual([expect.objectContaining({ name: "AI_JSONParseError" })]);
    });

    test("an error in the stream is reported as one", async () => {
      await start({ script: () => ({ text: TEN_WORDS }) });
      server.setFaults({ 1: { type: "stream_error", afterChunks: 7, status: 529 } });

      const { text, errors, finishReason } = await stream(way, { prompt: "hi" });

      expect(text).toMatch(/^one/);
      expect(text).not.toContain("ten");
      expect(errors).toEqual([expect.objectContaining({ message: "Overloaded", isRetryable: true })]);
      expect(finishReason).toBe("error");
    });

    test("a garbage stream yields nothing, and does not pass for a finished one", async () => {
      await start({ script: () => ({ text: "one two" }), faults: { 1: { type: "garbage" } } });

      const { text, finishReason } = await stream(way, { prompt: "hi" });

      expect(text).toBe("");
      expect(finishReason).not.toBe("stop");
    });

    test("a slow server answers in the end, and can be given up on", async () => {
      await start({ script: () => ({ text: "late" }), faults: { 1: { type: "slow", delayMs: 1 } } });
      expect((await generateText({ model: modelFor(way), prompt: "hi" })).text).toBe("late");

      const giveUp = new AbortController();
      server.setFaults(() => {
        giveUp.abort();
        return { type: "slow", delayMs: 600_000 };
      });
      const error = await generateText({
        model: modelFor(way),
        prompt: "hi",
        abortSignal: giveUp.signal,
      }).catch(nameOf);
      expect(error).toBe("AbortError");
    });

    test("a hanging stream sends its first events and then nothing until the server closes", async () => {
      await start({ script: () => ({ text: TEN_WORDS }), faults: { 1: { type: "hang", afterChunks: 6 } } });

      const { text, errors } = await stream(way, { prompt: "hi", onDelta: () => void server.close() });

      expect(text).toMatch(/^one/);
      expect(text).not.toContain("ten");
      expect(errors).toEqual([expect.objectContaining({ isRetryable: true })]);
    });
  });
});

test("every wire shows the script the same conversation", async () => {
  const seen = new Map<Way, readonly Conversation[]>();
  for (const { way } of WAYS) {
    await start({ script: sumScript });
    await generateText({ model: modelFor(way), ...sumTask, system: "Be brief." });
    seen.set(
      way,
      server.requests.map((request) => request.conversation!),
    );
    await server.close();
  }

  const [first, ...others] = [...seen.values()].map(withoutIds);
  for (const other of others) expect(other).toEqual(first);
  expect(first).toMatchObject([
    { system: "Be brief.", messages: [{ role: "user", text: "Add them." }], tools: [{ name: "add" }] },
    {
      messages: [
        { role: "user" },
        { role: "assistant" },
        { role: "tool", toolResults: [{ text: "3" }, { text: "7" }] },
      ],
    },
  ]);
});

describe("the server itself", () => {
  test("a script that counts its calls is refused, because a retry would get another reply", async () => {
    let calls = 0;
    await start({ script: () => ({ text: `call ${++calls}` }) });

    const error = await errorOf(generateText({ model: modelFor("anthropic"), prompt: "hi" }));
    expect(error.message).toContain("two different replies to the same conversation");
  });

  test("fault numbers count from the last `setFaults`", async () => {
    const fault = { type: "server_error" } as const;
    await start({ script: () => ({ text: "ok" }), faults: { 2: fault } });
    const ask = () =>
      generateText({ model: modelFor("anthropic"), prompt: "hi", maxRetries: 0 }).then(textOf, nameOf);

    expect([await ask(), await ask(), await ask()]).toEqual(["ok", "AI_APICallError", "ok"]);
    server.setFaults({ 1: fault });
    expect([await ask(), await ask()]).toEqual(["AI_APICallError", "ok"]);
    server.setFaults();
    expect(await ask()).toBe("ok");
  });

  test("requests are recorded with what was sent, also those that fail", async () => {
    await start({ script: () => ({ text: "ok" }), faults: { 1: { type: "cut" } } });
    await generateText({ model: modelFor("anthropic"), prompt: "hi", maxRetries: 0 }).catch(nameOf);

    expect(server.requests).toEqual([
      {
        method: "POST",
        path: "/v1/messages",
        headers: expect.objectContaining({ "x-api-key": KEY, "content-type": "application/json" }),
        body: expect.objectContaining({ model: "claude-sonnet-4-5" }),
        conversation: expect.objectContaining({ model: "claude-sonnet-4-5", messages: [expect.anything()] }),
      },
    ]);
  });

  test("a pause between events changes nothing in them", async () => {
    await start({ script: () => ({ text: "one two" }), chunkDelayMs: 1 });
    expect((await stream("anthropic", { prompt: "hi" })).deltas).toEqual(["one", " two"]);
  });

  test("closing ends requests that hang, idle connections and half-sent requests", async () => {
    const arrived = Promise.withResolvers<void>();
    await start({
      script: () => ({}),
      faults: (_request, number) => {
        if (number < 2) return undefined;
        arrived.resolve();
        return { type: "hang" };
      },
    });
    await generateText({ model: modelFor("anthropic"), prompt: "leaves an idle connection behind" });
    const hanging = errorOf(generateText({ model: modelFor("anthropic"), prompt: "hi", maxRetries: 0 }));
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    const socketClosed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined); // Which of end and reset a client sees is up to the kernel.
    await new Promise<void>((resolve) =>
      socket.write("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{", () => resolve()),
    );
    await arrived.promise;

    await Promise.all([server.close(), server.close()]);

    await socketClosed;
    expect(await hanging).toMatchObject({ isRetryable: true, statusCode: undefined });
    await expect(fetch(server.url)).rejects.toMatchObject({ cause: { code: "ECONNREFUSED" } });
  });

  test("a port that is taken is an error, not another port", async () => {
    await start({ script: () => ({}) });
    const port = Number(new URL(server.url).port);
    await expect(startScriptedModelServer({ script: () => ({}), port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });
});

/** Enough words that a fault after seven events, some of them without words, hits in the middle. */
const TEN_WORDS = "one two three four five six seven eight nine ten";

const sumScript: ModelScript = turns([
  {
    reasoning: "Two additions at once.",
    text: "Let me add.",
    toolCalls: [
      { name: "add", input: { a: 1, b: 2 } },
      { name: "add", input: { a: 3, b: 4 } },
    ],
  },
  ({ messages }) => ({
    text: `The sums are ${messages
      .at(-1)
      ?.toolResults.map((result) => result.text)
      .join(" and ")}.`,
  }),
]);

const sumTask = {
  prompt: "Add them.",
  stopWhen: isStepCount(5),
  tools: {
    add: tool({
      description: "Add two numbers.",
      inputSchema: jsonSchema<{ a: number; b: number }>({
        type: "object",
        properties: { a: { type: "number" }, b: { type: "number" } },
        required: ["a", "b"],
        additionalProperties: false,
      }),
      execute: async ({ a, b }) => a + b,
    }),
  },
};

const arbitraryReply: fc.Arbitrary<Reply> = fc.record(
  {
    text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
    reasoning: fc.lorem({ maxCount: 5 }),
    toolCalls: fc.array(
      fc.record({
        name: fc.constant("act"),
        // The SDK refuses keys that could reach a prototype, at any depth.
        input: fc
          .dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 })
          .filter((input) => !/"(__proto__|constructor)"/.test(JSON.stringify(input))),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  },
  { requiredKeys: ["text"] },
);

async function start(options: ScriptedModelServerOptions): Promise<void> {
  server = await startScriptedModelServer(options);
}

function modelFor(way: Way, apiKey = KEY): LanguageModel {
  const anthropic = createAnthropic({ baseURL: server.anthropicBaseUrl, apiKey });
  const openai = createOpenAI({ baseURL: server.openaiBaseUrl, apiKey });
  switch (way) {
    case "anthropic":
      return anthropic("claude-sonnet-4-5");
    case "openai":
      return openai("gpt-4o");
    case "openai reasoning model":
      return openai("gpt-5");
    case "openai.chat":
      return openai.chat("gpt-4o");
    case "openai-compatible":
      return createOpenAICompatible({
        name: "local",
        baseURL: server.openaiBaseUrl,
        apiKey,
        includeUsage: true,
      })("any");
  }
}

interface Asked {
  readonly prompt: string;
  readonly tools?: ToolSet;
  readonly stopWhen?: StopCondition<ToolSet>;
  readonly onDelta?: () => void;
}

/** Everything a stream says, errors included, whether the SDK reports them in the stream or by throwing. */
async function stream(way: Way, { onDelta, ...asked }: Asked) {
  const result = streamText({ ...asked, model: modelFor(way), maxRetries: 0, onError: () => undefined });
  const deltas: string[] = [];
  const toolCalls: unknown[] = [];
  const errors: unknown[] = [];
  let reasoning = "";
  let finishReason: string | undefined;
  let usage: unknown;
  try {
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") {
        deltas.push(part.text);
        onDelta?.();
      }
      if (part.type === "reasoning-delta") reasoning += part.text;
      if (part.type === "tool-call") toolCalls.push({ toolCallId: part.toolCallId, input: part.input });
      if (part.type === "error") errors.push(part.error);
      if (part.type === "finish-step") usage = part.usage;
      if (part.type === "finish") finishReason = part.finishReason;
    }
  } catch (error) {
    errors.push(error);
  }
  return { text: deltas.join(""), deltas, reasoning, toolCalls, errors, finishReason, usage };
}

async function send(path: string, body: unknown) {
  const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
  const reply = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: reply.status, headers: Object.fromEntries(reply.headers), body: await reply.text() };
}

async function errorOf(promise: PromiseLike<unknown>): Promise<APICallError> {
  const error: unknown = await Promise.resolve(promise).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!APICallError.isInstance(error)) throw new Error("expected an APICallError", { cause: error });
  return error;
}

function textOf({ text }: { readonly text: string }): string {
  return text;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : String(error);
}

/** The conversations without the details of one wire: ids, the model's name, the form of a schema. */
function withoutIds(conversations: readonly Conversation[]): unknown {
  const hidden = new Set(["id", "toolCallId", "model", "schema"]);
  return JSON.parse(
    JSON.stringify(conversations, (key, value: unknown) => (hidden.has(key) ? undefined : value)),
  );
}
