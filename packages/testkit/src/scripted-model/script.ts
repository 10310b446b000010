// `ModelScript` is a scripted model: a conversation in, a reply out.
//
// It knows nothing of HTTP or of the format of any vendor. The scripted model server has one wire for each
// format, which translates. The server as a whole makes these promises, unless it was asked for faults:
//
//   script-1. A reply depends on the request and the options of the server alone. No counter, clock or random
//       number takes part, and ids are
//        hashes of the conversation and the reply. A retry, a resume and another process therefore get the
//        same bytes.
//   script-2. One conversation looks the same to the script on every wire, except for ids and for what a wire
//        cannot say.
//   - A streamed reply says what the same reply says unstreamed. The chat format of OpenAI has token counts
//     only where the request asks for them.
//   script-4. A wire checks the fields that it reads as the real server does, with the status and the format
//       of that server. Its header
//        lists the fields that it does not read.

import { createHash } from "node:crypto";
import { encodeJson, UsageError } from "@holdfast/core";

import type { Conversation } from "./conversation.ts";

/** `tool_use` when the reply calls tools and `end_turn` otherwise, unless the reply says something else. */
export type StopReason = "end_turn" | "tool_use" | "max_tokens" | "refusal";

/** The answer of the model. All parts are optional; an empty reply is a model that has nothing to say. */
export interface Reply {
  /** The text of the reply. */
  readonly text?: string;
  /** Calls made in parallel. A tool the request did not offer may be called too: real models do it. */
  readonly toolCalls?: readonly ReplyToolCall[];
  /** Why the reply ends; by default what fits its parts. */
  readonly stopReason?: StopReason;
  /** Thinking, shown before the text. The OpenAI chat wire carries it as `reasoning_content`. */
  readonly reasoning?: string;
}

/** A call of a tool in a scripted reply. */
export interface ReplyToolCall {
  readonly name: string;
  /** The arguments: an object that JSON can carry. */
  readonly input: object;
}

/**
 * A scripted model.
 *
 * Contract: pure and synchronous. The server calls it twice for each request. The request fails when the
 * answers differ, because a script that counts its calls would answer a retry differently. An error that it
 * throws is the request's error (400).
 */
export type ModelScript = (conversation: Conversation) => Reply;

/** A reply with everything settled that its script left open. Wires only translate it. */
export interface Answer {
  /** Hash of the conversation, from which the wires make their ids. */
  readonly key: string;
  readonly reasoning: string;
  readonly text: string;
  readonly toolCalls: readonly AnswerToolCall[];
  readonly stopReason: StopReason;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number;
}

export interface AnswerToolCall {
  /** Unique in the conversation; a wire puts its own prefix before it. */
  readonly suffix: string;
  readonly name: string;
  /** The input as JSON text, an object. */
  readonly inputJson: string;
}

/**
 * A script that is a list. The first element answers a conversation without an assistant message, the second
 * element one with one assistant message, and so on. An element is a reply, or a function for a reply that
 * depends on what was said.
 *
 * A conversation that goes on after the last element is an error, not a repetition: an agent that loops is
 * found. Leaky: an agent that drops old messages from its conversation moves back in the list.
 */
export function turns(elements: readonly (Reply | ModelScript)[]): ModelScript {
  return (conversation) => {
    const position = conversation.messages.filter((message) => message.role === "assistant").length;
    const element = elements[position];
    if (element === undefined) {
      throw new UsageError(
        `the script has ${elements.length} turns, but the conversation already has ` +
          `${position} assistant messages`,
        { fix: "add a turn to the script, or find out why the agent asked once more" },
      );
    }
    return typeof element === "function" ? element(conversation) : element;
  };
}

/**
 * Ask the script and settle its reply: ids, stop reason, token counts, the cut at `tokensMax`.
 *
 * @throws UsageError when the script is not pure or its reply is not one. An error of the script passes
 * through.
 */
export function answerConversation(
  script: ModelScript,
  conversation: Conversation,
  tokensMax: number | undefined,
): Answer {
  const settled = settleReply(script(conversation));
  if (canonicalJson(settled) !== canonicalJson(settleReply(script(conversation)))) {
    throw new UsageError("the script gave two different replies to the same conversation", {
      fix: "decide the reply from the conversation alone: no counters, no clock, no random numbers",
    });
  }

  const key = createHash("sha256").update(canonicalJson(conversation)).digest("hex").slice(0, 20);
  const { reasoning, text, toolCalls, isCut } = cutReply(settled, tokensMax);
  const spoken =
    text.length + toolCalls.reduce((sum, call) => sum + call.name.length + call.inputJson.length, 0);
  return {
    key,
    reasoning,
    text,
    toolCalls: toolCalls.map((call, index) => ({ ...call, suffix: `${key}_${index}` })),
    stopReason: isCut
      ? "max_tokens"
      : (settled.stopReason ?? (toolCalls.length > 0 ? "tool_use" : "end_turn")),
    inputTokens: countTokens(measureConversation(conversation)),
    outputTokens: countTokens(reasoning.length + spoken),
    reasoningTokens: countTokens(reasoning.length),
  };
}

