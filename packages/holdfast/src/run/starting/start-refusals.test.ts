import { HoldfastError } from "@holdfast/core";
import { defineAgent } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { refuseStart, resumesInStack, type RefusalFacts } from "./start-refusals.ts";

const code = defineAgent({ name: "code", run: () => Promise.resolve(1) });
const takesText = defineAgent({ name: "text", input: z.string(), run: () => Promise.resolve(1) });
const ofCode = { loaded: { agent: code, source: { kind: "code", path: "/a.ts" } } } as const;
const textOfCode = { loaded: { ...ofCode.loaded, agent: takesText } };
const source = { kind: "file", path: "/a.md" } as const;
const file = { loaded: { agent: takesText, source, record: { inputSchema: null, isConversation: false } } };
const schema = { loaded: { ...file.loaded, record: { inputSchema: {}, isConversation: false } } };
const external = { loaded: { agent: takesText, source: { kind: "program", name: "codex" } } } as const;
const found = { sessionId: "s" };

function facts(options: readonly string[], more: Partial<RefusalFacts> = {}): RefusalFacts {
  return { args: { has: (name) => options.includes(name), usage: "run" }, command: "run", ...more };
}

function refusal(of: RefusalFacts): string | undefined {
  try {
    refuseStart(of);
    return undefined;
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    return error.message;
  }
}

describe("a combination is refused", () => {
  test.each<[promise: string, of: RefusalFacts, text: string]>([
    ["a demand without an agent's name", facts(["demand"]), "--demand is for sessions that runners run"],
    ["a text beside an input", facts(["input"], { text: "hello" }), "a text and --input exclude each other"],
    [
      "a text for code without an input schema",
      facts([], { text: "hello", ...ofCode }),
      '"hello" is one argument too many',
    ],
    [
      "a variable for an external agent",
      facts(["env"], { ...external, found: null }),
      "--env and --env-ref: for agent files, and this is an external agent",
    ],
    [
      "an option of agent files for code",
      facts(["resume-at-reset", "sandbox"], { ...ofCode, found: null }),
      "--resume-at-reset and --sandbox: for agent files, and this agent is code",
    ],
    [
      "a variable for a session that exists",
      facts(["env"], { ...file, found }),
      "the session exists already, and keeps the variables and the agent of its start",
    ],
    [
      "a profile for an agent file",
      facts(["profile"], file),
      '--profile is for external agents, and "text" is none',
    ],
    [
      "options of the other agent for a fork that keeps its agent",
      facts(["worktree", "profile", "budget", "ttl"], { command: "fork" }),
      "--worktree and --profile and --budget and --ttl: for a hand-over to another agent",
    ],
    [
      "a hand-over to code in a worktree",
      facts(["agent", "worktree"], { command: "fork", ...ofCode, found: null }),
      "--worktree: for agent files, and this agent is code",
    ],
    [
      "a chat with code",
      facts([], { command: "chat", text: "hello", ...ofCode }),
      '"code" is an agent of code, and a chat needs an agent file',
    ],
    [
      "a chat with an agent file that has an input schema",
      facts([], { command: "chat", ...schema }),
      'agent "text" takes another input than a text',
    ],
    [
      "a choice of the start for a chat that exists",
      facts(["sandbox"], { command: "chat", text: "hello", found }),
      "the conversation exists already, and keeps the agent of its start",
    ],
    [
      "a next request for code",
      facts(["conversation"], ofCode),
      '--conversation is for agent files and external agents, and "code" is code',
    ],
    [
      "a next request for an agent file with an input schema",
      facts(["conversation"], schema),
      'agent "text" takes another input than a text, and so no next request',
    ],
    [
      "a choice of the start for a session that exists",
      facts(["sandbox"], { ...external, found }),
      "session s exists already, and keeps the choices of its start",
    ],
    [
      "a worktree for a session that the stack would start",
      facts(["worktree"], { ...file, found: null, isOfStack: true }),
      "the local stack would run this session, and does not get --worktree of this call",
    ],
  ])("%s", (_promise, of, text) => {
    expect(refusal(of)).toBe(text);
  });
});

describe("a combination is allowed", () => {
  test.each<[promise: string, of: RefusalFacts]>([
    ["a demand with an agent's name", facts(["demand", "agent"])],
    ["a text for an agent with an input schema", facts([], { text: "hello", ...textOfCode })],
    ["a worktree for an external agent", facts(["worktree", "input"], { ...external, found })],
    ["a variable for a new session of an agent file", facts(["env"], { ...file, found: null })],
    [
      "a resume at the reset, which the stack gets with the input",
      facts(["resume-at-reset"], { ...file, found: null, isOfStack: true }),
    ],
    ["a next request for an agent file without an input schema", facts(["conversation"], file)],
    ["a profile for an external agent", facts(["profile"], external)],
    ["a hand-over in a worktree", facts(["agent", "worktree"], { command: "fork", ...file, found: null })],
    ["a chat with an external agent", facts(["profile"], { command: "chat", ...external, found: null })],
    ["a chat that exists", facts([], { command: "chat", text: "hello", found })],
    ["an option whose agent is not known yet", facts(["worktree"])],
  ])("%s", (_promise, of) => {
    expect(refusal(of)).toBeUndefined();
  });
});

test("the stack gets no field that an input schema may not know", () => {
  expect(resumesInStack(facts(["resume-at-reset"], file))).toBe(true);
  expect(resumesInStack(facts(["resume-at-reset"], schema))).toBe(false);
});
