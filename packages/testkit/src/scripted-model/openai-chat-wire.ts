// OpenAI's chat completions, the wire that most other servers speak too.
//
// Not read: `tool_choice`, `response_format`, `stop`, sampling parameters. More than one choice is refused.

import type { MessagePiece, ToolCall } from "./conversation.ts";
import {
  encodeOpenaiError,
  encodeOpenaiModels,
  readParts,
  readTool,
  refuseMissing,
  toConversation,
} from "./openai-format.ts";
import { splitEvenly, splitWords, type Answer, type StopReason } from "./script.ts";
import {
  CREATED_AT_SECONDS,
  isObject,
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

export const openaiChatWire: Wire = {
  path: "/v1/chat/completions",
  readKey: readBearer,
  readRequest,
  encodeWhole,
  encodeStream,
  encodeError: encodeOpenaiError,
  encodeStreamError: (refusal) => encodeEvent(encodeOpenaiError(refusal)),
  encodeModels: encodeOpenaiModels,
};

function readRequest(body: JsonObject): ModelRequest {
  if (body["model"] === undefined) refuse("you must provide a model parameter");
  if (body["messages"] === undefined) refuseMissing("messages");
  if (body["n"] !== undefined && body["n"] !== null && body["n"] !== 1) {
    refuse("'n' must be 1: a script gives one reply", { param: "n" });
  }

  const systemParts: string[] = [];
  const pieces: MessagePiece[] = [];
  for (const [index, value] of requireList(body["messages"], "messages").entries()) {
    const where = `messages[${index}]`;
    const message = requireObject(value, where);
    const role = requireString(message["role"], `${where}.role`);
    if (role === "system" || role === "developer") {
      systemParts.push(readParts(message["content"], `${where}.content`));
    } else {
      pieces.push(readMessage(message, role, where));
    }
  }
  if (pieces.length === 0 && systemParts.length === 0) {
    refuse(
      "Invalid 'messages': empty array. " +
        "Expected an array with minimum length 1, but got an empty array instead.",
      {
        param: "messages",
        code: "empty_array",
      },
    );
  }

  const tools = readTools(body["tools"]);
  const conversation = toConversation(body, {
    systemParts,
    pieces,
    tools,
    mismatches: MISMATCHES,
    param: "messages",
  });
  const streamOptions = isObject(body["stream_options"]) ? body["stream_options"] : {};
  const isStreaming = readFlag(body["stream"], "stream");
  if (!isStreaming && isObject(body["stream_options"])) {
    refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: "stream_options",
    });
  }
  const tokensMaxName = body["max_completion_tokens"] === undefined ? "max_tokens" : "max_completion_tokens";
  return {
    conversation,
    isStreaming,
    tokensMax: readTokensMax(body[tokensMaxName], tokensMaxName),
    wantsStreamUsage: readFlag(streamOptions["include_usage"], "stream_options.include_usage"),
  };
}

function readMessage(message: JsonObject, role: string, where: string): MessagePiece {
  switch (role) {
    case "user":
      return { role, text: readParts(message["content"], `${where}.content`) };
    case "assistant": {
      const calls = message["tool_calls"] ?? [];
      const toolCalls = requireList(calls, `${where}.tool_calls`).map((call, index) =>
        readCall(requireObject(call, `${where}.tool_calls[${index}]`), `${where}.tool_calls[${index}]`),
      );
      const content = message["content"] ?? undefined;
      if (content === undefined && toolCalls.length === 0) {
        refuse(`Invalid value for 'content': expected a string, got null.`, { param: `${where}.content` });
      }
      return { role, text: content === undefined ? "" : readParts(content, `${where}.content`), toolCalls };
    }
    case "tool": {
      const toolCallId = message["tool_call_id"];
      if (typeof toolCallId !== "string") return refuseMissing(`${where}.tool_call_id`);
      const text = readParts(message["content"], `${where}.content`);
      return { role, toolResults: [{ toolCallId, text, isError: false }] };
    }
    default:
      return refuse(
        `Invalid value: '${role}'. ` +
          "Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.",
        { param: `${where}.role`, code: "invalid_value" },
      );
  }
}

