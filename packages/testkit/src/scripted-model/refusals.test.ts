// script-4: what the real servers refuse is refused. A double that accepts everything proves nothing.

import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import { startScriptedModelServer, type ScriptedModelServer } from "../scripted-model-server.ts";

let server: ScriptedModelServer;
beforeEach(async () => {
  server = await startScriptedModelServer({
    script: () => ({ text: "ok" }),
    models: ["m"],
    apiKeys: ["key"],
  });
});
afterEach(() => server.close());

const user = { role: "user", content: "hi" };
const bodies = {
  anthropic: { model: "m", max_tokens: 10, messages: [user] },
  chat: { model: "m", messages: [user] },
  responses: { model: "m", input: [user] },
};
type WireName = keyof typeof bodies;
const PATHS: Readonly<Record<WireName, string>> = {
  anthropic: "/v1/messages",
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
};

test("the bodies that the tests below spoil are accepted as they are", async () => {
  for (const wire of ["anthropic", "chat", "responses"] as const) {
    expect(await send(wire, bodies[wire])).toMatchObject({ status: 200 });
  }
});

describe("Anthropic messages", () => {
  const toolUse = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "act", input: {} }] };
  const toolResult = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "done" }] };
  const custom = { name: "act", input_schema: { type: "object" } };

  test.each<[string, object, string]>([
    ["no model", { model: undefined }, "model: Field required"],
    ["no max_tokens", { max_tokens: undefined }, "max_tokens: Field required"],
    ["max_tokens 0", { max_tokens: 0 }, "max_tokens: expected an integer greater than 0"],
    ["no messages", { messages: undefined }, "messages: Field required"],
    ["empty messages", { messages: [] }, "messages: at least one message is required"],
    ["messages no list", { messages: "hi" }, "messages: expected a list"],
    [
      "a first message of the assistant",
      { messages: [{ ...user, role: "assistant" }] },
      "first message must use",
    ],
    ["a role unknown here", { messages: [{ ...user, role: "tool" }] }, "messages.0.role"],
    ["system as a role", { messages: [user, { ...user, role: "system" }] }, "messages.1.role"],
    [
      "an empty message",
      { messages: [{ role: "user", content: [] }] },
      "messages.0: all messages must have non-empty",
    ],
    [
      "an empty text",
      { messages: [{ role: "user", content: [{ type: "text", text: "" }] }] },
      "must be non-empty",
    ],
    ["a result without a call", { messages: [user, toolResult] }, "unexpected `tool_use_id` found"],
    [
      "a call without a result",
      { messages: [user, toolUse] },
      "without `tool_result` blocks immediately after: t1",
    ],
    ["a call answered too late", { messages: [user, toolUse, user, toolResult] }, "immediately after: t1"],
    [
      "a call answered twice",
      { messages: [user, toolUse, toolResult, toolResult] },
      "unexpected `tool_use_id`",
    ],
    [
      "a call id used twice",
      { messages: [user, toolUse, toolResult, toolUse, toolResult] },
      "ids must be unique",
    ],
    ["tools of one name", { tools: [custom, custom] }, "Tool names must be unique"],
    ["a tool without a schema", { tools: [{ name: "act" }] }, "tools.0.custom.input_schema: Field required"],
    ["a tool with a bad name", { tools: [{ ...custom, name: "a b" }] }, "tools.0.custom.name"],
  ])("%s", async (_name, change, message) => {
    const reply = await send("anthropic", { ...bodies.anthropic, ...change });
    expect(reply).toMatchObject({
      status: 400,
      body: { type: "error", error: { type: "invalid_request_error" } },
    });
    expect(JSON.stringify(reply.body)).toContain(message);
    expect(server.requests[0]?.conversation).toBeUndefined();
  });

  test("a request without a version is refused", async () => {
    const headers = { "x-api-key": "key" };
    const reply = await fetch(server.url + PATHS.anthropic, {
      method: "POST",
      headers,
      body: JSON.stringify(bodies.anthropic),
    });
    expect(await reply.json()).toMatchObject({ error: { message: "anthropic-version: header is required" } });
  });

  test("text before the results of a tool", async () => {
    const content = [{ type: "text", text: "well" }, ...toolResult.content];
    const reply = await send("anthropic", {
      ...bodies.anthropic,
      messages: [user, toolUse, { role: "user", content }],
    });
    expect(reply.status).toBe(400);
  });

  test("a correct pair of call and result is accepted", async () => {
    const reply = await send("anthropic", { ...bodies.anthropic, messages: [user, toolUse, toolResult] });
    expect(reply.status).toBe(200);
  });
});

