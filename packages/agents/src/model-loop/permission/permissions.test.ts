import { expect, test } from "vitest";

import type { PermissionRule } from "../../agent-files/agent-record.ts";
import { decide, decideWithAnswers, exactPattern } from "./permissions.ts";
import type { Tool } from "../tools/tool.ts";

const tool = (isReading: boolean): Tool => ({
  offered: { name: "report", description: "", inputSchema: {} },
  isReading,
  subjectKind: "text",
  prepare: () => {
    throw new Error("not called");
  },
});
const rule = (decision: PermissionRule["decision"], pattern: string | null, name = "report") =>
  ({ decision, pattern, tool: name }) as PermissionRule;

test.each([
  ["a deny with a pattern asks for a reading tool", [rule("deny", "x*")], true, "ask"],
  [
    "a deny with a pattern asks although an allow permits the tool",
    [rule("deny", "x*"), rule("allow", null)],
    false,
    "ask",
  ],
  ["an ask with a pattern asks", [rule("ask", "x*")], true, "ask"],
  ["a deny without a pattern denies", [rule("deny", null), rule("ask", "x*")], true, "deny"],
  ["a deny of everything denies", [rule("deny", "*")], true, "deny"],
  ["an allow with a pattern permits nothing", [rule("allow", "x*")], false, "ask"],
  ["a deny of another tool changes nothing", [rule("deny", "x*", "other")], true, "allow"],
] as const)("a call without a subject: %s (permissions-4)", (_name, rules, isReading, decision) => {
  expect(decide(rules, tool(isReading), null).decision).toBe(decision);
});

test.each([
  ["git  diff HEAD", "git diff HEAD"],
  ["echo a; rm b", undefined],
  ["echo $(id)", undefined],
  ["git diff:*", undefined],
  ["*", undefined],
] as const)("the command %j has the exact pattern %j", (command, pattern) => {
  const shell: Tool = { ...tool(false), subjectKind: "command" };
  expect(exactPattern(shell, command)).toBe(pattern);
});

test.each(["src/*.ts", "a[b]", "{a,b}", "!a"])(
  "a path with the signs of a glob has no exact pattern: %s",
  (path) => {
    expect(exactPattern({ ...tool(false), subjectKind: "path" }, path)).toBeUndefined();
  },
);

test.each([
  ["an answer permits what the agent asks for", [rule("ask", "a*")], [rule("allow", "ab")], "ab", "allow"],
  ["an answer permits what has no rule", [], [rule("allow", "ab")], "ab", "allow"],
  ["an answer forbids what the agent allows", [rule("allow", "a*")], [rule("deny", "ab")], "ab", "deny"],
  ["no answer permits what the agent denies", [rule("deny", "ab")], [rule("allow", "*")], "ab", "deny"],
  ["an answer for another call changes nothing", [rule("ask", "a*")], [rule("allow", "b")], "ab", "ask"],
  ["an answer for another tool changes nothing", [], [rule("allow", null, "other")], "ab", "ask"],
] as const)("%s (permissions-5)", (_name, own, given, subject, decision) => {
  expect(decideWithAnswers(own, given, tool(false), subject).decision).toBe(decision);
});
