// Agents that an agent file defines itself: their fields, and that none of them can do more than the agent of
// the file.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { decide } from "../permissions/permissions.ts";
import { agentFileText } from "../files/agent-file-text.ts";
import { loadAgentFile, type AgentFile } from "../files/load-agent-file.ts";
import { subAgentRecords } from "./sub-agents.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-sub-agents-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function load(text: string): AgentFile {
  const path = join(folder, "lead.md");
  writeFileSync(path, text);
  return loadAgentFile({ path, dialect: "holdfast", scope: "path", within: null });
}

/** A lead with one sub-agent `checker`, each with these fields besides the required ones. */
const lead = (fields: string, checker: string): AgentFile =>
  load(
    `---\nname: lead\ndescription: d\n${fields}\nholdfast:\n  sandbox: virtual\n  subAgents:\n    checker: { description: Checks., prompt: You check., ${checker} }\n---\nLead.\n`,
  );

const refusals = ({ verdicts }: AgentFile): string[] =>
  verdicts.filter(({ verdict }) => verdict === "refused").map(({ field, text }) => `${field}: ${text}`);

const SHELL = { offered: { name: "shell" }, isReading: false, subjectKind: "command" } as const;

test("a sub-agent has what its file says of it, and everything else from the agent of the file", () => {
  const { record, verdicts } = lead(
    "model: anthropic/claude-opus-5\nmaxTurns: 9\ndisallowedTools: [WebFetch, 'Bash(git push:*)']",
    "tools: [Read, Bash], disallowedTools: 'Bash(rm:*)', model: openai/gpt-5.5",
  );
  expect(verdicts.filter(({ verdict }) => verdict === "refused")).toEqual([]);
  const [checker, ...others] = subAgentRecords(record!);
  expect(others).toEqual([]);
  expect(checker).toMatchObject({
    name: "lead.checker",
    prompt: "You check.",
    model: "openai/gpt-5.5",
    tools: ["read_file", "shell"],
    deniedTools: ["web_fetch"],
    turnsMax: 9,
    sandbox: "virtual",
    agents: [],
    subAgents: {},
  });
  const decisions = ["git push origin", "rm -r x", "ls"].map(
    (command) => decide(checker!.permissions, SHELL, command).decision,
  );
  expect(decisions).toEqual(["deny", "deny", "ask"]);
});

test.each([
  ["tools: Read", "tools: Bash", "it would have the tool shell"],
  ["tools: 'Read, mcp__docs__*'", "tools: 'mcp__*'", "it would have the tool mcp__*"],
  ["tools: 'Bash(git diff:*)'", "tools: 'Bash(git:*)'", "the agent of this file has rules for shell"],
  ["tools: 'Read, Task'", "tools: Task", "a sub-agent starts no agents"],
])("with `%s` a sub-agent with `%s` is refused", (fields, checker, reason) => {
  const file = lead(fields, checker);
  expect(file.record).toBeNull();
  expect(refusals(file).join()).toContain(`holdfast.subAgents.checker: ${reason}`);
});

test.each([
  ["agents: [lead]", 'checker.agents: Holdfast knows no field "agents" of a sub-agent'],
  ["permissionMode: acceptEdits", "checker.permissionMode: Holdfast knows no field"],
  ["sandbox: filesystem", "checker.sandbox: Holdfast knows no field"],
  ["tool: Read", "did you mean tools?"],
  ["maxTurns: 0", "wrong value"],
  ["disallowedTools: Raed", "there is no tool Raed; did you mean Read?"],
])("the field `%s` of a sub-agent is refused", (checker, reason) => {
  expect(refusals(lead("tools: Read", checker)).join()).toContain(reason);
});

test("a sub-agent without a prompt, or with a name that is none, refuses the file", () => {
  const withSub = (sub: string): string[] =>
    refusals(load(`---\nname: lead\ndescription: d\nholdfast:\n  subAgents: { ${sub} }\n---\nLead.\n`));
  expect(withSub("a: { description: d }")).toEqual(["holdfast.subAgents.a.prompt: it is missing"]);
  expect(withSub("a.b: { description: d, prompt: p }").join()).toContain('"a.b" is no name of an agent');
  expect(withSub("a: yes").join()).toContain("wrong value");
});

test("`Task(checker)` means the sub-agent, and the file is the same after it was written again", () => {
  const { record } = lead("tools: 'Read, Bash, Task(checker)'", "tools: 'Bash(npm test:*)', maxTurns: 3");
  expect(record?.agents).toEqual([]);
  const again = load(agentFileText(record!));
  expect(again.record?.subAgents).toEqual(record?.subAgents);
});
