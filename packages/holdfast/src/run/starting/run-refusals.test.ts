import { HoldfastError } from "@holdfast/core";
import { defineAgent } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { refuseCombinations, resumesInStack, type RunFacts } from "./run-refusals.ts";

const code = defineAgent({ name: "code", run: () => Promise.resolve(1) });
const takesText = defineAgent({ name: "text", input: z.string(), run: () => Promise.resolve(1) });
const file = { agent: takesText, record: { inputSchema: null } };
const external = { agent: takesText, isExternal: true };

function facts(options: readonly string[], more: Partial<RunFacts> = {}): RunFacts {
  return { args: { has: (name) => options.includes(name) }, usage: "run", ...more };
}

function refusal(of: RunFacts): string | undefined {
  try {
    refuseCombinations(of);
    return undefined;
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    return error.message;
  }
}

describe("a combination is refused", () => {
  test.each<[promise: string, of: RunFacts, text: string]>([
    ["a demand without an agent's name", facts(["demand"]), "--demand is for sessions that runners run"],
    ["a text beside an input", facts(["input"], { text: "hello" }), "a text and --input exclude each other"],
    [
      "a text for code without an input schema",
      facts([], { text: "hello", agent: code }),
      '"hello" is one argument too many',
    ],
    [
      "a variable for an external agent",
      facts(["env"], { ...external, isFound: false }),
      "--env and --env-ref: for agent files, and this is an external agent",
    ],
    [
      "an option of agent files for code",
      facts(["resume-at-reset", "sandbox"], { agent: code, isFound: false }),
      "--resume-at-reset and --sandbox: for agent files, and this agent is code",
    ],
    [
      "a variable for a session that exists",
      facts(["env"], { ...file, isFound: true }),
      "the session exists already, and keeps the variables and the agent of its start",
    ],
    [
      "a worktree for a session that the stack would start",
      facts(["worktree"], { ...file, isFound: false, isOfStack: true }),
      "the local stack would run this session, and does not get --worktree of this call",
    ],
  ])("%s", (_promise, of, text) => {
    expect(refusal(of)).toBe(text);
  });
});

describe("a combination is allowed", () => {
  test.each<[promise: string, of: RunFacts]>([
    ["a demand with an agent's name", facts(["demand", "agent"])],
    ["a text for an agent with an input schema", facts([], { text: "hello", agent: takesText })],
    ["a worktree for an external agent", facts(["worktree"], { ...external, isFound: true })],
    ["a variable for a new session of an agent file", facts(["env"], { ...file, isFound: false })],
    [
      "a resume at the reset, which the stack gets with the input",
      facts(["resume-at-reset"], { ...file, isFound: false, isOfStack: true }),
    ],
    ["an option whose agent is not known yet", facts(["worktree"])],
  ])("%s", (_promise, of) => {
    expect(refusal(of)).toBeUndefined();
  });
});

test("the stack gets no field that an input schema may not know", () => {
  expect(resumesInStack(facts(["resume-at-reset"], file))).toBe(true);
  expect(resumesInStack(facts(["resume-at-reset"], { ...file, record: { inputSchema: {} } }))).toBe(false);
});
