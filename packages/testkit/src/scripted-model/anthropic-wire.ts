// Anthropic's Messages API, as far as text, thinking and tools go.
//
// Not read: `tool_choice`, `thinking`, `stop_sequences`, sampling parameters. The script sees Anthropic's own
// tools (those with their own `type`) with an empty schema. The server never invents a result of such a tool.

import {
  findToolMismatch,
  joinMessages,
  type ConversationTool,
  type MessagePiece,
  type Role,
  type ToolMismatch,
} from "./conversation.ts";
import { splitEvenly, splitWords, type Answer, type StopReason } from "./script.ts";
import {
  CREATED_AT_SECONDS,
  isObject,
  readBearer,
  readFlag,
  readTokensMax,
  refuse,
  requireList,
  requireObject,
  requireString,
  type JsonObject,
  type ModelRequest,
  type Refusal,
  type RequestHeaders,
  type Wire,
} from "./wire.ts";

export const anthropicWire: Wire = {
  path: "/v1/messages",
  readKey: (headers) => headers["x-api-key"] ?? readBearer(headers),
  readRequest,
  encodeWhole,
  encodeStream,
  encodeError,
  encodeStreamError: (refusal) => encodeEvent(encodeError(refusal)),
  encodeModels,
};

function readRequest(body: JsonObject, headers: RequestHeaders): ModelRequest {
  if (headers["anthropic-version"] === undefined) refuse("anthropic-version: header is required");
  if (body["model"] === undefined) refuse("model: Field required");
  if (body["max_tokens"] === undefined) refuse("max_tokens: Field required");
  if (body["messages"] === undefined) refuse("messages: Field required");

  const allowsSystemMessages = (headers["anthropic-beta"] ?? "").includes("mid-conversation-system");
  const systemParts = readSystem(body["system"]);
  const pieces: MessagePiece[] = [];
  const list = requireList(body["messages"], "messages");
  for (const [index, value] of list.entries()) {
    const where = `messages.${index}`;
    const message = requireObject(value, where);
    const blocks = readBlocks(message["content"], `${where}.content`);
    const role = requireString(message["role"], `${where}.role`);
    if (role === "system" && allowsSystemMessages) {
      systemParts.push(...blocks.map((block) => readText(block, where)));
      continue;
    }
    if (role !== "user" && role !== "assistant")
      refuse(`${where}.role: Input should be 'user' or 'assistant'`);
    if (blocks.length === 0 && !(role === "assistant" && index === list.length - 1)) {
      refuse(
        `${where}: all messages must have non-empty content except for the optional final assistant message`,
      );
    }
    // An empty piece first: a message counts even if nothing in it concerns us.
    pieces.push({ role: isResult(blocks[0]) ? "tool" : role });
    pieces.push(...blocks.map((block, at) => readBlock(block, role, `${where}.content.${at}`)));
  }
  if (pieces.length === 0) refuse("messages: at least one message is required");
  if (pieces[0]?.role === "assistant") refuse('messages: first message must use the "user" role');

  const messages = joinMessages(pieces);
  const mismatch = findToolMismatch(messages);
  if (mismatch !== undefined) refuse(describeMismatch(mismatch));

  return {
    conversation: {
      model: requireString(body["model"], "model"),
      system: systemParts.join("\n"),
      messages,
      tools: readTools(body["tools"]),
    },
    isStreaming: readFlag(body["stream"], "stream"),
    tokensMax: readTokensMax(body["max_tokens"], "max_tokens"),
    wantsStreamUsage: true,
  };
}

function readSystem(value: unknown): string[] {
  if (value === undefined) return [];
  return readBlocks(value, "system").map((block, index) => readText(block, `system.${index}`));
}

function readBlocks(value: unknown, where: string): readonly JsonObject[] {
  if (typeof value === "string") return value === "" ? [] : [{ type: "text", text: value }];
  return requireList(value, where).map((block, index) => requireObject(block, `${where}.${index}`));
}

function readBlock(block: JsonObject, role: Role, where: string): MessagePiece {
  switch (block["type"]) {
    case "text":
      return { role, text: readText(block, where) };
    case "thinking":
    case "redacted_thinking":
      return { role };
    case "tool_use": {
      if (role !== "assistant") refuse(`${where}: \`tool_use\` blocks can only be in \`assistant\` messages`);
      const id = requireString(block["id"], `${where}.tool_use.id`);
      const name = requireString(block["name"], `${where}.tool_use.name`);
      return {
        role,
        toolCalls: [{ id, name, input: requireObject(block["input"], `${where}.tool_use.input`) }],
      };
    }
    case "tool_result": {
      if (role !== "user") refuse(`${where}: \`tool_result\` blocks can only be in \`user\` messages`);
      const toolCallId = requireString(block["tool_use_id"], `${where}.tool_result.tool_use_id`);
      const content =
        block["content"] === undefined ? [] : readBlocks(block["content"], `${where}.tool_result.content`);
      const text = content
        .map((part, index) => readText(part, `${where}.tool_result.content.${index}`))
        .join("\n");
      return { role: "tool", toolResults: [{ toolCallId, text, isError: block["is_error"] === true }] };
    }
    default:
      return { role, text: `[${requireString(block["type"], `${where}.type`)}]` };
  }
}