function readCall(call: JsonObject, where: string): ToolCall {
  const called = requireObject(call["function"], `${where}.function`);
  const text = requireString(called["arguments"], `${where}.function.arguments`);
  return {
    id: requireString(call["id"], `${where}.id`),
    name: requireString(called["name"], `${where}.function.name`),
    input: parseArguments(text, `${where}.function.arguments`),
  };
}

function readTools(value: unknown) {
  return requireList(value ?? [], "tools").map((item, index) => {
    const tool = requireObject(item, `tools[${index}]`);
    if (tool["type"] !== "function")
      refuse(`Invalid value: '${String(tool["type"])}'. Supported values are: 'function'.`);
    return readTool(requireObject(tool["function"], `tools[${index}].function`), `tools[${index}].function`);
  });
}

const MISMATCHES = {
  repeated_call: "Duplicate tool call id '{id}' in 'messages'.",
  missing_result:
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
    "'tool_call_id'. The following tool_call_ids did not have response messages: {id}",
  unknown_call: "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message.",
};

const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  end_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  refusal: "content_filter",
};

function encodeWhole({ conversation }: ModelRequest, answer: Answer): JsonObject {
  const message = {
    role: "assistant",
    content: answer.text === "" && answer.toolCalls.length > 0 ? null : answer.text,
    refusal: null,
    ...(answer.reasoning === "" ? {} : { reasoning_content: answer.reasoning }),
    ...(answer.toolCalls.length === 0 ? {} : { tool_calls: answer.toolCalls.map(encodeCall) }),
  };
  return {
    ...encodeHead("chat.completion", conversation.model, answer),
    choices: [{ index: 0, message, logprobs: null, finish_reason: FINISH_REASONS[answer.stopReason] }],
    usage: encodeUsage(answer),
  };
}

function encodeStream({ conversation, wantsStreamUsage }: ModelRequest, answer: Answer): readonly string[] {
  const deltas: JsonObject[] = [
    { role: "assistant", content: "" },
    ...splitWords(answer.reasoning).map((piece) => ({ reasoning_content: piece })),
    ...splitWords(answer.text).map((piece) => ({ content: piece })),
  ];
  for (const [index, call] of answer.toolCalls.entries()) {
    const opening = { index, ...encodeCall({ ...call, inputJson: "" }) };
    const growth = splitEvenly(call.inputJson).map((piece) => ({ index, function: { arguments: piece } }));
    deltas.push(...[opening, ...growth].map((piece) => ({ tool_calls: [piece] })));
  }

  const head = encodeHead("chat.completion.chunk", conversation.model, answer);
  const choose = (delta: JsonObject, reason: string | null) => ({
    index: 0,
    delta,
    logprobs: null,
    finish_reason: reason,
  });
  const choices = [
    ...deltas.map((delta) => choose(delta, null)),
    choose({}, FINISH_REASONS[answer.stopReason]),
  ];
  // With `include_usage` every chunk has the field, and a last one without choices has the numbers.
  const chunks: JsonObject[] = choices.map((choice) => ({
    ...head,
    choices: [choice],
    ...(wantsStreamUsage ? { usage: null } : {}),
  }));
  if (wantsStreamUsage) chunks.push({ ...head, choices: [], usage: encodeUsage(answer) });
  return [...chunks.map(encodeEvent), "data: [DONE]\n\n"];
}

function encodeHead(object: string, model: string, answer: Answer): JsonObject {
  return { id: `chatcmpl-${answer.key}`, object, created: CREATED_AT_SECONDS, model };
}

function encodeCall({ suffix, name, inputJson }: Answer["toolCalls"][number]): JsonObject {
  return { id: `call_${suffix}`, type: "function", function: { name, arguments: inputJson } };
}

function encodeUsage({ inputTokens, outputTokens, reasoningTokens }: Answer): JsonObject {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  };
}

function encodeEvent(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
