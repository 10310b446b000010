// E8: OpenCode applies the last rule that matches, and the mapped rules permit no more than it does.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { isCampaign, sampled } from "@holdfast/testkit/campaign";
import { decide } from "../../permissions/permissions.ts";
import type { Tool } from "../../model-loop/tools/tool.ts";
import type { AgentRecord, PermissionDecision } from "../../record/agent-record.ts";
import { loadAgentFile } from "../load-agent-file.ts";

/** The random inputs of a test. The tests campaign tries more (`HOLDFAST_CAMPAIGN`). */
const RUNS = isCampaign ? 500 : 150;

const folder = mkdtempSync(join(tmpdir(), "holdfast-opencode-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const STRICTNESS: Readonly<Record<PermissionDecision, number>> = { allow: 0, ask: 1, deny: 2 };

type Action = PermissionDecision;
type Example = [permission: Permission, subject: string];
type Permission = Readonly<Record<string, Action | Readonly<Record<string, Action>>>>;

/** OpenCode's decision, which is the last rule whose key and pattern match. Without one it allows. */
function theirs(permission: Permission, key: string, subject: string): Action {
  let decision: Action = "allow";
  for (const [name, value] of Object.entries(permission)) {
    if (name !== "*" && name !== key) continue;
    for (const [pattern, action] of typeof value === "string"
      ? [["*", value] as const]
      : Object.entries(value))
      if (matchesStars(pattern, subject)) decision = action;
  }
  return decision;
}

/** OpenCode's patterns: a star is any text, and a star after a space at the end is optional together with the space. */
function matchesStars(pattern: string, subject: string): boolean {
  const escaped = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
  return new RegExp(`^${escaped.replace(/ \.\*$/, "( .*)?")}$`, "s").test(subject);
}

/** The decision by the record. */
function ours(record: AgentRecord, name: string, subject: string): Action {
  if (record.deniedTools.includes(name)) return "deny";
  const tool: Tool = {
    offered: { name, description: "", inputSchema: {} },
    isReading: name === "read_file",
    subjectKind: name === "shell" ? "command" : "path",
    prepare: () => {
      throw new Error("no call is made");
    },
  };
  return decide(record.permissions, tool, subject).decision;
}

function mapped(permission: Permission): AgentRecord | null {
  const path = join(folder, "agent.md");
  writeFileSync(path, `---\ndescription: d\npermission: ${JSON.stringify(permission)}\n---\nx\n`);
  return loadAgentFile({ path, dialect: "opencode", scope: "path", within: null }).record;
}

const action = fc.constantFrom<Action>("allow", "ask", "deny");
const piece = fc.constantFrom("git", "gi", "push", "x", "*", "p*", "*h", "a*b");
const rulesOf = (patterns: fc.Arbitrary<string>) =>
  fc.oneof(
    action,
    fc.array(fc.tuple(patterns, action), { maxLength: 5 }).map((rules) => Object.fromEntries(rules)),
  );

const commandPatterns = fc.array(piece, { minLength: 1, maxLength: 3 }).map((words) => words.join(" "));
const commands = fc
  .array(fc.constantFrom("git", "gi", "push", "pushx", "x", "ph", "ab", "azb"), {
    minLength: 1,
    maxLength: 3,
  })
  .map((words) => words.join(" "));
/** OpenCode decides the commands of a line one by one. */
const lines = fc.array(commands, { minLength: 1, maxLength: 2 }).map((parts) => parts.join(" && "));

const pathPatterns = fc
  .array(fc.constantFrom("a", "b", "*", "**", "a*", "*b", "a*b", "c.env", "*.env"), {
    minLength: 1,
    maxLength: 3,
  })
  .map((steps) => steps.join("/"));
const paths = fc
  .array(fc.constantFrom("a", "b", "ab", "azb", "c.env"), { minLength: 1, maxLength: 4 })
  .map((steps) => steps.join("/"));

const permissions = (key: string, patterns: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(fc.constantFrom("*", key, "webfetch"), rulesOf(patterns)), { maxLength: 4 })
    .map((rules): Permission => Object.fromEntries(rules));

// The rule that asks matches a part of what the rule before it allows, by a star that has no counterpart.
const COMMAND: Example = [{ bash: { "*": "deny", "git *": "allow", "git p*": "ask" } }, "git push"];
const TWO: Example = [{ bash: { "*": "deny", "git *": "ask" } }, "git push && x"];
const pathOf = (key: string): Example => [
  { [key]: { "*": "deny", "a/**": "allow", "a/*b": "ask" } },
  "a/b/b",
];
const noFolder = (key: string): Example => [{ [key]: { "*": "ask", "*/**": "allow" } }, "a"];

// The rule for all tools asks before a read, and asking is less than the denial of edits.
const OTHER: Example = [{ edit: "deny", "*": { a: "ask" } }, "a/a"];

test.each(
  sampled([
    ["a command", "bash", ["shell"], commandPatterns, lines, [COMMAND, TWO]],
    ["a path that is read", "read", ["read_file"], pathPatterns, paths, [pathOf("read"), noFolder("read")]],
    [
      "a path that is changed",
      "edit",
      ["edit_file", "write_file"],
      pathPatterns,
      paths,
      [pathOf("edit"), noFolder("edit"), OTHER],
    ],
  ] as const),
)("E8: %s is permitted only where OpenCode permits it", (_what, key, tools, patterns, subjects, examples) => {
  fc.assert(
    fc.property(permissions(key, patterns), subjects, (permission, subject) => {
      const record = mapped(permission);
      if (record === null) return;
      const parts = key === "bash" ? subject.split(" && ") : [subject];
      const [wanted = "allow"] = parts
        .map((part) => theirs(permission, key, part))
        .toSorted((a, b) => STRICTNESS[b] - STRICTNESS[a]);
      for (const tool of tools) {
        const got = ours(record, tool, subject);
        const says = `${tool} ${subject}: ${got}, and OpenCode says ${wanted}`;
        expect(STRICTNESS[got], says).toBeGreaterThanOrEqual(STRICTNESS[wanted]);
      }
    }),
    { numRuns: RUNS, examples: [...examples] },
  );
});
