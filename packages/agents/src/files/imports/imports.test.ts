// Files of other tools that are imported. The fixtures have the form of real files. No permission is wider
// than in the file, and each field has a verdict.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { afterAll, describe, expect, test } from "vitest";

import { agentFileText } from "../agent-file-text.ts";
import type { AgentFile } from "../load-agent-file.ts";
import { loadAgentFile } from "../load-agent-file.ts";
import { decide } from "../../permissions/permissions.ts";
import type { AgentRecord } from "../../record/agent-record.ts";
import { importedAgents } from "./import-files.ts";

const base = mkdtempSync(join(tmpdir(), "holdfast-imports-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

const fixture = (name: string): readonly AgentFile[] =>
  importedAgents(fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))) ?? [];

function read(name: string, content: object | string): readonly AgentFile[] {
  const path = join(base, name);
  writeFileSync(
    path,
    typeof content === "string"
      ? content
      : name.endsWith("yaml")
        ? stringify(content)
        : JSON.stringify(content),
  );
  return importedAgents(path) ?? [];
}

const recordOf = (files: readonly AgentFile[], name: string): AgentRecord => {
  const file = files.find((one) => one.name === name);
  if (file?.record === undefined || file.record === null)
    throw new Error(
      `${name}: ${JSON.stringify(file?.problem ?? file?.verdicts.filter(({ verdict }) => verdict === "refused"))}`,
    );
  return file.record;
};
const verdictsOf = (file: AgentFile | undefined): Record<string, string> =>
  Object.fromEntries((file?.verdicts ?? []).map(({ field, verdict }) => [field, verdict]));
const refusals = (file: AgentFile | undefined): string =>
  [
    file?.problem?.message,
    ...(file?.verdicts ?? [])
      .filter(({ verdict }) => verdict === "refused")
      .map(({ field, text }) => `${field}: ${text}`),
  ].join("\n");
const runs = ({ permissions }: AgentRecord, command: string): string =>
  decide(permissions, { isReading: false, subjectKind: "command", offered: { name: "shell" } }, command)
    .decision;

