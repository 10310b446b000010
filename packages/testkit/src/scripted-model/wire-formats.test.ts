// The bytes on the wire, where they matter. The tests beside the server show that clients understand them.

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { startScriptedModelServer, type ScriptedModelServer } from "../scripted-model-server.ts";
import type { Reply } from "./script.ts";

const REPLY: Reply = {
  reasoning: "Hm, ok.",
  text: "Hi there",
  toolCalls: [
    { name: "read", input: { path: "a" } },
    { name: "stop", input: {} },
  ],
};
/** Ids and keys are hashes: 20 hex digits. */
const HASH = /[0-9a-f]{20}/g;

let server: ScriptedModelServer;
beforeEach(async () => {
  server = await startScriptedModelServer({ script: () => REPLY, models: ["one", "two"] });
});
afterEach(() => server.close());

describe("Anthropic messages", () => {
  const body = { model: "one", max_tokens: 100, messages: [{ role: "user", content: "hi" }] };

  test("a whole reply has the format of the API", async () => {
    const reply = await send("/v1/messages", body);
    expect(reply.headers.get("content-type")).toBe("application/json");
    expect(reply.headers.get("date")).toBeNull();
    expect(JSON.parse(reply.text)).toEqual({
      id: "msg_#",
      type: "message",
      role: "assistant",
      model: "one",
      content: [
        { type: "thinking", thinking: "Hm, ok.", signature: "signature_#" },
        { type: "text", text: "Hi there" },
        { type: "tool_use", id: "toolu_#_0", name: "read", input: { path: "a" } },
        { type: "tool_use", id: "toolu_#_1", name: "stop", input: {} },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: {
        input_tokens: 1,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 10,
      },
    });
  });

  test("a streamed reply has the format of the API", async () => {
    const reply = await send("/v1/messages", { ...body, stream: true });
    expect(reply.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = parseEvents(reply.text);
    expect(events.every(({ event, value }) => event === value["type"])).toBe(true);
    expect(events.map(({ value }) => value)).toEqual([
      expect.objectContaining({
        type: "message_start",
        message: expect.objectContaining({ id: "msg_#", content: [], stop_reason: null }),
      }),
      { type: "ping" },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "thinking", thinking: "", signature: "" },
      },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm," } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: " ok." } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "signature_#" } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Hi" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: " there" } },
      { type: "content_block_stop", index: 1 },
      {
        type: "content_block_start",
        index: 2,
        content_block: { type: "tool_use", id: "toolu_#_0", name: "read", input: {} },
      },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: "" } },
      {
        type: "content_block_delta",
        index: 2,
        delta: { type: "input_json_delta", partial_json: '{"path":"a"}' },
      },
      { type: "content_block_stop", index: 2 },
      {
        type: "content_block_start",
        index: 3,
        content_block: { type: "tool_use", id: "toolu_#_1", name: "stop", input: {} },
      },
      { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: "" } },
      { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: "{}" } },
      { type: "content_block_stop", index: 3 },
      {
        type: "message_delta",
        delta: { stop_reason: "tool_use", stop_sequence: null },
        usage: expect.objectContaining({ output_tokens: 10 }),
      },
      { type: "message_stop" },
    ]);
  });

  test("a message is read whatever form its content has", async () => {
    await send("/v1/messages", {
      ...body,
      system: [
        { type: "text", text: "Be brief." },
        { type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } },
      ],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image", source: {} },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "s" },
            { type: "text", text: "I " },
            { type: "text", text: "look." },
            { type: "tool_use", id: "t1", name: "look", input: { at: 1 } },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "t1",
              is_error: true,
              content: [{ type: "text", text: "dark" }],
            },
            { type: "text", text: "go on" },
          ],
        },
      ],
      tools: [
        { name: "look", input_schema: { type: "object" } },
        { type: "bash_20250124", name: "bash" },
      ],
    });
    expect(server.requests[0]?.conversation).toEqual({
      model: "one",
      system: "Be brief.\nBe kind.",
      messages: [
        { role: "user", text: "look\n[image]", toolCalls: [], toolResults: [] },
        {
          role: "assistant",
          text: "I look.",
          toolCalls: [{ id: "t1", name: "look", input: { at: 1 } }],
          toolResults: [],
        },
        {
          role: "tool",
          text: "",
          toolCalls: [],
          toolResults: [{ toolCallId: "t1", name: "look", text: "dark", isError: true }],
        },
        { role: "user", text: "go on", toolCalls: [], toolResults: [] },
      ],
      tools: [
        { name: "look", description: "", schema: { type: "object" } },
        { name: "bash", description: "", schema: {} },
      ],
    });
  });

  test("models", async () => {
    const reply = await fetch(`${server.url}/v1/models`, { headers: { "anthropic-version": "2023-06-01" } });
    expect(await reply.json()).toMatchObject({
      data: [
        { type: "model", id: "one" },
        { type: "model", id: "two" },
      ],
      has_more: false,
      first_id: "one",
      last_id: "two",
    });
  });
});

