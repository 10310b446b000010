// The common parts of OpenAI's two APIs: keys, errors, the model list, message parts.

import {
  findToolMismatch,
  joinMessages,
  type Conversation,
  type ConversationTool,
  type MessagePiece,
  type ToolMismatch,
} from "./conversation.ts";
import {
  CREATED_AT_SECONDS,
  isObject,
  refuse,
  requireList,
  requireObject,
  requireString,
  type JsonObject,
  type Refusal,
} from "./wire.ts";

export function encodeOpenaiError({ status, message, param, code }: Refusal): JsonObject {
  return {
    error: { message, type: errorType(status), param: param ?? null, code: code ?? errorCode(status) },
  };
}

function errorType(status: number): string {
  if (status === 429) return "requests";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

function errorCode(status: number): string | null {
  if (status === 401) return "invalid_api_key";
  return status === 429 ? "rate_limit_exceeded" : null;
}

export function encodeOpenaiModels(models: readonly string[]): JsonObject {
  return {
    object: "list",
    data: models.map((id) => ({ id, object: "model", created: CREATED_AT_SECONDS, owned_by: "holdfast" })),
  };
}

export function refuseMissing(param: string): never {
  return refuse(`Missing required parameter: '${param}'.`, { param, code: "missing_required_parameter" });
}

/** Content that is a text or a list of parts; parts that are not text become their type in brackets. */
export function readParts(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  return requireList(value, where)
    .map((item, index) => {
      const part = requireObject(item, `${where}[${index}]`);
      const type = requireString(part["type"], `${where}[${index}].type`);
      const isText = type === "text" || type === "input_text" || type === "output_text";
      return isText ? requireString(part["text"], `${where}[${index}].text`) : `[${type}]`;
    })
    .join("\n");
}

export function readTool(tool: JsonObject, where: string): ConversationTool {
  const name = requireString(tool["name"], `${where}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    refuse(
      `Invalid '${where}.name': string does not match pattern. ` +
        "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
      {
        param: `${where}.name`,
        code: "invalid_value",
      },
    );
  }
  const description = typeof tool["description"] === "string" ? tool["description"] : "";
  return { name, description, schema: isObject(tool["parameters"]) ? tool["parameters"] : {} };
}

/** The parts of a body that a wire has read, and its texts for refusals that depend on the whole body. */
export interface ReadBody {
  readonly systemParts: readonly string[];
  readonly pieces: readonly MessagePiece[];
  readonly tools: readonly ConversationTool[];
  /** With `{id}` for the call's. */
  readonly mismatches: Readonly<Record<ToolMismatch["type"], string>>;
  /** The field that holds the messages. */
  readonly param: string;
}

/** @throws RequestRefused when calls and results of tools do not fit together. */
export function toConversation(body: JsonObject, read: ReadBody): Conversation {
  const messages = joinMessages(read.pieces);
  const mismatch = findToolMismatch(messages);
  if (mismatch !== undefined)
    refuse(read.mismatches[mismatch.type].replace("{id}", mismatch.id), { param: read.param });
  return {
    model: requireString(body["model"], "model"),
    system: read.systemParts.join("\n"),
    messages,
    tools: read.tools,
  };
}
