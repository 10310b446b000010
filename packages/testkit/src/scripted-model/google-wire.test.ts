// Google's format, through the AI SDK and as bytes.

import { createGoogle } from "@ai-sdk/google";
import { generateText, jsonSchema, streamText, tool, isStepCount } from "ai";
import { afterEach, expect, test } from "vitest";
import { startScriptedModelServer, type ScriptedModelServer } from "../scripted-model-server.ts";
import { turns } from "./script.ts";

let server: ScriptedModelServer;
afterEach(() => server.close());

const model = () => createGoogle({ baseURL: server.googleBaseUrl, apiKey: "k" })("gemini-2.5-flash");
const add = tool({
  description: "Add",
  inputSchema: jsonSchema<{ a: number; b: number }>({
    type: "object",
    properties: { a: { type: "number" } },
  }),
  execute: ({ a, b }) => String(a + b),
});

test("parallel calls and their results pair up, and a signature comes back with its call", async () => {
  server = await startScriptedModelServer({
    apiKeys: ["k"],
    script: turns([
      {
        reasoning: "Two sums.",
        text: "I add.",
        toolCalls: [
          { name: "add", input: { a: 1, b: 2 } },
          { name: "add", input: { a: 3, b: 4 } },
        ],
      },
      ({ messages }) => ({
        text:
          messages
            .at(-1)
            ?.toolResults.map(({ text }) => text)
            .join("+") ?? "",
      }),
    ]),
  });
  const { steps } = await generateText({
    model: model(),
    system: "You add.",
    prompt: "hi",
    tools: { add },
    stopWhen: isStepCount(3),
  });
  expect(steps.map(({ text }) => text)).toEqual(["I add.", "3+7"]);
  expect(steps[0]?.reasoningText).toBe("Two sums.");
  expect(server.requests.map(({ path }) => path)).toEqual(
    Array(2).fill("/v1beta/models/gemini-2.5-flash:generateContent"),
  );
  expect(server.requests[0]?.conversation).toMatchObject({ model: "gemini-2.5-flash", system: "You add." });
  expect(JSON.stringify(server.requests[1]?.body)).toMatch(/"thoughtSignature":"signature_[0-9a-f]+"/);
});

test("a stream says what the whole reply says", async () => {
  server = await startScriptedModelServer({ script: () => ({ reasoning: "Hm, ok.", text: "Hello there." }) });
  const whole = await generateText({ model: model(), prompt: "hi" });
  const streamed = streamText({ model: model(), prompt: "hi" });
  expect([await streamed.text, await streamed.reasoningText, await streamed.finishReason]).toEqual([
    whole.text,
    whole.reasoningText,
    whole.finishReason,
  ]);
  expect(await streamed.usage).toEqual(whole.usage);
});

test.each([
  [{}, /contents is not specified/],
  [{ contents: [{ role: "assistant", parts: [{ text: "x" }] }] }, /valid role/],
  [{ contents: [{ role: "user", parts: [] }] }, /must not be empty/],
  [
    { contents: [{ role: "user", parts: [{ functionResponse: { name: "add", response: {} } }] }] },
    /number of function response parts/,
  ],
])("a request that Google refuses is refused: %j", async (body, message) => {
  server = await startScriptedModelServer({ script: () => ({}) });
  const response = await fetch(`${server.googleBaseUrl}/models/m:generateContent`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    error: { code: 400, status: "INVALID_ARGUMENT", message: expect.stringMatching(message) },
  });
});
