// Google's `generateContent`, whole and as a stream of server-sent events. The path names the model.
//
// Not read: `toolConfig`, `safetySettings`, sampling parameters. Tools that run at Google are left out.

import type { ConversationTool, MessagePiece } from "./conversation.ts";
import { findToolMismatch, joinMessages } from "./conversation.ts";
import { splitWords, type Answer, type StopReason } from "./script.ts";
import {
  isObject,
  readTokensMax,
  refuse,
  requireList,
  requireObject,
  requireString,
  type JsonObject,
  type ModelRequest,
  type Refusal,
  type Wire,
} from "./wire.ts";

const PATH = /^\/v1beta\/models\/([^/:]+):(generateContent|streamGenerateContent)$/;

export const googleWire: Wire = {
  path: "/v1beta/models",
  readPath: (pathname) => {
    const [, model, method] = PATH.exec(pathname) ?? [];
    return model === undefined
      ? undefined
      : { model: decodeURIComponent(model), stream: method === "streamGenerateContent" };
  },
  readKey: (headers) => headers["x-goog-api-key"],
  readRequest,
  encodeWhole: ({ conversation }, answer) =>
    encodeResponse(conversation.model, answer, partsOf(answer, false), true),
  encodeStream,
  encodeError,
  encodeStreamError: (refusal) => encodeEvent(encodeError(refusal)),
  encodeModels: (models) => ({ models: models.map((name) => ({ name: `models/${name}` })) }),
};

function readRequest(body: JsonObject): ModelRequest {
  const contents = requireList(body["contents"] ?? [], "contents");
  if (contents.length === 0) refuse("* GenerateContentRequest.contents: contents is not specified");
  const open: { readonly id: string; readonly name: string }[] = [];
  const pieces = contents.flatMap((value, index) => readContent(value, `contents[${index}]`, open));
  const messages = joinMessages(pieces);
  if (findToolMismatch(messages) !== undefined)
    refuse(
      "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    );
  const config = isObject(body["generationConfig"]) ? body["generationConfig"] : {};
  return {
    conversation: {
      model: requireString(body["model"], "model"),
      system: readSystem(body["systemInstruction"]),
      messages,
      tools: readTools(body["tools"]),
    },
    isStreaming: body["stream"] === true,
    tokensMax: readTokensMax(config["maxOutputTokens"], "generationConfig.maxOutputTokens"),
    wantsStreamUsage: true,
  };
}

function readSystem(value: unknown): string {
  if (value === undefined || value === null) return "";
  const parts = requireList(requireObject(value, "systemInstruction")["parts"], "systemInstruction.parts");
  return parts.map((part, index) => textOf(part, `systemInstruction.parts[${index}]`)).join("\n");
}

/** @param open the calls that have no result yet. Calls and results without an id belong together by their order. */
function readContent(
  value: unknown,
  where: string,
  open: { readonly id: string; readonly name: string }[],
): readonly MessagePiece[] {
  const content = requireObject(value, where);
  const role = content["role"] ?? "user";
  if (role !== "user" && role !== "model") refuse("Please use a valid role: user, model.");
  const parts = requireList(content["parts"], `${where}.parts`);
  if (parts.length === 0)
    refuse(`* GenerateContentRequest.${where}.parts: contents.parts must not be empty.`);
  return parts.map((one, index): MessagePiece => {
    const at = `${where}.parts[${index}]`;
    const part = requireObject(one, at);
    const { functionCall, functionResponse } = part;
    if (functionCall !== undefined) {
      const call = requireObject(functionCall, `${at}.functionCall`);
      const name = requireString(call["name"], `${at}.functionCall.name`);
      const id = typeof call["id"] === "string" ? call["id"] : `${where}:${index}`;
      open.push({ id, name });
      const input = requireObject(call["args"] ?? {}, `${at}.functionCall.args`);
      return { role: "assistant", toolCalls: [{ id, name, input }] };
    }
    if (functionResponse !== undefined) return readResult(functionResponse, `${at}.functionResponse`, open);
    const isThought = part["thought"] === true;
    return {
      role: role === "model" ? "assistant" : "user",
      ...(isThought ? {} : { text: textOf(part, at) }),
    };
  });
}

function readResult(
  value: unknown,
  where: string,
  open: { readonly id: string; readonly name: string }[],
): MessagePiece {
  const result = requireObject(value, where);
  const name = requireString(result["name"], `${where}.name`);
  const at = open.findIndex((call) => call.name === name && (result["id"] ?? call.id) === call.id);
  const [call] = at < 0 ? [] : open.splice(at, 1);
  const response = requireObject(result["response"], `${where}.response`);
  const said = response["error"] ?? response["content"] ?? response;
  const text = typeof said === "string" ? said : JSON.stringify(said);
  const isError = response["error"] !== undefined;
  return { role: "tool", toolResults: [{ toolCallId: call?.id ?? "", text, isError }] };
}

function textOf(value: unknown, where: string): string {
  const part = requireObject(value, where);
  return typeof part["text"] === "string" ? part["text"] : `[${Object.keys(part)[0] ?? "part"}]`;
}

function readTools(value: unknown): readonly ConversationTool[] {
  const groups = requireList(value ?? [], "tools").map((one, index) => requireObject(one, `tools[${index}]`));
  return groups.flatMap((group, index) =>
    requireList(group["functionDeclarations"] ?? [], `tools[${index}].functionDeclarations`).map((one) => {
      const tool = requireObject(one, `tools[${index}].functionDeclarations`);
      return {
        name: requireString(tool["name"], `tools[${index}].functionDeclarations.name`),
        description: typeof tool["description"] === "string" ? tool["description"] : "",
        schema: isObject(tool["parameters"]) ? tool["parameters"] : {},
      };
    }),
  );
}

const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  end_turn: "STOP",
  tool_use: "STOP", // As the real server says, also after calls.
  max_tokens: "MAX_TOKENS",
  refusal: "SAFETY",
};

