// A line of the log for an entry of a conversation: its author, and the steps of a plan.

import { defined } from "@holdfast/core";
import { withoutReplacedPlans } from "@holdfast/proto/view";
import { expect, test } from "vitest";
import type { Look, Paint } from "../frame/command.ts";
import { eventLine } from "./event-line.ts";

const look = {
  paint: new Proxy({}, { get: () => String }) as Paint,
  symbols: new Proxy({}, { get: () => "*" }) as Look["symbols"],
} as Look;
const lineOf = (role: string, content: unknown): string | undefined =>
  eventLine({ seq: 1, type: "append_entry", role, content }, look, { now: 0, sessionId: "s" });

test("an entry of a sub-agent names the call that started it, and other entries name their role alone", () => {
  const text = { text: "Looked.", toolCalls: [] };
  expect(lineOf("assistant", { ...text, parentCallId: "toolu_1" })).toBe(
    "assistant (sub-agent of toolu_1): Looked.",
  );
  expect(lineOf("thinking", { text: "Hm.", parentCallId: "toolu_1" })).toBe(
    "thinking (sub-agent of toolu_1): Hm.",
  );
  expect(lineOf("assistant", text)).toBe("assistant: Looked.");
  expect(lineOf("thinking", "Hm.")).toBe("thinking: Hm.");
});

test("the call of a reply shows the characters that nothing draws", () => {
  const toolCalls = [{ name: "shell", input: { command: "touch a\u200b\u202e" } }];
  expect(lineOf("assistant", { text: "", toolCalls })).toBe(
    'assistant: shell {"command":"touch a\\u200b\\u202e"}',
  );
});

test("a plan is a line with its steps and their statuses", () => {
  const steps = [
    { text: "read", status: "completed" },
    { text: "write", status: "in_progress" },
    { text: "test", status: "pending" },
  ];
  expect(lineOf("plan", { steps })).toBe("plan: [x] read [>] write [ ] test");
});

test("a view of the present leaves out plans that a later one of the same author replaced", () => {
  const plan = (text: string, parentCallId?: string) => ({
    role: "plan",
    content: {
      steps: [{ text, status: "pending" }],
      ...defined({ parentCallId }),
    },
  });
  const [first, ofSubAgent, said, last] = [
    plan("a"),
    plan("b", "toolu_1"),
    { role: "assistant", content: "c" },
    plan("d"),
  ];
  expect(withoutReplacedPlans([first, ofSubAgent, said, last])).toEqual([ofSubAgent, said, last]);
});
