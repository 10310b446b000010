import { expect, test } from "vitest";
import { agentSourceText, programOf, readAgentSource, type AgentSource } from "./agent-source.ts";

test.each<[string, AgentSource]>([
  ["/project/review.ts", { kind: "code", path: "/project/review.ts" }],
  ["/project/review.cjs", { kind: "code", path: "/project/review.cjs" }],
  ["/project/agents/review.md", { kind: "file", path: "/project/agents/review.md" }],
  ["/project/.codex/agents/review.toml", { kind: "file", path: "/project/.codex/agents/review.toml" }],
  ["/project/agents/v1.2", { kind: "file", path: "/project/agents/v1.2" }],
  ["external:claude-code", { kind: "program", name: "claude-code" }],
  ["external:writer.ts", { kind: "program", name: "writer.ts" }],
])("the stored text %s is a source, and the source is this text", (text, source) => {
  expect(readAgentSource(text)).toEqual(source);
  expect(agentSourceText(source)).toBe(text);
});

test("a session has the name of a program only where a program is its agent", () => {
  expect(programOf("external:codex")).toBe("codex");
  expect(programOf("/external:codex")).toBeUndefined();
  expect(programOf(undefined)).toBeUndefined();
});