describe("OpenAI chat completions", () => {
  const body = { model: "one", messages: [{ role: "user", content: "hi" }] };
  const usage = { prompt_tokens: 1, completion_tokens: 10, total_tokens: 11 };

  test("a whole reply has the format of the API", async () => {
    expect(JSON.parse((await send("/v1/chat/completions", body)).text)).toEqual({
      id: "chatcmpl-#",
      object: "chat.completion",
      created: expect.any(Number),
      model: "one",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hi there",
            refusal: null,
            reasoning_content: "Hm, ok.",
            tool_calls: [
              { id: "call_#_0", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
              { id: "call_#_1", type: "function", function: { name: "stop", arguments: "{}" } },
            ],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: expect.objectContaining(usage),
    });
  });

  test("streamed, with token counts only when asked for", async () => {
    const counted = await send("/v1/chat/completions", {
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(counted.text.endsWith("data: [DONE]\n\n")).toBe(true);
    const chunks = parseEvents(counted.text).map(({ value }) => value);
    expect(chunks.slice(0, -1).map((chunk) => (chunk["choices"] as { delta: unknown }[])[0]?.delta)).toEqual([
      { role: "assistant", content: "" },
      { reasoning_content: "Hm," },
      { reasoning_content: " ok." },
      { content: "Hi" },
      { content: " there" },
      {
        tool_calls: [
          { index: 0, id: "call_#_0", type: "function", function: { name: "read", arguments: "" } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"path":"a"}' } }] },
      {
        tool_calls: [
          { index: 1, id: "call_#_1", type: "function", function: { name: "stop", arguments: "" } },
        ],
      },
      { tool_calls: [{ index: 1, function: { arguments: "{}" } }] },
      {},
    ]);
    expect(chunks.at(-2)).toMatchObject({ choices: [{ finish_reason: "tool_calls" }], usage: null });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage });

    const uncounted = await send("/v1/chat/completions", { ...body, stream: true });
    expect(uncounted.text).not.toContain("usage");
  });

  test("models", async () => {
    const reply = await fetch(`${server.url}/v1/models`);
    expect(await reply.json()).toMatchObject({
      object: "list",
      data: [{ id: "one", object: "model" }, { id: "two" }],
    });
  });
});

describe("OpenAI responses", () => {
  const body = { model: "one", input: "hi" };

  test("a whole reply has the format of the API", async () => {
    expect(JSON.parse((await send("/v1/responses", body)).text)).toMatchObject({
      id: "resp_#",
      object: "response",
      status: "completed",
      output: [
        { type: "reasoning", id: "rs_#", summary: [{ type: "summary_text", text: "Hm, ok." }] },
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "Hi there", annotations: [] }],
        },
        { type: "function_call", id: "fc_#_0", call_id: "call_#_0", name: "read", arguments: '{"path":"a"}' },
        { type: "function_call", id: "fc_#_1", call_id: "call_#_1", name: "stop", arguments: "{}" },
      ],
      usage: {
        input_tokens: 1,
        output_tokens: 10,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 11,
      },
    });
  });

  test("a streamed reply has the format of the API", async () => {
    const events = parseEvents((await send("/v1/responses", { ...body, stream: true })).text);
    expect(events.every(({ event, value }) => event === value["type"])).toBe(true);
    expect(events.map(({ value }) => value["sequence_number"])).toEqual(events.map((_event, index) => index));
    expect(events.map(({ event }) => event.replace("response.", ""))).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.delta",
      "output_text.done",
      "content_part.done",
      "output_item.done",
      ...Array.from({ length: 2 }).flatMap(() => [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
      ]),
      "completed",
    ]);
    const whole: unknown = JSON.parse((await send("/v1/responses", body)).text);
    expect(events.at(-1)?.value["response"]).toEqual(whole);
  });

  test("the id of a message stands for its text, also on a server that never saw it", async () => {
    const { output } = JSON.parse((await send("/v1/responses", body, (text) => text)).text) as {
      output: { type: string; id: string }[];
    };
    await server.close();
    server = await startScriptedModelServer({ script: () => REPLY });
    const references = output.slice(0, 2).map(({ id }) => ({ type: "item_reference", id }));
    await send("/v1/responses", { model: "one", input: [{ role: "user", content: "hi" }, ...references] });

    expect(server.requests[0]?.conversation?.messages.map(({ role, text }) => [role, text])).toEqual([
      ["user", "hi"],
      ["assistant", "Hi there"],
    ]);
  });
});

async function send(path: string, body: unknown, mask = (text: string) => text.replace(HASH, "#")) {
  const headers = { "content-type": "application/json", "anthropic-version": "2023-06-01" };
  const reply = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  expect(reply.status).toBe(200);
  return { headers: reply.headers, text: mask(await reply.text()) };
}

function parseEvents(text: string): readonly { event: string; value: Record<string, unknown> }[] {
  return text
    .split("\n\n")
    .filter((frame) => frame !== "" && frame !== "data: [DONE]")
    .map((frame) => ({
      event: /^event: (.*)$/m.exec(frame)?.[1] ?? "",
      value: JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "") as Record<string, unknown>,
    }));
}
