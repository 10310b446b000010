// OpenAI's Responses API, which `createOpenAI()(model)` of the AI SDK speaks by default.
//
// The real server keeps what it said, and clients send back only the id of an item (`item_reference`).
// Keeping it here would break script-1: another process would not know the item. The id of a message
// therefore carries its text. Ids grow with the texts; the clients met so far do not mind.
//
// Not read: `tool_choice`, `text.format`, sampling parameters. `previous_response_id` and `conversation` are
// refused, because the reply has to depend on what is sent. Tools that are not functions are not shown to the
// script.

import { defined } from "@holdfast/core";
import type { ConversationTool, MessagePiece } from "./conversation.ts";
import {
  encodeOpenaiError,
  encodeOpenaiModels,
  readParts,
  readTool,
  refuseMissing,
  toConversation,
} from "./openai-format.ts";
import { splitEvenly, splitWords, type Answer } from "./script.ts";
import {
  CREATED_AT_SECONDS,
  parseArguments,
  readBearer,
  readFlag,
  readTokensMax,
  refuse,
  requireList,
  requireObject,
  requireString,
  type JsonObject,
  type ModelRequest,
  type Wire,
} from "./wire.ts";

export const openaiResponsesWire: Wire = {
  path: "/v1/responses",
  readKey: readBearer,
  readRequest,
  encodeWhole: ({ conversation }, answer) => encodeResponse(conversation.model, answer),
  encodeStream,
  encodeError: encodeOpenaiError,
  encodeStreamError: ({ message, code, param }) =>
    encodeEvent({ type: "error", code: code ?? "server_error", message, param: param ?? null }, 0),
  encodeModels: encodeOpenaiModels,
};

function readRequest(body: JsonObject): ModelRequest {
  if (body["model"] === undefined) refuseMissing("model");
  if (body["input"] === undefined) refuseMissing("input");
  for (const param of ["previous_response_id", "conversation"]) {
    const isGiven = body[param] !== undefined && body[param] !== null;
    if (isGiven)
      refuse(`'${param}' is not supported: nothing is stored here, send the whole conversation`, { param });
  }

  const systemParts =
    body["instructions"] == null ? [] : [requireString(body["instructions"], "instructions")];
  const pieces: MessagePiece[] = [];
  const input = body["input"];
  const items = typeof input === "string" ? [{ role: "user", content: input }] : requireList(input, "input");
  for (const [index, value] of items.entries()) {
    const where = `input[${index}]`;
    const item = requireObject(value, where);
    if (item["role"] === "system" || item["role"] === "developer") {
      systemParts.push(readParts(item["content"], `${where}.content`));
    } else {
      pieces.push(readItem(item, where));
    }
  }
  if (pieces.length === 0 && systemParts.length === 0) refuseMissing("input");

  const tools = requireList(body["tools"] ?? [], "tools").flatMap((value, index) => {
    const tool = requireObject(value, `tools[${index}]`);
    if (tool["type"] === "namespace") return readNamespace(tool, `tools[${index}]`);
    return tool["type"] === "function" ? [readTool(tool, `tools[${index}]`)] : [];
  });
  return {
    conversation: toConversation(body, {
      systemParts,
      pieces,
      tools,
      mismatches: MISMATCHES,
      param: "input",
    }),
    isStreaming: readFlag(body["stream"], "stream"),
    tokensMax: readTokensMax(body["max_output_tokens"], "max_output_tokens"),
    wantsStreamUsage: true,
  };
}

/** Its tools are `NAMESPACE.NAME` for the script. */
function readNamespace(group: JsonObject, where: string): readonly ConversationTool[] {
  const namespace = requireString(group["name"], `${where}.name`);
  return requireList(group["tools"], `${where}.tools`).map((value, index) => {
    const tool = readTool(requireObject(value, `${where}.tools[${index}]`), `${where}.tools[${index}]`);
    return { ...tool, name: `${namespace}.${tool.name}` };
  });
}

function readItem(item: JsonObject, where: string): MessagePiece {
  const type = requireString(item["type"] ?? "message", `${where}.type`);
  switch (type) {
    case "message": {
      const role = requireString(item["role"], `${where}.role`);
      if (role !== "user" && role !== "assistant") {
        return refuse(`Invalid value: '${role}'.`, { param: `${where}.role`, code: "invalid_value" });
      }
      return { role, text: readParts(item["content"], `${where}.content`) };
    }
    case "function_call": {
      const id = requireString(item["call_id"], `${where}.call_id`);
      const own = requireString(item["name"], `${where}.name`);
      const { namespace } = item;
      const name = typeof namespace === "string" ? `${namespace}.${own}` : own;
      const text = requireString(item["arguments"], `${where}.arguments`);
      return {
        role: "assistant",
        toolCalls: [{ id, name, input: parseArguments(text, `${where}.arguments`) }],
      };
    }
    case "function_call_output": {
      const toolCallId = requireString(item["call_id"], `${where}.call_id`);
      const text = readParts(item["output"], `${where}.output`);
      return { role: "tool", toolResults: [{ toolCallId, text, isError: false }] };
    }
    case "reasoning":
      return { role: "assistant" };
    case "item_reference":
      return { role: "assistant", text: readReference(requireString(item["id"], `${where}.id`)) };
    default:
      return refuse(`Invalid value: '${type}'.`, { param: `${where}.type`, code: "invalid_value" });
  }
}

