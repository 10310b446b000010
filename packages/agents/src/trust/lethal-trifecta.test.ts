// Private data, texts of strangers and a way out that asks nobody: which agents have all three.

import { ownSandboxes } from "@holdfast/workspace";
import { describe, expect, test } from "vitest";
import { RECORD } from "../testing/agent-record.ts";
import type { AgentRecord, PermissionRule } from "../record/agent-record.ts";
import { lethalTrifecta } from "./lethal-trifecta.ts";

const allow = (tool: string, pattern: string | null = null): PermissionRule => ({
  decision: "allow",
  tool,
  pattern,
});
const SERVER = { tickets: "tickets" };

describe("an agent with private data, texts of strangers and a way out", () => {
  test.each<readonly [what: string, change: Partial<AgentRecord>, waysOut: readonly string[]]>([
    ["may fetch any page", { permissions: [allow("web_fetch")] }, ["web_fetch"]],
    ["may run any command", { permissions: [allow("shell")] }, ["shell"]],
    ["may run curl", { permissions: [allow("shell", "curl:*")] }, ["shell(curl)"]],
    ["may push", { permissions: [allow("shell", "git push:*")] }, ["shell(git push)"]],
    ["may call a server", { mcpServers: SERVER, permissions: [allow("mcp__*")] }, ["mcp__tickets__*"]],
    [
      "may call one tool of a server",
      { mcpServers: SERVER, permissions: [allow("mcp__tickets__send")] },
      ["mcp__tickets__send"],
    ],
    [
      "has nothing private but a secret",
      { tools: ["web_fetch"], secrets: ["TOKEN"], permissions: [allow("web_fetch")] },
      ["web_fetch"],
    ],
    [
      "has a sandbox, and may fetch",
      { sandbox: "docker", permissions: [allow("shell"), allow("web_fetch")] },
      ["web_fetch"],
    ],
  ])("%s", (_what, change, waysOut) => {
    expect(lethalTrifecta({ ...RECORD, ...change })?.waysOut).toEqual(waysOut);
  });
});

test.each<readonly [what: string, change: Partial<AgentRecord>]>([
  ["asks for everything", {}],
  ["may read and edit", { permissions: [allow("edit_file"), allow("shell", "git diff:*")] }],
  ["may fetch from one host", { permissions: [allow("web_fetch", "docs.example.com")] }],
  [
    "asks for a fetch all the same",
    { permissions: [allow("web_fetch"), { ...allow("web_fetch", "*"), decision: "ask" }] },
  ],
  ["reads nothing of the user", { tools: ["web_fetch"], permissions: [allow("web_fetch")] }],
  ["gets no texts of strangers", { deniedTools: ["web_fetch"], permissions: [allow("shell")] }],
  ["runs commands without a network", { sandbox: "bubblewrap", permissions: [allow("shell")] }],
  [
    "denies the server",
    { mcpServers: SERVER, deniedTools: ["mcp__*", "web_fetch"], permissions: [allow("shell")] },
  ],
])("an agent that %s has not all three", (_what, change) => {
  expect(lethalTrifecta({ ...RECORD, ...change })).toBeUndefined();
});

const ISOLATED = ownSandboxes().filter(({ capabilities }) => capabilities.network === "none");

test.each(ISOLATED.flatMap(({ name, aliases = [] }) => [name, ...aliases]))(
  "commands in the sandbox %s are no way out, because it has no network",
  (sandbox) => {
    expect(lethalTrifecta({ ...RECORD, sandbox, permissions: [allow("shell")] })).toBeUndefined();
  },
);

test.each(["filesystem", "unknown"])("commands in the sandbox %s are a way out", (sandbox) => {
  const found = lethalTrifecta({ ...RECORD, sandbox, permissions: [allow("shell")] });
  expect(found?.waysOut).toEqual(["shell"]);
});