/** Google signs thoughts, and the first call after them. */
function partsOf({ key, reasoning, text, toolCalls }: Answer, isInPieces: boolean): readonly JsonObject[] {
  const pieces = (whole: string): readonly string[] =>
    isInPieces ? splitWords(whole) : whole === "" ? [] : [whole];
  return [
    ...pieces(reasoning).map((piece) => ({ text: piece, thought: true })),
    ...pieces(text).map((piece) => ({ text: piece })),
    ...toolCalls.map(({ suffix, name, inputJson }, index) => ({
      functionCall: { id: `call_${suffix}`, name, args: JSON.parse(inputJson) as unknown },
      ...(index === 0 ? { thoughtSignature: `signature_${key}` } : {}),
    })),
  ];
}

function encodeStream({ conversation }: ModelRequest, answer: Answer): readonly string[] {
  const parts = partsOf(answer, true).map((part) => [part]);
  return [...parts, []].map((part, index) =>
    encodeEvent(encodeResponse(conversation.model, answer, part, index === parts.length)),
  );
}

function encodeResponse(
  model: string,
  answer: Answer,
  parts: readonly JsonObject[],
  isLast: boolean,
): JsonObject {
  const { key, inputTokens, outputTokens, reasoningTokens, stopReason } = answer;
  const finish = isLast ? { finishReason: FINISH_REASONS[stopReason] } : {};
  return {
    candidates: [{ content: { parts, role: "model" }, ...finish, index: 0 }],
    usageMetadata: {
      promptTokenCount: inputTokens,
      candidatesTokenCount: outputTokens - reasoningTokens,
      thoughtsTokenCount: reasoningTokens,
      totalTokenCount: inputTokens + outputTokens,
    },
    modelVersion: model,
    responseId: key,
  };
}

const STATUSES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

function encodeError({ status, message }: Refusal): JsonObject {
  const name = STATUSES[status] ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
  return { error: { code: status, message, status: name } };
}

function encodeEvent(chunk: JsonObject): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
