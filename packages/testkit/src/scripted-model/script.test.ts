import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { Conversation } from "./conversation.ts";
import {
  answerConversation,
  splitEvenly,
  splitWords,
  turns,
  type Reply,
  type ModelScript,
} from "./script.ts";

describe("turns", () => {
  const script = turns([
    { text: "first" },
    ({ messages }) => ({ text: `second, after ${messages.at(-1)?.text}` }),
  ]);

  test("the number of assistant messages picks the reply", () => {
    expect(script(conversationOf("a"))).toEqual({ text: "first" });
    expect(script(conversationOf("a", "b", "c"))).toEqual({ text: "second, after c" });
  });

  test("a conversation that goes on too long is an error that says so", () => {
    expect(() => script(conversationOf("a", "b", "c", "d", "e"))).toThrow(
      /has 2 turns.* already has 2 assistant/,
    );
  });
});

describe("script-1: a reply depends on the conversation alone", () => {
  test("ids are equal for equal conversations, whatever the order of their properties", () => {
    const call = (input: Record<string, unknown>): Conversation => ({
      ...conversationOf("a"),
      messages: [
        { role: "assistant", text: "", toolCalls: [{ id: "1", name: "act", input }], toolResults: [] },
      ],
    });
    expect(answer({}, call({ a: 1, b: { c: 2, d: 3 } })).key).toBe(
      answer({}, call({ b: { d: 3, c: 2 }, a: 1 })).key,
    );
    expect(answer({}, call({ a: 1 })).key).not.toBe(answer({}, call({ a: 2 })).key);
  });

  test("every part of a conversation counts for the ids, and parallel calls have different ones", () => {
    const base = conversationOf("a");
    const variants = [
      base,
      { ...base, model: "other" },
      { ...base, system: "other" },
      { ...base, tools: [{ name: "act", description: "", schema: {} }] },
      conversationOf("b"),
      conversationOf("a", "b"),
    ];
    const keys = variants.map((conversation) => answer({}, conversation).key);
    expect(new Set(keys).size).toBe(variants.length);

    const calls = [
      { name: "act", input: {} },
      { name: "act", input: {} },
    ];
    const suffixes = answer({ toolCalls: calls }).toolCalls.map((call) => call.suffix);
    expect(new Set(suffixes).size).toBe(2);
  });

  test("a script that answers differently the second time is refused", () => {
    let count = 0;
    const impure: ModelScript = () => ({ toolCalls: [{ name: "act", input: { count: ++count } }] });
    expect(() => answerConversation(impure, conversationOf("a"), undefined)).toThrow(/two different replies/);
  });
});

describe("a reply is settled", () => {
  test("the stop reason follows from the reply unless it says its own", () => {
    const call = { name: "act", input: {} };
    expect(answer({ text: "x" }).stopReason).toBe("end_turn");
    expect(answer({ toolCalls: [call] }).stopReason).toBe("tool_use");
    expect(answer({ text: "x", stopReason: "refusal" }).stopReason).toBe("refusal");
  });

  test("tokens are characters by four, rounded up, over everything that is sent and said", () => {
    const { inputTokens, outputTokens, reasoningTokens } = answer(
      { text: "12345", reasoning: "1", toolCalls: [{ name: "act", input: { a: 1 } }] },
      { ...conversationOf("12345678"), system: "1" },
    );
    expect({ inputTokens, outputTokens, reasoningTokens }).toEqual({
      inputTokens: 3, // 8 + 1
      outputTokens: 4, // 5 + 1 + "act" + {"a":1}
      reasoningTokens: 1,
    });
  });

  test("no reply is larger than the caller allows, and what is left of it is a beginning of it", () => {
    fc.assert(
      fc.property(arbitraryReply, fc.integer({ min: 1, max: 30 }), (reply, tokensMax) => {
        const full = answer(reply);
        const cut = answerConversation(() => reply, conversationOf("a"), tokensMax);
        expect(cut.outputTokens).toBeLessThanOrEqual(tokensMax);
        expect(full.reasoning.startsWith(cut.reasoning)).toBe(true);
        expect(full.text.startsWith(cut.text)).toBe(true);
        expect(full.toolCalls.slice(0, cut.toolCalls.length)).toEqual(cut.toolCalls);
        expect(cut.text.isWellFormed()).toBe(true);
        expect(cut.stopReason === "max_tokens").toBe(full.outputTokens > tokensMax);
      }),
    );
  });

  test.each([
    [undefined, /returned undefined instead of a reply/],
    ["text", /returned text instead of a reply/],
    [Promise.resolve({}), /returned a promise/],
    [{ text: 7 }, /text is a number/],
    [{ toolCalls: {} }, /toolCalls are not a list/],
    [{ toolCalls: [{ name: "act", input: "{}" }] }, /toolCalls\[0\] of the reply is not a call/],
    [{ toolCalls: [{ name: "act", input: { a: 1n } }] }, /input of toolCalls\[0\] cannot be recorded/],
    [{ stopReason: "stop" }, /stopReason is "stop"/],
  ])("%o is refused", (reply, message) => {
    expect(() => answer(reply as Reply)).toThrow(message);
  });
});

test("pieces of a stream make up the text again", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      expect(splitWords(text).join("")).toBe(text);
      expect(splitEvenly(text).join("")).toBe(text);
      expect(splitEvenly(text).every((piece) => piece.isWellFormed())).toBe(true);
    }),
  );
  expect(splitWords(" one  two\nthree ")).toEqual([" one", "  two", "\nthree", " "]);
});

const arbitraryReply: fc.Arbitrary<Reply> = fc.record({
  text: fc.string({ unit: "grapheme" }),
  reasoning: fc.string(),
  toolCalls: fc.array(
    fc.record({ name: fc.constant("act"), input: fc.dictionary(fc.string(), fc.integer()) }),
  ),
});

function answer(reply: Reply, conversation = conversationOf("a")) {
  return answerConversation(() => reply, conversation, undefined);
}

/** Messages in turn of the user and the assistant. */
function conversationOf(...texts: readonly string[]): Conversation {
  const messages = texts.map((text, index) => ({
    role: index % 2 === 0 ? ("user" as const) : ("assistant" as const),
    text,
    toolCalls: [],
    toolResults: [],
  }));
  return { model: "m", system: "", messages, tools: [] };
}
