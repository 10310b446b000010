import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";

import type { PermissionRule } from "../record/agent-record.ts";
import { lineReadings } from "./commands/command-readings.ts";
import { decide, decideWithAnswers, exactPattern, patternProblem } from "./permissions.ts";
import type { Tool } from "../model-loop/tools/tool.ts";

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
  ["git  diff\t HEAD ", "git diff HEAD"],
  ['touch  "a  b"', 'touch "a  b"'],
  ["touch  'a  b'", "touch 'a  b'"],
  ["touch a\\  b\\ ", "touch a\\  b\\ "],
  ["git\u00a0diff", "git\u00a0diff"],
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
  ["src/", "src"],
  ["./", "."],
  ["/", undefined],
  ["./src//a.ts", "src/a.ts"],
  ['a"b"', 'a"b"'],
] as const)("the path %j has the exact pattern %j", (path, pattern) => {
  expect(exactPattern({ ...tool(false), subjectKind: "path" }, path)).toBe(pattern);
});

test.each(["/etc/x", "../x", "a/../../x"])(
  "the path %j out of the folder matches no allow with a relative pattern (permissions-8)",
  (path) => {
    const ruled: Tool = { ...tool(false), subjectKind: "path" };
    expect(decide([rule("allow", "**")], ruled, path).decision).toBe("ask");
    expect(decide([rule("allow", "/etc/**"), rule("allow", "../*")], ruled, path).decision).toBe("allow");
  },
);

const isSameCommand = (one: string, other: string): boolean =>
  isDeepStrictEqual(lineReadings(one), lineReadings(other));

test("an exact pattern allows the call that it was made of, and no other one (permissions-6)", () => {
  const part = fc.constantFrom(
    "src",
    "a",
    ".",
    "..",
    "/",
    '"',
    "'",
    "~",
    "^",
    "$",
    ",",
    "#",
    " ",
    "\\",
    "\t",
  );
  const subject = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));
  const kind = fc.constantFrom("path" as const, "text" as const, "command" as const);
  fc.assert(
    fc.property(kind, subject, subject, (subjectKind, asked, other) => {
      const ruled: Tool = { ...tool(false), subjectKind };
      const pattern = exactPattern(ruled, asked);
      if (pattern === undefined || pattern === null) return;
      const kept = [rule("allow", pattern)];
      expect(decide(kept, ruled, asked).decision).toBe("allow");
      const isSame =
        subjectKind === "command" ? isSameCommand(other, asked) : exactPattern(ruled, other) === pattern;
      if (!isSame) expect(decide(kept, ruled, other).decision).toBe("ask");
    }),
    { numRuns: isCampaign ? 20_000 : 500 },
  );
});

test.each([
  ["command", 'touch "a b"', 'touch "a  b"'],
  ["command", "touch 'a b'", "touch 'a  b'"],
  ["command", "git diff", "git\u00a0diff"],
  ["path", "src/", "src/deep/evil.ts"],
  ["path", 'a"b"', "ab"],
  ["text", 'a"b"', "ab"],
] as const)("an answer to the %s %j does not permit %j", (subjectKind, asked, other) => {
  const ruled: Tool = { ...tool(false), subjectKind };
  const pattern = exactPattern(ruled, asked) ?? expect.fail("no pattern");
  expect(decide([rule("allow", pattern)], ruled, asked).decision).toBe("allow");
  expect(decide([rule("allow", pattern)], ruled, other).decision).toBe("ask");
});

test.each([
  ["path", "./", "x"],
  ["path", "", "x"],
  ["path", "[z-a]", "x"],
  ["text", "[z-a]", "x"],
  ["path", `*${"x".repeat(70_000)}`, "x"],
  ["command", "", "ls"],
  ["command", ":*", "ls"],
] as const)(
  "a pattern for a %s that cannot be used permits nothing and forbids: %.10j (permissions-7)",
  (subjectKind, pattern, subject) => {
    const ruled: Tool = { ...tool(true), subjectKind };
    expect(patternProblem(ruled, pattern)).toBeDefined();
    expect(decide([rule("allow", pattern)], { ...ruled, isReading: false }, subject).decision).toBe("ask");
    expect(decide([rule("deny", pattern)], ruled, subject).decision).toBe("deny");
    expect(decide([rule("ask", pattern)], ruled, subject).decision).toBe("ask");
  },
);

test("no pattern and no subject makes a decision fail (permissions-7)", () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[[\]{}()!+@|\\*?./ab-]{0,12}$/));
  const kind = fc.constantFrom("path" as const, "text" as const, "command" as const);
  fc.assert(
    fc.property(kind, text, text, (subjectKind, pattern, subject) => {
      const ruled: Tool = { ...tool(true), subjectKind };
      const { decision } = decide([rule("deny", pattern)], ruled, subject);
      if (patternProblem(ruled, pattern) !== undefined && subject.trim() !== "")
        expect(decision).toBe("deny");
    }),
    { numRuns: isCampaign ? 20_000 : 500 },
  );
});

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