describe("agent.yaml of Docker", () => {
  const files = fixture("docker/agent.yaml");
  const root = recordOf(files, "root");

  test("models, servers, agents, turns and the output are mapped", () => {
    expect(root).toMatchObject({
      description: "Coordinates the work on a repository",
      prompt: "You coordinate the work. Give reviews to the reviewer.",
      model: "anthropic/claude-sonnet-4-5",
      fallbackModels: ["openai/gpt-5-mini", "openai/gpt-5"],
      turnsMax: 40,
      agents: ["reviewer"],
      outputSchema: { required: ["done"] },
      deniedTools: ["web_fetch"],
      mcpServers: {
        docs: { type: "http", url: "https://docs.example.com/mcp", headers: {}, enabledTools: ["search"] },
        duckduckgo: {
          type: "stdio",
          command: "docker",
          args: ["mcp", "gateway", "run", "--servers=duckduckgo"],
          env: {},
        },
      },
    });
    expect(root.tools).toEqual(
      expect.arrayContaining([
        "read_file",
        "write_file",
        "shell",
        "todo",
        "delegate",
        "mcp__docs__*",
        "mcp__duckduckgo__*",
      ]),
    );
    expect(root.tools).not.toContain("ask_user");
  });

  test("a command is allowed only where Docker allows it", () => {
    expect(runs(root, "git log --oneline")).toBe("allow");
    expect(runs(root, "git logout")).toBe("ask");
    expect(runs(root, "git log; rm -rf .")).toBe("ask");
    const file = { decision: "ask", tool: "write_file", pattern: "docs/**" };
    expect(root.permissions).toContainEqual(file);
  });

  test("an agent that only reads has no tool that changes something, and no tool that its toolsets lack", () => {
    const { tools, deniedTools } = recordOf(files, "reviewer");
    expect(tools).toEqual(["read_file", "search"]);
    expect(deniedTools).toEqual(expect.arrayContaining(["write_file", "edit_file", "shell"]));
  });

  test("each field of the file and of the agent has a verdict with its place", () => {
    const verdicts = verdictsOf(files[0]);
    expect(verdicts).toMatchObject({
      "agents.root.model": "mapped",
      "agents.root.toolsets": "mapped",
      "agents.root.add_date": "ignored",
      "agents.root.commands": "ignored",
      permissions: "mapped",
      models: "ignored",
      mcps: "ignored",
      version: "ignored",
    });
    expect(files[0]?.verdicts.find(({ field }) => field === "agents.root.max_iterations")?.line).toBe(39);
  });

  const agent = (fields: object, file: object = {}): AgentFile | undefined =>
    read("agent.yaml", { agents: { a: { description: "d", instruction: "x", ...fields } }, ...file })[0];

  test("without toolsets an agent has no tools", () => {
    expect(agent({})?.record?.tools).toEqual([]);
  });

  test("an ask for a whole tool goes before an allowance by a pattern, also in our own form", () => {
    const file = agent(
      { toolsets: [{ type: "shell" }] },
      { permissions: { allow: ["shell:cmd=ls*"], ask: ["shell"] } },
    );
    const record = file?.record as AgentRecord;
    expect(runs(record, "ls")).toBe("ask");
    const path = join(base, "a.md");
    writeFileSync(path, agentFileText(record));
    const again = loadAgentFile({ path, dialect: "holdfast", scope: "path", within: null })
      .record as AgentRecord;
    expect(runs(again, "ls")).toBe("ask");
  });

  test.each<readonly [what: string, fields: object, file: object, says: string]>([
    [
      "a mode that asks for nothing",
      { safety: "autonomous" },
      {},
      "agents.a.safety: it would run every tool without asking",
    ],
    ["such a mode of the file", {}, { runtime: { safety: "autonomous" } }, "runtime: it would run"],
    ["hooks", { hooks: { pre_tool_use: [] } }, {}, "agents.a.hooks: hooks of Docker have another form"],
    [
      "an unknown limit of a toolset",
      { toolsets: [{ type: "fetch", allowed_domains: ["a"] }] },
      {},
      "toolsets.0.allowed_domains may be a limit",
    ],
    [
      "an unknown field",
      { toolset: [] },
      {},
      'knows no field "toolset" of an agent of Docker; did you mean toolsets?',
    ],
    ["an unknown field of the file", {}, { permission: {} }, 'knows no field "permission"'],
    [
      "a rule for a tool that is not known",
      {},
      { permissions: { deny: ["launch"] } },
      "deny launch names no tool",
    ],
    ["an agent of another file", { sub_agents: ["org/other"] }, {}, "org/other is no agent of this file"],
    ["an agent of another program", { harness: { type: "codex" } }, {}, "run it as an external agent"],
    ["a server without a program", { toolsets: [{ type: "mcp" }] }, {}, "it has no command, no remote"],
    [
      "a server of a deprecated transport",
      { toolsets: [{ type: "mcp", remote: { url: "https://a.example", transport_type: "sse" } }] },
      {},
      "transport sse",
    ],
    ["a budget", {}, { budget: { max_cost: 1 } }, "budget: amounts of Docker have another form"],
    ["no prompt", { instruction: "" }, {}, "agents.a.instruction: the system prompt is missing"],
    ["no description", { description: "" }, {}, "description: it is missing"],
    [
      "an output schema that is none",
      { structured_output: { name: "o", schema: { type: 7 } } },
      {},
      "it is no JSON Schema",
    ],
  ])("%s refuses the agent", (_what, fields, file, says) => {
    const found = agent(fields, file);
    expect([found?.record, refusals(found)]).toEqual([null, expect.stringContaining(says)]);
  });

  test.each([
    ["has no agents", "version: '2'\n", "the file has no agents"],
    ["is not YAML", "agents: [\n", "the file is not YAML"],
    ["uses an alias", "a: &x {}\nagents: { a: *x }\n", "the file uses the alias *x"],
  ])("a file that %s is refused", (_what, text, says) => {
    expect(read("agent.yaml", text)).toMatchObject([
      { record: null, problem: { message: expect.stringContaining(says) } },
    ]);
  });
});