describe("OpenAI chat completions", () => {
  const calls = (...ids: string[]) => ({
    role: "assistant",
    content: null,
    tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "act", arguments: "{}" } })),
  });
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "done" });

  test.each<[string, object, string, string | null]>([
    ["no model", { model: undefined }, "you must provide a model parameter", null],
    [
      "no messages",
      { messages: undefined },
      "Missing required parameter: 'messages'.",
      "missing_required_parameter",
    ],
    ["empty messages", { messages: [] }, "empty array", "empty_array"],
    [
      "a role unknown here",
      { messages: [{ ...user, role: "robot" }] },
      "Invalid value: 'robot'",
      "invalid_value",
    ],
    [
      "an assistant that says nothing",
      { messages: [user, { role: "assistant", content: null }] },
      "'content'",
      null,
    ],
    ["a result without a call", { messages: [user, result("c1")] }, "'tool_call_id' of 'c1' not found", null],
    [
      "a result of another call",
      { messages: [user, calls("c1"), result("c2")] },
      "not have response messages: c1",
      null,
    ],
    [
      "a result missing",
      { messages: [user, calls("c1", "c2"), result("c1")] },
      "response messages: c2",
      null,
    ],
    [
      "arguments that are no JSON",
      {
        messages: [user, { ...calls(), tool_calls: [{ id: "c", function: { name: "a", arguments: "{" } }] }],
      },
      "messages[1].tool_calls[0].function.arguments",
      null,
    ],
    [
      "stream options without a stream",
      { stream_options: {} },
      "only allowed when 'stream' is enabled",
      null,
    ],
    ["two choices", { n: 2 }, "'n' must be 1", null],
    ["a stream of maybe", { stream: "maybe" }, "stream: expected a boolean", null],
    [
      "a tool with a bad name",
      { tools: [{ type: "function", function: { name: "a b" } }] },
      "does not match",
      "invalid_value",
    ],
  ])("%s", async (_name, change, message, code) => {
    const reply = await send("chat", { ...bodies.chat, ...change });
    expect(reply).toMatchObject({ status: 400, body: { error: { type: "invalid_request_error", code } } });
    expect(JSON.stringify(reply.body)).toContain(message);
  });

  test("but not parallel calls with their results, in any order", async () => {
    const messages = [user, calls("c1", "c2"), result("c2"), result("c1")];
    expect(await send("chat", { ...bodies.chat, messages })).toMatchObject({ status: 200 });
  });
});

describe("OpenAI responses", () => {
  const call = { type: "function_call", call_id: "c1", name: "act", arguments: "{}" };
  const output = { type: "function_call_output", call_id: "c1", output: "done" };

  test.each<[string, object, string, number]>([
    ["no model", { model: undefined }, "Missing required parameter: 'model'.", 400],
    ["no input", { input: undefined }, "Missing required parameter: 'input'.", 400],
    ["empty input", { input: [] }, "Missing required parameter: 'input'.", 400],
    [
      "an output without a call",
      { input: [user, output] },
      "No tool call found for function call output with call_id c1.",
      400,
    ],
    ["a call without an output", { input: [user, call] }, "No tool output found for function call c1.", 400],
    ["a previous response", { previous_response_id: "resp_1" }, "send the whole conversation", 400],
    ["an item of an unknown type", { input: [user, { type: "robot" }] }, "Invalid value: 'robot'", 400],
    [
      "an item that is not here",
      { input: [{ type: "item_reference", id: "msg_1" }] },
      "'msg_1' not found",
      404,
    ],
  ])("%s", async (_name, change, message, status) => {
    const reply = await send("responses", { ...bodies.responses, ...change });
    expect(reply).toMatchObject({ status, body: { error: { type: "invalid_request_error" } } });
    expect(JSON.stringify(reply.body)).toContain(message);
  });

  test("a correct pair of call and output is accepted", async () => {
    expect(await send("responses", { ...bodies.responses, input: [user, call, output] })).toMatchObject({
      status: 200,
    });
  });
});