describe("X9: under any rules", () => {
  const WORDS = ["git diff", "git push", "rm", "ls"];
  const ruleOf = fc.record({
    decision: fc.constantFrom("allow" as const, "ask" as const, "deny" as const),
    tool: fc.constantFrom("shell", "report", "sh*", "*"),
    pattern: fc.constantFrom(null, "*", "x", "x*", "git diff:*", "rm:*", "ls"),
  });
  const subjectOf = fc.oneof(
    fc.constantFrom(null, "x", "xy", "y"),
    fc
      .array(fc.constantFrom(...WORDS, ";", "&&", "|", "$(", ")", "-a", "x"), { maxLength: 6 })
      .map((words) => words.join(" ")),
  );
  const toolOf = fc.record({
    isReading: fc.boolean(),
    subjectKind: fc.constantFrom("command" as const, "text" as const),
    offered: fc.constantFrom({ name: "shell" }, { name: "report" }),
  });
  const names = (pattern: string, name: string): boolean =>
    pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
  const holds = (property: Parameters<typeof fc.assert>[0]): void =>
    fc.assert(property as fc.IProperty<unknown>, { numRuns: isCampaign ? 20_000 : 150 });

  test("a call of a tool that changes something runs only by a rule that allows its tool", () => {
    holds(
      fc.property(fc.array(ruleOf, { maxLength: 5 }), toolOf, subjectOf, (rules, given, subject) => {
        const { decision, rule: by } = decide(rules, given, subject);
        if (decision !== "allow" || given.isReading) return;
        expect(by?.decision).toBe("allow");
        expect(names(by?.tool ?? "", given.offered.name)).toBe(true);
      }),
    );
  });

  test("a rule that denies every call of a tool lets none run, and a rule for another tool changes nothing", () => {
    holds(
      fc.property(fc.array(ruleOf, { maxLength: 5 }), toolOf, subjectOf, (rules, given, subject) => {
        const denial = rule("deny", "*", given.offered.name);
        expect(decide([...rules, denial], given, subject).decision).toBe("deny");
        const others = [...rules, rule("allow", null, "other"), rule("allow", "*", "other")];
        expect(decide(others, given, subject)).toEqual(decide(rules, given, subject));
      }),
    );
  });

  test("a restriction of another file tool never permits what the rules of a tool forbid", () => {
    const STRICTNESS = { allow: 0, ask: 1, deny: 2 };
    const fileTools = ["read_file", "search", "edit_file", "write_file"];
    const fileRuleOf = fc.record({
      decision: fc.constantFrom("allow" as const, "ask" as const, "deny" as const),
      tool: fc.constantFrom(...fileTools, "*"),
      pattern: fc.constantFrom(null, "*", "a", "a/**", "**/b", "*.env"),
    });
    const fileTool = (name: string) => ({
      isReading: name === "read_file" || name === "search",
      subjectKind: "path" as const,
      offered: { name },
    });
    const fileToolOf = fc.constantFrom(...fileTools).map(fileTool);
    const denied = { decision: "deny", tool: "edit_file", pattern: null } as const;
    const asked = { decision: "ask", tool: "read_file", pattern: "a/**" } as const;
    const edits = fileTool("edit_file");
    fc.assert(
      fc.property(
        fc.array(fileRuleOf, { maxLength: 4 }),
        fileRuleOf,
        fileToolOf,
        fc.constantFrom(null, "a", "a/b", "a/c", "x.env"),
        (rules, added, given, subject) => {
          if (added.decision === "allow" || names(added.tool, given.offered.name)) return;
          const strictness = (all: readonly PermissionRule[]) =>
            STRICTNESS[decide(all, given, subject).decision];
          expect(strictness([...rules, added])).toBeGreaterThanOrEqual(strictness(rules));
        },
      ),
      // Such rules meet in few of the runs.
      { numRuns: isCampaign ? 20_000 : 500, examples: [[[denied], asked, edits, "a/c"]] },
    );
  });

  test("no answer of a person permits what the agent denies", () => {
    holds(
      fc.property(
        fc.array(ruleOf, { maxLength: 5 }),
        fc.array(ruleOf, { maxLength: 5 }),
        toolOf,
        subjectOf,
        (own, answers, given, subject) => {
          if (decide(own, given, subject).decision !== "deny") return;
          expect(decideWithAnswers(own, answers, given, subject).decision).toBe("deny");
        },
      ),
    );
  });

  test("a line of several commands runs only if rules allow each of them, and by none if it writes to a file", () => {
    holds(
      fc.property(
        fc.constantFrom(...WORDS),
        fc.constantFrom(";", "&&", "||", "|", "&", "\n", "`", "$(", ">", ">>"),
        fc.constantFrom(...WORDS, "x"),
        fc.boolean(),
        (first, operator, second, isSecondAllowed) => {
          const shell = { isReading: false, subjectKind: "command" as const, offered: { name: "shell" } };
          const rules = [rule("allow", `${first}:*`, "shell")];
          if (isSecondAllowed) rules.push(rule("allow", `${second}:*`, "shell"));
          const isList = !["`", "$(", ">", ">>"].includes(operator);
          const isAllowed = isList && (isSecondAllowed || first === second);
          expect(decide(rules, shell, `${first} ${operator} ${second}`).decision).toBe(
            isAllowed ? "allow" : "ask",
          );
        },
      ),
    );
  });
});
