// Each dialect reads a file as people write it for its tool, and reports on every field.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { agentFileSchema } from "./agent-file-schema.ts";
import { agentFileText } from "./agent-file-text.ts";
import type { PlacedDialect } from "../places/agent-places.ts";
import { loadAgentFile, type AgentFile } from "./load-agent-file.ts";

const folder = mkdtempSync(join(tmpdir(), "holdfast-agent-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function loadFixture(dialect: PlacedDialect, file: string): AgentFile {
  const path = fileURLToPath(new URL(`./fixtures/${dialect}/${file}`, import.meta.url));
  return loadAgentFile({ path, dialect, scope: "path", within: null });
}

let made = 0;
function load(dialect: PlacedDialect, text: string): AgentFile {
  const path = join(folder, `agent-${made++}${dialect === "codex" ? ".toml" : ".md"}`);
  writeFileSync(path, text);
  return loadAgentFile({ path, dialect, scope: "path", within: null });
}

/** A file of one field, with what every file needs. */
const withField = (field: string): string => `---\nname: one\ndescription: d\n${field}\n---\nDo it.\n`;

/** The verdicts that are not plainly honoured, as `field verdict: text`. */
function said(file: AgentFile): string[] {
  return file.verdicts
    .filter(({ verdict }) => verdict !== "honoured")
    .map(({ field, verdict, text }) => `${field} ${verdict}: ${text}`);
}

describe("a file in Holdfast's own form", () => {
  const example = loadFixture("holdfast", "release-notes.md");

  test("every field is honoured or mapped, and the record has its value", () => {
    expect(example.problem).toBeNull();
    expect(example.verdicts.filter(({ verdict }) => verdict === "ignored" || verdict === "refused")).toEqual(
      [],
    );
    expect(example.record).toMatchObject({
      name: "release-notes",
      prompt: "You write release notes.\n\nList what a user sees, newest first.",
      model: "anthropic/claude-sonnet-5",
      fallbackModels: ["openai/gpt-5.5"],
      tools: ["read_file", "search", "shell", "delegate"],
      deniedTools: ["web_fetch"],
      agents: ["reviewer"],
      turnsMax: 40,
      budget: {
        maxCostMicroUsd: 2_500_000,
        maxTokens: 400_000,
        onExhausted: "park",
        windows: [{ per: "day", maxCostMicroUsd: 500_000, maxSteps: 90 }],
      },
      ttlMs: 5_400_000,
      sandbox: "bwrap",
      environments: ["release"],
      secrets: ["ISSUES_TOKEN"],
      labels: { os: "linux", gpu: false },
      effects: { mcp__issues__comment: "once" },
      workspace: "worktree",
      inputSchema: { type: "object", required: ["version"] },
      outputSchema: { required: ["notes"] },
      mcpServers: { tracker: "tracker", issues: { type: "http", url: "https://issues.example.org/mcp" } },
      source: { dialect: "holdfast", hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect(example.record?.permissions).toContainEqual({
      decision: "allow",
      tool: "shell",
      pattern: "git log:*",
    });
    expect(example.record?.permissions).toContainEqual({
      decision: "deny",
      tool: "write_file",
      pattern: "CHANGELOG.md",
    });
  });

  test("docs/agent-file.schema.json is made of the schemas that files are read by", () => {
    const path = new URL("../../../../docs/agent-file.schema.json", import.meta.url);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(agentFileSchema());
  });

  test("a misspelt field below holdfast refuses the file, because it may be a limit", () => {
    const misspelt = load("holdfast", withField("holdfast:\n  budgt: { usd: 1 }"));
    expect(misspelt.record).toBeNull();
    expect(misspelt.verdicts).toContainEqual({
      field: "holdfast.budgt",
      verdict: "refused",
      text: 'Holdfast knows no field "budgt" under holdfast; did you mean budget?',
      line: 5,
    });
  });

  test.each([
    ["holdfast:\n  budget: { usd: 0 }", "holdfast.budget refused"],
    ["holdfast:\n  budget: { dollars: 5 }", "holdfast.budget refused"],
    ["holdfast:\n  budget: { windows: [{ per: week, usd: 1 }] }", "holdfast.budget refused"],
    ["holdfast:\n  budget: { windows: [{ per: day }] }", "holdfast.budget refused"],
    ["holdfast:\n  ttl: soon", "holdfast.ttl refused"],
    ["holdfast:\n  ttl: 5", "holdfast.ttl refused"],
    [
      "holdfast:\n  approvals: { deny: [Bsh] }",
      "holdfast.approvals refused: there is no tool Bsh; did you mean Bash?",
    ],
    ["holdfast:\n  approvals: { never: [Bash] }", "holdfast.approvals refused"],
    ["holdfast:\n  input: { type: strnig }", "holdfast.input refused: it is no JSON Schema"],
    ["holdfast:\n  output: { properties: 5 }", "holdfast.output refused: it is no JSON Schema"],
    ["holdfast:\n  input: { $ref: '#/$defs/nothing' }", "holdfast.input refused: it is no JSON Schema"],
    [
      "holdfast:\n  input: { type: string, pattern: '(a+)+$' }",
      "holdfast.input refused: it is no JSON Schema: matching",
    ],
    ["holdfast:\n  effects: { shel: once }", "holdfast.effects refused: there is no tool shel"],
    ["holdfast:\n  effects: { shell: sometimes }", "holdfast.effects refused"],
    ["holdfast:\n  when: { shel: { after: search } }", "holdfast.when refused: there is no tool shel"],
    [
      "holdfast:\n  when: { shell: { after: search }, search: { after: shell } }",
      "holdfast.when refused: shell would wait for itself",
    ],
    ["holdfast:\n  agents: ['../x']", 'holdfast.agents refused: "../x" is no name'],
    ["holdfast:\n  workspace: elsewhere", "holdfast.workspace refused"],
    ["holdfast: true", "holdfast refused: wrong value"],
    ["DISALOWED_TOOLS: Bash", "DISALOWED_TOOLS refused: Holdfast knows no field"],
    ["allowed-tools: Read", "allowed-tools refused: Holdfast knows no field"],
    ["maxTurns: many", "maxTurns refused: wrong value"],
    ["maxTurns: 0", "maxTurns refused: wrong value"],
    ["tools: { Read: true }", "tools refused: wrong value"],
    ["disallowedTools: Raed", "disallowedTools refused: there is no tool Raed; did you mean Read?"],
    ["permissionMode: bypassPermissions", "permissionMode refused: it would run every tool without asking"],
    ["permissionMode: everything", "permissionMode refused: wrong value"],
    [
      "mcpServers: { x: { type: sse, url: 'https://x.example' } }",
      "mcpServers.x refused: Holdfast does not speak",
    ],
    ["mcpServers: { x: { command: '' } }", "mcpServers.x refused: command"],
    ["mcpServers: { x: { url: 'file:///etc/passwd' } }", "mcpServers.x refused: url"],
    ["mcpServers: { x: { command: y, tools: [a] } }", "mcpServers.x refused: "],
    [
      "hooks: { PreToolUse: [{ hooks: [{ type: prompt, prompt: x }] }] }",
      "hooks.PreToolUse refused: Holdfast runs hooks of the type command",
    ],
    [
      "hooks: { PreToolUse: [{ matcher: '(a+)+', hooks: [] }] }",
      'hooks.PreToolUse refused: the matcher "(a+)+" may never end',
    ],
    [
      "hooks: { PreToolUse: [{ matcher: '[', hooks: [] }] }",
      'hooks.PreToolUse refused: the matcher "[" is no regular expression',
    ],
    ["hooks: { PreToolUse: 7 }", "hooks.PreToolUse refused: it is no list"],
    [
      "hooks: { ElicitationResult: [{ hooks: [{ type: command, command: x }] }] }",
      "hooks.ElicitationResult refused: Holdfast has no such event",
    ],
    ["holdfast: { hooks: { on_start: { command: x } } }", "holdfast.hooks refused: wrong value"],
    ["holdfast: { hooks: { on_run_start: {} } }", "either `command`, `script` or `agent`"],
    ["holdfast: { hooks: { on_run_start: { command: x, tools: [shell] } } }", "concerns no tool"],
    ["holdfast: { hooks: { after_tool: { command: x, timeout: 1h } } }", "is not between 1ms and 10m"],
    ["isolation: container", "isolation refused: wrong value"],
  ])("%s refuses the file", (field, says) => {
    const file = load("holdfast", withField(field));
    expect(file.record).toBeNull();
    expect(said(file).join("\n")).toContain(says);
  });

  test.each([
    [
      "colour: blue",
      'colour ignored: Holdfast knows no field "colour" of an agent file; did you mean color?',
    ],
    ["license: MIT", 'license ignored: Holdfast knows no field "license" of an agent file'],
    ["hooks: { Notification: [] }", "hooks.Notification ignored: Holdfast has no such event"],
    ["tools: message_agent, Reed", "tools mapped: message_agent; there is no tool Reed; did you mean Read?"],
    ["tools: []", "tools mapped: no tool; without the field the agent gets all"],
    ["tools:", "tools mapped: no tool; without the field the agent gets all"],
    ["disallowedTools: Write Edit", "disallowedTools mapped: deny write_file; deny edit_file"],
  ])("%s is reported, and the file is loaded", (field, says) => {
    const file = load("holdfast", withField(field));
    expect(said(file)).toEqual([says]);
    expect(file.record).not.toBeNull();
  });
});

describe("a file as a whole", () => {
  const head = "---\nname: one\ndescription: d\n";
  test.each<[what: string, text: string | Buffer, message: string, line: number | null]>([
    ["an empty file", "", "the file has no front matter", 1],
    ["a file without front matter", "# Title\n", "the file has no front matter", 1],
    ["front matter without an end", "---\nname: one\n", "the front matter has no end", 1],
    ["front matter that is no YAML", "---\nname: [one\n---\nx", "the front matter is not YAML", 2],
    ["a list as front matter", "---\n- one\n---\nx", "the front matter is not a list of fields", 2],
    ["a field that stands twice", `${head}name: two\n---\nx`, "a field stands twice in the front matter", 4],
    ["an alias", `${head}a: &x [1]\nb: *x\n---\nx`, "the front matter uses the alias *x", 5],
    ["UTF-16", Buffer.from("---\nname: one\n---\n", "utf16le"), "the file has no front matter", 1],
    ["invalid UTF-8", Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xe9]), "the file is not UTF-8", null],
    [
      "front matter of 900 KB",
      `${head}${Array.from({ length: 90_000 }, (_, n) => `k${n}: 1\n`).join("")}---\nx`,
      "the front matter has 888914 bytes, and 65536 is the limit",
      2,
    ],
    ["10 MB", `${head}---\n${"x".repeat(10_000_000)}`, "the file has 10000033 bytes", null],
  ])("%s is a problem with its place", (_what, text, message, line) => {
    const path = join(folder, `whole-${made++}.md`);
    writeFileSync(path, text);
    const { problem, record } = loadAgentFile({ path, dialect: "holdfast", scope: "path", within: null });
    expect(record).toBeNull();
    expect(problem).toMatchObject({
      message: expect.stringContaining(message),
      fix: expect.any(String),
      line,
    });
  });

  test("aliases that would stand for gigabytes are refused before they are expanded", () => {
    const laughs = ["a: &a [l,l,l,l,l,l,l,l,l]"];
    for (let i = 1; i < 12; i++) {
      const [name, before] = [String.fromCharCode(97 + i), String.fromCharCode(96 + i)];
      laughs.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(",")}]`);
    }
    const { problem } = load("holdfast", `${head}${laughs.join("\n")}\n---\nx`);
    expect(problem?.message).toBe("the front matter uses the alias *a");
  });

  test("a byte-order mark and line breaks of Windows change nothing", () => {
    const file = load("holdfast", `\uFEFF${withField("model: inherit").replaceAll("\n", "\r\n")}Again.\r\n`);
    expect(file.record).toMatchObject({ name: "one", model: null, prompt: "Do it.\nAgain." });
  });

  test("a file without a name has its file's, and one without description or prompt is refused", () => {
    expect(load("claude", "---\ndescription: d\n---\nx").record?.name).toMatch(/^agent-\d+$/);
    expect(said(load("claude", "---\nname: one\n---\n")).map((line) => line.split(":")[0])).toEqual([
      "description refused",
      "prompt refused",
    ]);
  });

  test.each(["", "a b", "../x", "A".repeat(61), "con", "ünï", ".hidden", "a/b", "-x"])(
    "%j is no name",
    (name) => {
      const file = load("claude", `---\nname: ${JSON.stringify(name)}\ndescription: d\n---\nx`);
      expect(file.record).toBeNull();
      expect(said(file).join()).toContain("is no name of an agent");
    },
  );

  test("a version changes with the content of the file", () => {
    const hash = (text: string): string | undefined => load("claude", text).record?.source.hash;
    expect(hash(withField("color: red"))).toBe(hash(withField("color: red")));
    expect(hash(withField("color: red"))).not.toBe(hash(withField("color: tan")));
  });
});

describe("files of other tools", () => {
  test("Claude Code: a list of tools with patterns limits the shell to these commands", () => {
    const file = loadFixture("claude", "code-reviewer.md");
    expect(said(file)).toEqual([
      "description mapped: read as a text, although it is not valid YAML; put it in quotes",
      "tools mapped: read_file, search, list_files, shell(git diff:* | npm test); not available: WebSearch",
      "color ignored: it only says how another tool shows the agent",
    ]);
    expect(file.record?.description).toContain('user: "Please check it" assistant:');
    expect(file.record?.permissions).toEqual([
      { decision: "deny", tool: "shell", pattern: null },
      { decision: "ask", tool: "shell", pattern: "git diff:*" },
      { decision: "ask", tool: "shell", pattern: "npm test" },
    ]);
  });

  test("Claude Code: a mode that never asks denies what would be asked", () => {
    const file = loadFixture("claude", "quality/db-reader.md");
    expect(file.record).toMatchObject({
      tools: ["shell", "read_file"],
      deniedTools: ["write_file", "edit_file", "shell", "web_fetch", "delegate", "mcp__*", "script__*"],
      skills: ["sql-style"],
      workspace: "worktree",
      turnsMax: 20,
      mcpServers: {
        slack: "slack",
        postgres: {
          type: "stdio",
          command: "npx",
          args: ["-y", "@example/postgres-mcp"],
          env: { PGHOST: "localhost" },
        },
      },
    });
    expect(said(file).filter((line) => line.includes("ignored"))).toHaveLength(3);
  });

  test("approvals add no call to those that tools limits the agent to", () => {
    const approvals = "holdfast: { approvals: { allow: [Bash], ask: [Bash(git push*), Read(src/**)] } }";
    const { record } = load("claude", withField(`tools: Bash(git log:*), Read\n${approvals}`));
    expect(record?.permissions).toEqual([
      { decision: "deny", tool: "shell", pattern: null },
      { decision: "allow", tool: "shell", pattern: "git log:*" },
      { decision: "ask", tool: "read_file", pattern: "src/**" },
    ]);
  });

  test("OpenCode: the last rule wins there, and nothing is permitted here that it would not permit", () => {
    const { record, verdicts } = loadFixture("opencode", "docs-writer.md");
    expect(verdicts.find(({ field }) => field === "permission")?.verdict).toBe("mapped");
    expect(record).toMatchObject({
      name: "docs-writer",
      turnsMax: 25,
      deniedTools: ["web_fetch"],
      agents: ["explore"],
    });
    expect(record?.permissions).toEqual([
      { decision: "allow", tool: "edit_file", pattern: "docs/**/*" },
      { decision: "deny", tool: "edit_file", pattern: null },
      { decision: "allow", tool: "write_file", pattern: "docs/**/*" },
      { decision: "deny", tool: "write_file", pattern: null },
      { decision: "allow", tool: "shell", pattern: "git diff" },
      { decision: "allow", tool: "shell", pattern: "git log:*" },
      { decision: "deny", tool: "shell", pattern: "git:*" },
      { decision: "deny", tool: "shell", pattern: "rm:*" },
      { decision: "ask", tool: "delegate", pattern: null },
      { decision: "ask", tool: "mcp__github__*", pattern: null },
    ]);
  });

  test("OpenCode: to allow everything is mapped to the default, which asks before changes", () => {
    const { record } = load(
      "opencode",
      withField('permission: { "*": allow, bash: { "*": allow, "rm *": ask } }'),
    );
    expect(record?.permissions).toContainEqual({ decision: "allow", tool: "shell", pattern: null });
    expect(record?.permissions).toContainEqual({ decision: "ask", tool: "shell", pattern: "rm:*" });
    expect(
      record?.permissions.filter(({ tool, decision }) => tool === "write_file" && decision === "allow"),
    ).toEqual([]);
    expect(load("opencode", withField("permission: deny")).record?.deniedTools).toContain("mcp__*");
    expect(load("opencode", withField('tools: { "*": false }')).record?.deniedTools).toContain("read_file");
    expect(said(load("opencode", withField("permission: { bsh: deny }")))).toContain(
      "permission refused: bsh is no tool of OpenCode, and its rule cannot be mapped",
    );
  });

  test("Codex: a sandbox that only reads denies every tool that changes something", () => {
    const { record, verdicts } = loadFixture("codex", "pr-explorer.toml");
    expect(record).toMatchObject({
      name: "pr_explorer",
      prompt: "Stay in exploration mode.\nTrace the real execution path, cite files and symbols.",
      deniedTools: ["write_file", "edit_file", "shell", "web_fetch", "delegate", "mcp__*", "script__*"],
      mcpServers: { docs: { type: "http", url: "https://docs.example.org/mcp" } },
    });
    expect(verdicts.find(({ field }) => field === "sandbox_mode")).toMatchObject({
      verdict: "mapped",
      line: 5,
    });
  });

  test.each([
    ['sandbox_mode = "danger-full-access"', "sandbox_mode refused: it would give every command the rights"],
    ['sandbox_mod = "read-only"', "sandbox_mod refused: Holdfast knows no field"],
    ["[mcp_servers.x]\ncommand = 'y'\ndisabled_tools = ['a']", "mcp_servers.x refused: "],
  ])("Codex: %s refuses the file", (field, says) => {
    const file = load("codex", `name = "one"\ndescription = "d"\ndeveloper_instructions = "x"\n${field}\n`);
    expect(file.record).toBeNull();
    expect(said(file).join("\n")).toContain(says);
  });

  test("Codex: enabled_tools limits the tools of a server", () => {
    const server = "[mcp_servers.x]\ncommand = 'y'\nenabled_tools = ['a']";
    const file = load("codex", `name = "one"\ndescription = "d"\ndeveloper_instructions = "x"\n${server}\n`);
    expect(file.record?.mcpServers).toMatchObject({ x: { command: "y", enabledTools: ["a"] } });
  });

  test("Codex: a file that is not TOML is a problem with its place", () => {
    expect(load("codex", "name = \n").problem).toMatchObject({
      message: expect.stringContaining("not TOML"),
      line: 1,
    });
  });

  test("Gemini CLI: minutes become a time to live, and wildcards name the tools of a server", () => {
    expect(loadFixture("gemini", "security-auditor.md").record).toMatchObject({
      tools: ["read_file", "search", "mcp__scanner__*"],
      turnsMax: 10,
      ttlMs: 300_000,
    });
    expect(said(load("gemini", withField("kind: remote"))).join()).toContain("kind refused");
  });

  test("Copilot: the name is the file's, a list of models has fallbacks, and a limited server is refused", () => {
    const { record } = loadFixture("copilot", "test-specialist.agent.md");
    expect(record).toMatchObject({
      name: "test-specialist",
      model: "claude-sonnet-4.5",
      fallbackModels: ["gpt-5"],
      agents: ["planner"],
      tools: expect.arrayContaining(["mcp__playwright__browser_click", "mcp__custom-mcp__*", "delegate"]),
    });
    const limited = load("copilot", withField("mcp-servers: { x: { command: y, tools: [a] } }"));
    expect(limited.record?.mcpServers).toMatchObject({ x: { enabledTools: ["a"] } });
    const unclear = load("copilot", withField("mcp-servers: { x: { command: y, tools: ['get_*'] } }"));
    expect(said(unclear).join()).toContain("mcp-servers.x refused");
  });

  test("a folder with agent.json: schemas, demands and servers are mapped", () => {
    expect(loadFixture("folder", "csv-report").record).toMatchObject({
      prompt: "You read a CSV file and write a report.",
      inputSchema: { required: ["file"] },
      labels: { executor_profile: "claude", python: true },
      skills: ["charts"],
      mcpServers: { neo4j: "neo4j-shared", orchestrator: { type: "http" } },
    });
  });
});

test.each([
  ["holdfast", "release-notes.md"],
  ["claude", "code-reviewer.md"],
  ["claude", "quality/db-reader.md"],
  ["opencode", "review.md"],
  ["codex", "pr-explorer.toml"],
  ["gemini", "security-auditor.md"],
  ["copilot", "test-specialist.agent.md"],
  ["folder", "csv-report"],
] as const)("the %s file %s is the same agent in our own form", (dialect, name) => {
  const { source: _, permissions: rules, ...wanted } = loadFixture(dialect, name).record!;
  const again = load("holdfast", agentFileText(loadFixture(dialect, name).record!));
  expect(again.verdicts.filter(({ verdict }) => verdict === "refused")).toEqual([]);
  const { source: __, permissions, ...got } = again.record!;
  expect(got).toEqual(wanted);
  expect(permissions).toEqual(expect.arrayContaining([...rules]));
  // A pattern that is mapped twice may deny more paths, and allows no more.
  const allowed = (list: typeof rules) => list.filter(({ decision }) => decision === "allow");
  expect(allowed(permissions)).toEqual(allowed(rules));
});

test("an agent of OpenCode permits no more in our own form", () => {
  const { record } = load("holdfast", agentFileText(loadFixture("opencode", "docs-writer.md").record!));
  expect(record?.tools).toEqual(expect.arrayContaining(["edit_file", "write_file", "shell"]));
  expect(record?.permissions.filter(({ tool }) => tool === "edit_file")).toEqual([
    { decision: "deny", tool: "edit_file", pattern: null },
    { decision: "allow", tool: "edit_file", pattern: expect.stringMatching(/^docs\//) },
  ]);
  expect(record?.permissions).toContainEqual({ decision: "deny", tool: "shell", pattern: "rm:*" });
  expect(record?.permissions).toContainEqual({ decision: "ask", tool: "mcp__github__*", pattern: null });
});