/** Text in the pieces in which a stream sends it: words, with the space before them. */
export function splitWords(text: string): readonly string[] {
  return text.match(/\s*\S+|\s+$/gu) ?? [];
}

/** Text in pieces of a fixed size that never split a code point. */
export function splitEvenly(text: string): readonly string[] {
  return text.match(/[^]{1,24}/gu) ?? [];
}

interface SettledReply {
  readonly reasoning: string;
  readonly text: string;
  readonly toolCalls: readonly Omit<AnswerToolCall, "suffix">[];
  readonly stopReason: StopReason | undefined;
}

/** Scripts are also written in JavaScript, so the reply is checked and not only typed. */
function settleReply(reply: unknown): SettledReply {
  if (typeof reply !== "object" || reply === null || Array.isArray(reply) || reply instanceof Promise) {
    const got = reply instanceof Promise ? "a promise" : String(reply);
    throw new UsageError(`the script returned ${got} instead of a reply`, {
      expected: 'an object such as { text: "Hello" }, returned at once',
    });
  }
  const { text, reasoning, toolCalls, stopReason } = reply as Record<keyof Reply, unknown>;
  return {
    reasoning: settleText(reasoning, "reasoning"),
    text: settleText(text, "text"),
    toolCalls: settleCalls(toolCalls),
    stopReason: settleStopReason(stopReason),
  };
}

function settleText(value: unknown, what: string): string {
  if (value === undefined) return "";
  if (typeof value !== "string")
    throw new UsageError(`the reply's ${what} is a ${typeof value}, not a string`);
  return value;
}

function settleCalls(value: unknown): readonly Omit<AnswerToolCall, "suffix">[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new UsageError("the reply's toolCalls are not a list");
  return value.map((call: unknown, index) => {
    const { name, input } = (call ?? {}) as Partial<Record<keyof ReplyToolCall, unknown>>;
    if (typeof name !== "string" || typeof input !== "object" || input === null || Array.isArray(input)) {
      throw new UsageError(`toolCalls[${index}] of the reply is not a call`, {
        expected: "{ name: string, input: object }",
      });
    }
    return { name, inputJson: encodeJson(input, `the input of toolCalls[${index}]`) ?? "{}" };
  });
}

const STOP_REASONS: readonly StopReason[] = ["end_turn", "tool_use", "max_tokens", "refusal"];

function settleStopReason(value: unknown): StopReason | undefined {
  if (value === undefined) return undefined;
  const known = STOP_REASONS.find((reason) => reason === value);
  if (known === undefined) {
    throw new UsageError(`the reply's stopReason is ${JSON.stringify(value)}`, {
      expected: STOP_REASONS.join(", "),
    });
  }
  return known;
}

const CHARS_PER_TOKEN = 4;

function countTokens(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}

/**
 * Ends the reply at the request's limit, as a real model does. Otherwise the counted output would
 * exceed the caller's limit, and code that reserves a budget by that limit would be tested against an
 * impossible case. A tool call that does not fit is left out whole; nobody could use half of its arguments.
 */
function cutReply(reply: SettledReply, tokensMax: number | undefined) {
  const { reasoning, text, toolCalls } = reply;
  if (tokensMax === undefined) return { reasoning, text, toolCalls, isCut: false };

  const room = tokensMax * CHARS_PER_TOKEN;
  const keptReasoning = cutText(reasoning, room);
  const keptText = cutText(text, room - keptReasoning.length);
  const isTextCut = keptReasoning.length < reasoning.length || keptText.length < text.length;
  const keptCalls = toolCalls.slice(0, countFitting(toolCalls, room - reasoning.length - text.length));
  return {
    reasoning: keptReasoning,
    text: keptText,
    toolCalls: keptCalls,
    isCut: isTextCut || keptCalls.length < toolCalls.length,
  };
}

/** At most so many code units of a text, never half a code point. */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? length - 1 : length);
}

function countFitting(calls: SettledReply["toolCalls"], room: number): number {
  let used = 0;
  const overflow = calls.findIndex((call) => (used += call.name.length + call.inputJson.length) > room);
  return overflow === -1 ? calls.length : overflow;
}

function measureConversation({ system, messages, tools }: Conversation): number {
  let chars = system.length;
  for (const message of messages) {
    chars += message.text.length;
    for (const call of message.toolCalls) chars += call.name.length + canonicalJson(call.input).length;
    for (const result of message.toolResults) chars += result.text.length;
  }
  for (const tool of tools)
    chars += tool.name.length + tool.description.length + canonicalJson(tool.schema).length;
  return chars;
}

/** JSON with sorted keys, so that neither the order of properties nor a wire's habits change a hash. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member !== "object" || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
}