const MISMATCHES = {
  repeated_call: "Duplicate function call id '{id}' in 'input'.",
  missing_result: "No tool output found for function call {id}.",
  unknown_call: "No tool call found for function call output with call_id {id}.",
};

function messageId({ key, text }: Answer): string {
  return `msg_${key}_${Buffer.from(text).toString("base64url")}`;
}

function readReference(id: string): string {
  if (/^rs_[0-9a-f]{20}$/.test(id)) return "";
  const encoded = /^msg_[0-9a-f]{20}_([\w-]*)$/.exec(id)?.[1];
  if (encoded === undefined) refuse(`Item with id '${id}' not found.`, { status: 404, param: "input" });
  return Buffer.from(encoded, "base64url").toString();
}

function encodeResponse(model: string, answer: Answer): JsonObject {
  const cuts: Partial<Record<Answer["stopReason"], string>> = {
    max_tokens: "max_output_tokens",
    refusal: "content_filter",
  };
  const cut = cuts[answer.stopReason];
  return {
    ...encodeHead(model, answer),
    status: cut === undefined ? "completed" : "incomplete",
    incomplete_details: cut === undefined ? null : { reason: cut },
    output: encodeItems(answer).map(({ item }) => item),
    usage: {
      input_tokens: answer.inputTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: answer.outputTokens,
      output_tokens_details: { reasoning_tokens: answer.reasoningTokens },
      total_tokens: answer.inputTokens + answer.outputTokens,
    },
  };
}

function encodeHead(model: string, answer: Answer): JsonObject {
  const head = { id: `resp_${answer.key}`, object: "response", created_at: CREATED_AT_SECONDS, model };
  return { ...head, status: "in_progress", error: null, incomplete_details: null, output: [], usage: null };
}

function encodeStream({ conversation }: ModelRequest, answer: Answer): readonly string[] {
  const head = encodeHead(conversation.model, answer);
  const response = encodeResponse(conversation.model, answer);
  const events: JsonObject[] = [
    { type: "response.created", response: head },
    { type: "response.in_progress", response: head },
  ];
  for (const [index, { item, opening, growth }] of encodeItems(answer).entries()) {
    events.push({ type: "response.output_item.added", output_index: index, item: opening });
    events.push(...growth.map((event) => ({ ...event, item_id: item["id"], output_index: index })));
    events.push({ type: "response.output_item.done", output_index: index, item });
  }
  events.push({ type: `response.${String(response["status"])}`, response });
  return events.map(encodeEvent);
}

interface EncodedItem {
  /** The item as a whole response has it. */
  readonly item: JsonObject;
  /** The item as a stream begins it, and the events in which it grows. */
  readonly opening: JsonObject;
  readonly growth: readonly JsonObject[];
}

function encodeItems(answer: Answer): readonly EncodedItem[] {
  const items: EncodedItem[] = [];
  if (answer.reasoning !== "") items.push(encodeReasoning(answer));
  if (answer.text !== "") items.push(encodeMessage(answer));
  items.push(...answer.toolCalls.map(encodeCall));
  return items;
}

function encodeReasoning({ key, reasoning }: Answer): EncodedItem {
  const part = { type: "summary_text", text: reasoning };
  const opening = { type: "reasoning", id: `rs_${key}`, summary: [] };
  const grow = (type: string, more: JsonObject) => ({
    type: `response.reasoning_summary_${type}`,
    summary_index: 0,
    ...more,
  });
  return {
    item: { ...opening, summary: [part] },
    opening,
    growth: [
      grow("part.added", { part: { ...part, text: "" } }),
      ...splitWords(reasoning).map((delta) => grow("text.delta", { delta })),
      grow("text.done", { text: reasoning }),
      grow("part.done", { part }),
    ],
  };
}

function encodeMessage(answer: Answer): EncodedItem {
  const { text } = answer;
  const part = { type: "output_text", text, annotations: [] };
  const opening = {
    type: "message",
    id: messageId(answer),
    status: "in_progress",
    role: "assistant",
    content: [],
  };
  const grow = (type: string, more: JsonObject) => ({ type: `response.${type}`, content_index: 0, ...more });
  return {
    item: { ...opening, status: "completed", content: [part] },
    opening,
    growth: [
      grow("content_part.added", { part: { ...part, text: "" } }),
      ...splitWords(text).map((delta) => grow("output_text.delta", { delta })),
      grow("output_text.done", { text }),
      grow("content_part.done", { part }),
    ],
  };
}

function encodeCall({ suffix, name, inputJson }: Answer["toolCalls"][number]): EncodedItem {
  const type = "response.function_call_arguments";
  const [own, namespace] = name.split(".").reverse();
  const head = {
    type: "function_call",
    id: `fc_${suffix}`,
    call_id: `call_${suffix}`,
    name: own,
    ...defined({ namespace }),
  };
  return {
    item: { ...head, status: "completed", arguments: inputJson },
    opening: { ...head, status: "in_progress", arguments: "" },
    growth: [
      ...splitEvenly(inputJson).map((delta) => ({ type: `${type}.delta`, delta })),
      { type: `${type}.done`, arguments: inputJson },
    ],
  };
}

function encodeEvent(event: JsonObject, index: number): string {
  const { type, ...rest } = event;
  return `event: ${String(type)}\ndata: ${JSON.stringify({ type, sequence_number: index, ...rest })}\n\n`;
}