describe("a managed agent of Anthropic", () => {
  const [file] = fixture("managed/release-notes.json");

  test("the name, the model, the servers and the tools are mapped, and nothing runs without asking that did so in a container", () => {
    expect(file?.record).toMatchObject({
      name: "release-notes-writer",
      model: "anthropic/claude-opus-4-8",
      prompt: "You write release notes. Name each change with its number.",
      tools: [
        "shell",
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search",
        "mcp__github__list_pull_requests",
      ],
      mcpServers: { github: { type: "http", url: "https://api.githubcopilot.com/mcp/" } },
      skills: [],
      agents: [],
      permissions: [{ decision: "ask", tool: "shell", pattern: null }],
    });
    expect(verdictsOf(file)).toMatchObject({
      name: "mapped",
      tools: "mapped",
      "tools.2": "ignored",
      skills: "ignored",
      multiagent: "ignored",
      id: "ignored",
      archived_at: "honoured",
    });
  });

  const GOOD = { name: "a", model: "claude-opus-4-8", system: "x", description: "d" };
  test("without tools it has none", () => {
    expect(read("managed.json", GOOD)[0]?.record?.tools).toEqual([]);
  });

  test.each<readonly [what: string, fields: object, says: string]>([
    ["an unknown field", { toolz: [] }, 'knows no field "toolz" of a managed agent; did you mean tools?'],
    [
      "an unknown tool",
      { tools: [{ type: "agent_toolset_20260401", configs: [{ name: "fly", enabled: false }] }] },
      "the toolset has no tool fly",
    ],
    [
      "a server that is not there",
      { tools: [{ type: "mcp_toolset", mcp_server_name: "x" }] },
      "mcp_servers has no server x",
    ],
    [
      "a token that is written out",
      { mcp_servers: [{ type: "url", name: "x", url: "https://a.example", authorization_token: "t" }] },
      "has a token written out",
    ],
    [
      "an unknown policy",
      {
        tools: [{ type: "agent_toolset_20260401", default_config: { permission_policy: { type: "never" } } }],
      },
      "tools: wrong value",
    ],
    ["an archived agent", { archived_at: "2026-01-01T00:00:00Z" }, "the agent is archived"],
    ["a name without letters", { name: "!!!" }, "is no name of an agent"],
    ["no prompt", { system: null }, "system: the system prompt is missing"],
  ])("%s refuses the agent", (_what, fields, says) => {
    const [found] = read("managed.json", { ...GOOD, ...fields });
    expect([found?.record, refusals(found)]).toEqual([null, expect.stringContaining(says)]);
  });

  test("a tool that is always denied is not offered", () => {
    const tools = [
      {
        type: "agent_toolset_20260401",
        configs: [{ name: "bash", permission_policy: { type: "always_deny" } }],
      },
    ];
    expect(read("managed.json", { ...GOOD, tools })[0]?.record?.tools).not.toContain("shell");
  });

  test.each([
    ["is not JSON", "{", "is not JSON"],
    ["has another content", { scripts: {} }, "no file with an agent that Holdfast knows"],
  ])("a file that %s is refused", (_what, content, says) => {
    expect(read("other.json", content)).toMatchObject([
      { record: null, problem: { message: expect.stringContaining(says) } },
    ]);
  });
});

