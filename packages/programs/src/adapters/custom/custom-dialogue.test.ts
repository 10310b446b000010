// Lines of a program of one's own: plans, and the work of a sub-agent.

import { expect, test } from "vitest";

import type { ExternalEnd, ExternalEvent } from "../../session/external-agent-protocol.ts";
import { CustomDialogue } from "./custom-dialogue.ts";

test("a line with `parent` is the work of a sub-agent and no answer, and a plan has its steps", () => {
  const events: ExternalEvent[] = [];
  let end: ExternalEnd | undefined;
  const dialogue = new CustomDialogue({
    prompt: "go",
    folder: "/",
    model: null,
    permissionMode: "default",
    agentSessionId: "s",
    resumedId: null,
    isCutOff: false,
    wayBack: undefined,
    unpriced: [],
    send: () => {},
    emit: (event) => events.push(event),
    end: (given) => (end = given),
  });
  for (const message of [
    { type: "plan", steps: [{ text: "look", status: "completed" }, { text: "write" }, "garbage"] },
    { type: "text", text: "The answer." },
    { type: "tool_call", id: "1", name: "shell", input: {}, parent: "0" },
    { type: "text", text: "A sub-agent speaks last.", parent: "0" },
    { type: "done" },
  ])
    dialogue.message(message);
  expect(end).toEqual({ type: "answered", text: "The answer." });
  expect(events.slice(1)).toEqual([
    {
      type: "plan",
      steps: [
        { text: "look", status: "completed" },
        { text: "write", status: "pending" },
      ],
    },
    { type: "text", text: "The answer." },
    { type: "tool_call", id: "1", name: "shell", input: {}, parentCallId: "0" },
    { type: "text", text: "A sub-agent speaks last.", parentCallId: "0" },
  ]);
});

test("the prompt of a resumed session says whether its last turn was cut off", () => {
  const sent: unknown[] = [];
  new CustomDialogue({
    prompt: "go on",
    folder: "/",
    model: null,
    permissionMode: "default",
    agentSessionId: "s",
    resumedId: "s",
    isCutOff: true,
    wayBack: undefined,
    unpriced: [],
    send: (message) => sent.push(message),
    emit: () => {},
    end: () => {},
  }).begin();
  expect(sent).toMatchObject([{ type: "prompt", text: "go on", resumed: true, cutOff: true }]);
});
