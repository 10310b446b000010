// A session's conversation in the form that the AI SDK takes. Pure.
//
// Real servers refuse a whole conversation for one wrong piece: an empty message, a name with a blank in it,
// a call without a result. The stored conversation keeps a model's text unchanged; this file makes a copy
// that servers accept.

import { defined, HoldfastError } from "@holdfast/core";
import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";

import {
  EVENT_ROLE,
  type AssistantContent,
  type ModelRequest,
  type ModelThought,
  type ModelToolCall,
  type ToolContent,
} from "./model-provider.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Stands for a name that no server would accept. */
const NO_NAME = "invalid_tool_name";

/**
 * @param takesImages whether the server takes images in the result of a call. Elsewhere a sentence says that
 *   they are not shown.
 */
export function toPrompt(all: ModelRequest["messages"], takesImages: boolean): LanguageModelV4Prompt {
  const entries = all.filter(({ role }) => role !== EVENT_ROLE);
  const messages: LanguageModelV4Prompt = [];
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i];
    if (entry === undefined) continue;
    if (entry.role === "assistant") {
      const content = readAssistant(entry.content);
      messages.push(assistantMessage(content));
      const results: ToolContent[] = [];
      for (; entries[i + 1]?.role === "tool"; i++) results.push(readTool(entries[i + 1]?.content));
      if (content.toolCalls.length > 0)
        messages.push({ role: "tool", content: pairResults(content.toolCalls, results, takesImages) });
    } else if (entry.role !== "tool") {
      // A result without its call belongs to nothing and is left out.
      messages.push({ role: "user", content: [textPart(notEmpty(readText(entry.content)))] });
    }
  }
  return messages;
}

function assistantMessage({ text, toolCalls, thoughts = [] }: AssistantContent): LanguageModelV4Message {
  const reasoning = thoughts.map((thought) => ({
    type: "reasoning" as const,
    text: thought.text,
    ...dataOf(thought),
  }));
  const calls = toolCalls.map((call): LanguageModelV4ToolCallPart => ({
    type: "tool-call",
    toolCallId: call.id,
    toolName: toolName(call.name),
    input: call.input,
    ...dataOf(call),
  }));
  if (calls.length === 0 && reasoning.length === 0)
    return { role: "assistant", content: [textPart(notEmpty(text))] };
  return {
    role: "assistant",
    content: [...reasoning, ...(text.trim() === "" ? [] : [textPart(text)]), ...calls],
  };
}

/** The data of the provider that made a part; another provider does not read it. */
function dataOf({ data }: Pick<ModelThought, "data">): { providerOptions?: SharedV4ProviderOptions } {
  return data === undefined ? {} : { providerOptions: data as SharedV4ProviderOptions };
}

/** One result for each call, in the order of the calls. */
function pairResults(
  calls: readonly ModelToolCall[],
  results: readonly ToolContent[],
  takesImages: boolean,
): LanguageModelV4ToolResultPart[] {
  return calls.map(({ id, name }) => {
    const result = results.find((candidate) => candidate.toolCallId === id);
    const output =
      result === undefined
        ? { type: "error-text" as const, value: "There is no result: the call was interrupted." }
        : resultOutput(result, takesImages);
    return { type: "tool-result", toolCallId: id, toolName: toolName(name), output };
  });
}

function resultOutput(
  { text, isError, images = [] }: ToolContent,
  takesImages: boolean,
): LanguageModelV4ToolResultPart["output"] {
  if (images.length === 0) return { type: isError ? "error-text" : "text", value: notEmpty(text) };
  if (!takesImages || isError)
    return { type: isError ? "error-text" : "text", value: `${text}\n${notShown(images.length)}` };
  const files = images.map(({ mimeType, data }) => ({
    type: "file" as const,
    data: { type: "data" as const, data },
    mediaType: mimeType,
  }));
  return { type: "content", value: [textPart(notEmpty(text)), ...files] };
}

function notShown(count: number): string {
  const what = count === 1 ? "The image is" : `The ${count} images are`;
  return `(${what} not shown here: this model's server takes no images in results. The record of the call keeps them.)`;
}

function textPart(text: string): { readonly type: "text"; readonly text: string } {
  return { type: "text", text };
}

function toolName(name: string): string {
  return NAME.test(name) ? name : NO_NAME;
}

function notEmpty(text: string): string {
  return text.trim() === "" ? "(empty)" : text;
}

function readText(content: unknown): string {
  if (typeof content === "string") return content;
  if (isObject(content) && typeof content["text"] === "string") return content["text"];
  throw invalid("a user entry", content, "a string, or an object with `text`");
}

function readAssistant(content: unknown): AssistantContent {
  if (typeof content === "string") return { text: content, toolCalls: [] };
  if (!isObject(content)) throw invalid("an assistant entry", content, "{ text, toolCalls }");
  const { text = "", toolCalls = [], thoughts = [] } = content;
  const isRight =
    typeof text === "string" &&
    Array.isArray(toolCalls) &&
    toolCalls.every(isToolCall) &&
    Array.isArray(thoughts) &&
    thoughts.every(isThought);
  if (!isRight) throw invalid("an assistant entry", content, "{ text, toolCalls: [{ id, name, input }] }");
  return { text, toolCalls, thoughts };
}

function readTool(content: unknown): ToolContent {
  const isRight =
    isObject(content) && typeof content["toolCallId"] === "string" && typeof content["text"] === "string";
  if (!isRight) throw invalid("a tool entry", content, "{ toolCallId, name, text, isError }");
  const { toolCallId, name, text, isError, images } = content as unknown as ToolContent;
  return { toolCallId, name, text, isError, ...defined({ images }) };
}

function isThought(value: unknown): value is ModelThought {
  return isObject(value) && typeof value["text"] === "string";
}

function isToolCall(value: unknown): value is ModelToolCall {
  return (
    isObject(value) &&
    typeof value["id"] === "string" &&
    typeof value["name"] === "string" &&
    isObject(value["input"])
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(what: string, content: unknown, expected: string): HoldfastError {
  return new HoldfastError("invalid_input", `${what} cannot be given to a model`, {
    got: JSON.stringify(content)?.slice(0, 200) ?? typeof content,
    expected,
  });
}