describe("opencode.json", () => {
  const files = fixture("opencode-config/opencode.jsonc");

  test("comments, prompts in files, the model of the file and its servers are read", () => {
    expect(recordOf(files, "code-reviewer")).toMatchObject({
      model: "anthropic/claude-opus-4-20250514",
      prompt: "You review code. Change nothing.",
      deniedTools: ["write_file", "edit_file"],
      mcpServers: {
        jira: { type: "http", url: "https://jira.example.com/mcp" },
        files: { type: "stdio", command: "npx", env: { API_KEY: "${FILES_API_KEY}" } },
      },
    });
    expect(recordOf(files, "docs")).toMatchObject({
      model: "anthropic/claude-sonnet-4-20250514",
      description: "Writes documentation // and nothing else",
      deniedTools: ["web_fetch"],
    });
    expect(refusals(files.find(({ name }) => name === "plan"))).toContain(
      "agent.plan.disable: the agent is switched off",
    );
  });

  test("the rules of the file hold for each agent, and those of the agent come after them", () => {
    for (const name of ["code-reviewer", "docs"]) {
      const record = recordOf(files, name);
      expect([runs(record, "git push origin"), runs(record, "rm x")]).toEqual(["deny", "ask"]);
    }
    expect(runs(recordOf(files, "docs"), "git log --oneline")).toBe("allow");
    expect(runs(recordOf(files, "code-reviewer"), "git log --oneline")).toBe("ask");
  });

  test("a rule of an agent for all tools comes after the rules of the file", () => {
    const permission = { bash: { "git log *": "allow" } };
    const [file] = read("opencode.json", {
      permission,
      agent: { a: { description: "d", permission: { "*": "deny", read: "allow" } } },
    });
    expect(file?.record?.deniedTools).toContain("shell");
  });

  test.each<readonly [what: string, content: object, says: string]>([
    [
      "a prompt outside of the folder",
      { agent: { a: { description: "d", prompt: "{file:../x.txt}" } } },
      "leads out of the folder of the settings",
    ],
    [
      "a prompt with a file inside",
      { agent: { a: { description: "d", prompt: "x {file:a}" } } },
      "inside of a prompt is not read",
    ],
    [
      "a rule for an unknown tool",
      { permission: { lanch: "deny" }, agent: { a: { description: "d" } } },
      "lanch is no tool of OpenCode",
    ],
    [
      "rules that are none",
      { permission: 7, agent: { a: { description: "d" } } },
      "permission of the file is no set of rules",
    ],
    [
      "a misspelt restriction of the file",
      { permissions: {}, agent: { a: { description: "d" } } },
      "may be a misspelt restriction",
    ],
    ["a name that is none", { agent: { "a b": { description: "d" } } }, "is no name of an agent"],
    ["no agents", { model: "x" }, "the file has no agents"],
    ["agents that are a list", { agent: [] }, "agent is no object with agents"],
  ])("%s refuses the agent", (_what, content, says) => {
    const [found] = read("opencode.json", content);
    expect([found?.record, refusals(found)]).toEqual([null, expect.stringContaining(says)]);
  });
});

test.each(["docker/agent.yaml", "managed/release-notes.json", "opencode-config/opencode.jsonc"])(
  "each agent of %s is the same in our own form",
  (name) => {
    for (const { record } of fixture(name).filter((file) => file.record !== null)) {
      const path = join(base, "own.md");
      const { source: _source, ...expected } = record as AgentRecord;
      writeFileSync(path, agentFileText(record as AgentRecord));
      const { source: _again, ...again } = loadAgentFile({
        path,
        dialect: "holdfast",
        scope: "path",
        within: null,
      }).record as AgentRecord;
      expect(again).toEqual(expected);
    }
  },
);

test("a file of another kind is none of these", () => {
  expect(importedAgents(join(base, "a.md"))).toBeUndefined();
  expect(
    importedAgents(fileURLToPath(new URL("../fixtures/folder/csv-report/agent.json", import.meta.url))),
  ).toBeUndefined();
});