describe("on every wire", () => {
  const wires = ["anthropic", "chat", "responses"] as const;
  const types = (wire: WireName, anthropic: string, openai = "invalid_request_error") =>
    wire === "anthropic" ? { type: "error", error: { type: anthropic } } : { error: { type: openai } };

  test.each(wires)("%s: a key that is wrong or missing", async (wire) => {
    for (const key of ["other", null]) {
      const reply = await send(wire, bodies[wire], key);
      expect(reply).toMatchObject({ status: 401, body: types(wire, "authentication_error") });
      expect(JSON.stringify(reply.body)).not.toContain("other");
    }
    if (wire !== "anthropic") {
      expect((await send(wire, bodies[wire], "other")).body).toMatchObject({
        error: { code: "invalid_api_key" },
      });
    }
  });

  test.each(wires)("%s: a model that does not exist", async (wire) => {
    const reply = await send(wire, { ...bodies[wire], model: "other" });
    expect(reply).toMatchObject({ status: 404, body: types(wire, "not_found_error") });
  });

  test.each(wires)("%s: a body that is no JSON object", async (wire) => {
    for (const text of ["", "{", "[]", "null"]) {
      const reply = await send(wire, text);
      expect(reply).toMatchObject({ status: 400, body: types(wire, "invalid_request_error") });
    }
    expect(server.requests.map((request) => request.body)).toEqual([undefined, "{", [], null]);
  });

  test.each(sampled(wires))("%s: a body over 8 MiB, and not one of exactly that size", async (wire) => {
    const text = JSON.stringify(bodies[wire]);
    const padded = text.padEnd(8 * 1024 * 1024);
    expect(await send(wire, padded)).toMatchObject({ status: 200 });
    expect(await send(wire, `${padded} `)).toMatchObject({
      status: 413,
      body: types(wire, "request_too_large"),
    });
    expect(server.requests[1]?.body).toBeUndefined();
  });

  test("a body without end is not read to its end", ofCampaign, async () => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    const block = new Uint8Array(1024 * 1024);
    // Stop after an error: a failed socket fails its pending writes before it is destroyed, so writing again
    // would never end.
    const sendBlocks = (error?: Error | null) => void (error ?? socket.write(block, sendBlocks));
    socket.on("error", () => undefined); // Being reset is the point; the close says that it happened.
    socket.write("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999999\r\n\r\n", sendBlocks);
    await new Promise((resolve) => socket.once("close", resolve));
    expect(server.requests).toEqual([]);
  });

  test.each(wires)("%s: another method", async (wire) => {
    const reply = await fetch(server.url + PATHS[wire], { headers: headersOf(wire, "key") });
    expect(reply.status).toBe(405);
    expect(await reply.json()).toMatchObject(types(wire, "invalid_request_error"));
  });

  test("a path that does not exist, in the format of the client that asks", async () => {
    const anthropic = await fetch(`${server.url}/v1/complete`, {
      method: "POST",
      headers: headersOf("anthropic", "key"),
    });
    expect(anthropic.status).toBe(404);
    expect(await anthropic.json()).toMatchObject({ type: "error", error: { type: "not_found_error" } });

    const openai = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: headersOf("chat", "key"),
    });
    expect(openai.status).toBe(404);
    expect(await openai.json()).toMatchObject({ error: { message: "Invalid URL (POST /v1/completions)" } });
  });

  test("a query after the path is none of its business", async () => {
    const init = {
      method: "POST",
      headers: headersOf("anthropic", "key"),
      body: JSON.stringify(bodies.anthropic),
    };
    expect((await fetch(`${server.url}/v1/messages?beta=true`, init)).status).toBe(200);
    expect(server.requests[0]?.path).toBe("/v1/messages?beta=true");
  });
});

async function send(wire: WireName, body: unknown, key: string | null = "key") {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const reply = await fetch(server.url + PATHS[wire], {
    method: "POST",
    headers: headersOf(wire, key),
    body: text,
  });
  return { status: reply.status, body: await reply.json() };
}

function headersOf(wire: WireName, key: string | null): Record<string, string> {
  const auth: Record<string, string> =
    key === null ? {} : wire === "anthropic" ? { "x-api-key": key } : { authorization: `Bearer ${key}` };
  return {
    "content-type": "application/json",
    ...auth,
    ...(wire === "anthropic" ? { "anthropic-version": "2023-06-01" } : {}),
  };
}
