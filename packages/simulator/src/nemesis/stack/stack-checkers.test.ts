// Each checker finds a violation that is planted, and nothing in a run without one.

import { expect, test } from "vitest";
import type { Effect } from "../observed.ts";
import { checkStack, type StackSeen } from "./stack-checkers.ts";
import type { ExecutorLine } from "./tree-executor.ts";

const begin = (taskId: string, attempt: number, name = "step"): Effect => ({
  at: 0,
  phase: "begin",
  name,
  runner: "local",
  pid: 1,
  sessionId: "s",
  taskId,
  attempt,
});
const line = (what: ExecutorLine["what"], text: string): ExecutorLine => ({
  at: 0,
  sessionId: "s",
  what,
  text,
});

const CLEAN: StackSeen = {
  effects: [begin("s-0", 1), begin("s-0", 2), begin("s-1", 1, "pay")],
  outcomes: [{ taskId: "s-0", attempt: 2 }],
  executors: [line("began", "start"), line("acknowledged", "a report")],
  entries: { s: ["a report"] },
  orphans: [],
  secretIn: [],
};

test("a run without a violation has none", () => {
  expect(checkStack(CLEAN)).toEqual([]);
});

test.each<[promise: string, seen: Partial<StackSeen>]>([
  ["H7", { effects: [begin("s-0", 1), begin("s-0", 1)] }],
  ["H7", { outcomes: [{ taskId: "s-0", attempt: 1 }] }],
  ["H8b", { effects: [begin("s-1", 1, "pay"), begin("s-1", 2, "pay")] }],
  ["H1", { entries: { s: ["another report"] } }],
  ["H1", { entries: {} }],
  ["P1", { orphans: ["1 (sleep 600) still runs"] }],
  ["P2", { executors: [line("second", "start")] }],
  ["X15", { secretIn: ["stack.log"] }],
  ["X7", { executors: [line("variable", "API_KEY")] }],
])("%s: a planted violation is found, as %j", (promise, seen) => {
  const violations = checkStack({ ...CLEAN, ...seen });
  expect(violations).toEqual([expect.stringContaining(`${promise}: `)]);
});