function isResult(block: JsonObject | undefined): boolean {
  return block?.["type"] === "tool_result";
}

function readText(block: JsonObject, where: string): string {
  if (block["type"] !== "text") return `[${requireString(block["type"], `${where}.type`)}]`;
  const text = requireString(block["text"], `${where}.text`);
  return text === "" ? refuse(`${where}: text content blocks must be non-empty`) : text;
}

function readTools(value: unknown): readonly ConversationTool[] {
  if (value === undefined) return [];
  const tools = requireList(value, "tools").map((item, index): ConversationTool => {
    const tool = requireObject(item, `tools.${index}`);
    const isCustom = tool["type"] === undefined || tool["type"] === "custom";
    const name = requireString(tool["name"], `tools.${index}.name`);
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      refuse(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    }
    if (isCustom && !isObject(tool["input_schema"]))
      refuse(`tools.${index}.custom.input_schema: Field required`);
    const description = typeof tool["description"] === "string" ? tool["description"] : "";
    return { name, description, schema: isObject(tool["input_schema"]) ? tool["input_schema"] : {} };
  });
  if (new Set(tools.map((tool) => tool.name)).size < tools.length)
    refuse("tools: Tool names must be unique.");
  return tools;
}

function describeMismatch({ type, id }: ToolMismatch): string {
  switch (type) {
    case "repeated_call":
      return `messages: \`tool_use\` ids must be unique, and ${id} is not`;
    case "missing_result":
      return (
        `messages: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}. ` +
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
      );
    case "unknown_call":
      return (
        `messages: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
      );
  }
}

const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  end_turn: "end_turn",
  tool_use: "tool_use",
  max_tokens: "max_tokens",
  refusal: "refusal",
};

function encodeWhole({ conversation }: ModelRequest, answer: Answer): JsonObject {
  return {
    ...encodeHead(conversation.model, answer),
    content: encodeBlocks(answer).map(({ block }) => block),
    stop_reason: STOP_REASONS[answer.stopReason],
    usage: encodeUsage(answer.inputTokens, answer),
  };
}

function encodeStream({ conversation }: ModelRequest, answer: Answer): readonly string[] {
  const head = encodeHead(conversation.model, answer);
  const events: JsonObject[] = [
    {
      type: "message_start",
      message: { ...head, usage: { ...encodeUsage(answer.inputTokens, answer), output_tokens: 1 } },
    },
    { type: "ping" },
  ];
  for (const [index, { opening, deltas }] of encodeBlocks(answer).entries()) {
    events.push({ type: "content_block_start", index, content_block: opening });
    events.push(...deltas.map((delta) => ({ type: "content_block_delta", index, delta })));
    events.push({ type: "content_block_stop", index });
  }
  events.push({
    type: "message_delta",
    delta: { stop_reason: STOP_REASONS[answer.stopReason], stop_sequence: null },
    usage: encodeUsage(answer.inputTokens, answer),
  });
  events.push({ type: "message_stop" });
  return events.map(encodeEvent);
}

function encodeHead(model: string, answer: Answer): JsonObject {
  const id = `msg_${answer.key}`;
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

interface EncodedBlock {
  /** The block as a whole reply has it. */
  readonly block: JsonObject;
  /** The block as a stream begins it, and how it grows from there. */
  readonly opening: JsonObject;
  readonly deltas: readonly JsonObject[];
}

function encodeBlocks({ key, reasoning, text, toolCalls }: Answer): readonly EncodedBlock[] {
  const blocks: EncodedBlock[] = [];
  if (reasoning !== "") {
    const signature = `signature_${key}`;
    blocks.push({
      block: { type: "thinking", thinking: reasoning, signature },
      opening: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...splitWords(reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
        { type: "signature_delta", signature },
      ],
    });
  }
  if (text !== "") {
    blocks.push({
      block: { type: "text", text },
      opening: { type: "text", text: "" },
      deltas: splitWords(text).map((piece) => ({ type: "text_delta", text: piece })),
    });
  }
  for (const { suffix, name, inputJson } of toolCalls) {
    const opening = { type: "tool_use", id: `toolu_${suffix}`, name, input: {} };
    const input: unknown = JSON.parse(inputJson);
    blocks.push({
      block: { ...opening, input },
      opening,
      deltas: ["", ...splitEvenly(inputJson)].map((piece) => ({
        type: "input_json_delta",
        partial_json: piece,
      })),
    });
  }
  return blocks;
}

function encodeUsage(inputTokens: number, { outputTokens }: Answer): JsonObject {
  const cache = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  return { input_tokens: inputTokens, ...cache, output_tokens: outputTokens };
}

function encodeEvent(event: JsonObject): string {
  return `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
}

function encodeError({ status, message }: Refusal): JsonObject {
  return { type: "error", error: { type: errorType(status), message } };
}

function errorType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 529:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

function encodeModels(models: readonly string[]): JsonObject {
  const created = new Date(CREATED_AT_SECONDS * 1000).toISOString();
  return {
    data: models.map((id) => ({ type: "model", id, display_name: id, created_at: created })),
    has_more: false,
    first_id: models[0] ?? null,
    last_id: models.at(-1) ?? null,
  };
}
