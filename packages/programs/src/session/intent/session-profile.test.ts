// A profile in a session of an external agent.

import { readFileSync, statSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import type { IncludedName } from "../../included-programs.ts";
import { ExternalSession } from "../../testing/external-session.ts";
import type { AgentProfile } from "@holdfast/agents";
import { ACP_AGENTS } from "../../adapters/acp/acp-quirks.ts";
import { AcpAgent } from "../../adapters/acp/acp-agent.ts";
import { ClaudeCode } from "../../adapters/claude-code/claude-code.ts";
import { CODEX } from "../../adapters/codex/codex-agent.ts";
import type { ExternalAgentProtocol } from "../external-agent-protocol.ts";
import { LineAgent } from "../../adapters/lines/line-agent.ts";
import { PI } from "../../adapters/pi/pi-agent.ts";
import { takeProfile } from "./session-profile.ts";

let session: ExternalSession | undefined;
afterEach(async () => {
  await session?.dispose();
  session = undefined;
});

test(
  "a profile gives its model, mode, settings, MCP servers and rules to Claude Code, and no key to its arguments",
  ofCampaign,
  async () => {
    session = new ExternalSession("claude-code", {
      model: "sonnet",
      permissionMode: "plan",
      rules: [{ decision: "allow", tool: "write_file", pattern: "a.txt" }],
      settings: { includeCoAuthoredBy: false },
      mcpServers: { notes: { command: "notes", env: { KEY: "canary-key" } } },
    });
    const { status, error } = await session.converse("ask:a.txt", { profile: "p" });
    expect(status, error?.message).toBe("waiting"); // The rule has answered.
    expect(session.lines("answers")).toHaveLength(1);
    const { args } = JSON.parse(session.lines("claude.log")[0]!) as { readonly args: readonly string[] };
    const valueOf = (name: string): string => args[args.indexOf(name) + 1] ?? "";
    expect(valueOf("--model")).toBe("sonnet");
    expect(valueOf("--permission-mode")).toBe("plan");
    expect(valueOf("--settings")).toBe('{"includeCoAuthoredBy":false}');
    expect(args.join(" ")).not.toContain("canary-key");
    const configs = args.filter((_, at) => args[at - 1] === "--mcp-config");
    const file = configs.find((config) => config.includes("/servers-")) ?? "";
    expect(readFileSync(file, "utf8")).toContain("canary-key");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  },
);

const place = { environment: { PATH: "/nowhere" }, folder: "/" };
test.each<ExternalAgentProtocol>([
  new ClaudeCode(place),
  ...[CODEX, PI].map((facts) => new LineAgent({ facts, ...place })),
  ...ACP_AGENTS.map((facts) => new AcpAgent({ facts, ...place })),
])("the program of a profile takes the place of that of $name", (protocol) => {
  expect(protocol.locate({ program: process.execPath })).toBe(process.execPath);
  const missing = { code: "program_missing", fix: "correct `program` in the profile" };
  expect(() => protocol.locate({ program: "/nowhere/at-all" })).toThrow(expect.objectContaining(missing));
  expect(protocol.capabilities().profileFields).toEqual(
    expect.arrayContaining(["program", "variables", "keys"]),
  );
});

test.each<[IncludedName, Omit<AgentProfile, "name">, RegExp]>([
  ["codex", { rules: [], settings: { a: 1 } }, /settings/],
  ["pi", { rules: [], mcpServers: {} }, /mcpServers/],
  ["claude-code", { rules: [], agent: "codex" }, /agent: codex/],
  ["claude-code", { rules: [], permissionMode: "bypassPermissions" }, /bypassPermissions/],
  ["claude-code", { rules: [], settings: { env: { A: "b" } } }, /settings\.env/],
  ["claude-code", { rules: [], agents: ["codex", "other"] }, /agents: other/],
])("a profile that %s cannot take is refused: %j", (name, profile, got) => {
  session = new ExternalSession(name);
  const { protocol } = session;
  const take = (): unknown =>
    takeProfile({ ...profile, name: "p" }, protocol, ["default"], undefined, ["codex"]);
  expect(take).toThrow(expect.objectContaining({ code: "config_invalid", got: expect.stringMatching(got) }));
});
