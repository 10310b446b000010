// The rights of an agent file that comes from a coordinator: what the policy of a machine gives, and nothing
// more.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AgentRecord } from "../record/agent-record.ts";
import { loadAgentFile } from "../files/load-agent-file.ts";
import { offeredEnvironment, sessionEnvironment } from "../environments/session-environment.ts";
import { READING_TOOLS, withinRights } from "./rights.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "holdfast-rights-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function record(fields: string): AgentRecord {
  const path = join(folder, "a.md");
  writeFileSync(path, `---\nname: a\ndescription: d\n${fields}---\np\n`);
  const read = loadAgentFile({ path, dialect: "holdfast", scope: "path", within: null });
  if (read.record === null) throw new Error(JSON.stringify([read.problem, read.verdicts]));
  return read.record;
}
const tools = (fields: string, given: readonly string[] = READING_TOOLS) => {
  const result = withinRights(record(fields), { tools: given, sandbox: "bubblewrap" });
  return "record" in result ? result.record.tools : result.refused;
};

test("a file that names no tools gets those that are given", () => {
  expect(tools("")).toEqual([
    "read_file",
    "list_files",
    "search",
    "git_diff",
    "todo",
    "ask_user",
    "read_skill",
  ]);
  expect(tools("", ["shell", "read_file"])).toEqual(["read_file", "shell"]);
  expect(tools("", [])).toEqual([]);
});

test("a file gets the tools that it names when all of them are given", () => {
  expect(tools("tools: Read, Bash\n", ["read_file", "shell", "search"])).toEqual(["read_file", "shell"]);
  expect(tools("tools: mcp__docs__read\n", ["mcp__docs__*"])).toEqual(["mcp__docs__read"]);
});

test("a file gets the skills that it names, and none of the machine when it names none", () => {
  const skillsOf = (fields: string) => {
    const result = withinRights(record(fields), { tools: READING_TOOLS, sandbox: "bubblewrap" });
    return "record" in result ? result.record.skills : result.refused;
  };
  expect(skillsOf("tools: Read\n")).toEqual([]);
  expect(skillsOf("skills: [house-style]\n")).toEqual(["house-style"]);
});

test("a file keeps the sandbox that it names, or is refused", () => {
  const sandboxOf = (name: string, ofMachine: string) => {
    const wanted = record(`tools: Read\nholdfast: { sandbox: ${name} }\n`);
    const result = withinRights(wanted, { tools: READING_TOOLS, sandbox: ofMachine });
    return "record" in result ? result.record.sandbox : result.refused;
  };
  expect(sandboxOf("bubblewrap", "docker")).toBe("bubblewrap");
  expect(sandboxOf("filesystem", "filesystem")).toBe("filesystem");
  expect(sandboxOf("filesystem", "bubblewrap")).toMatch(
    /isolates nothing, on this runner: its own is bubblewrap/,
  );
  expect(sandboxOf("daytona", "daytona")).toBe("daytona");
  expect(sandboxOf("daytona", "bubblewrap")).toMatch(/takes files from this machine/);
});

test("a file has the environments and variables that are given, and no other environment of the machine", () => {
  const rights = {
    tools: READING_TOOLS,
    sandbox: "bubblewrap",
    environments: ["staging"],
    variables: ["REGION"],
  };
  const wanted = record("holdfast: { environment: [staging], variables: [REGION] }\n");
  const result = withinRights(wanted, rights);
  if (!("record" in result)) throw new Error(result.refused);
  const all = { base: { REGION: { value: "of-base" } }, staging: {}, production: {} };
  expect(() => sessionEnvironment(result.record, all)).toThrow("the variable REGION has no value");
  const given = { values: { REGION: "given" } };
  expect(sessionEnvironment(result.record, all, given).values).toEqual({ REGION: "given" });
  expect(() => sessionEnvironment(result.record, all, { ...given, references: ["production"] })).toThrow(
    'the environment "production", which is not there',
  );
});

test("environments of the coordinator are over those of the machine, and only for variables that are given", () => {
  const rights = {
    tools: READING_TOOLS,
    sandbox: "bubblewrap",
    environments: ["base"],
    variables: ["REGION", "TOKEN"],
    coordinatorEnvironments: true,
  };
  const wanted = record("holdfast: { environment: [staging], variables: [REGION, TOKEN] }\n");
  const result = withinRights(wanted, rights);
  if (!("record" in result)) throw new Error(result.refused);
  expect(result.record.source.storedEnvironments).toEqual(["staging"]);
  const machine = { base: { REGION: { value: "of-the-machine" }, TOKEN: { value: "plain" } }, staging: {} };
  expect(offeredEnvironment(result.record, machine)).toEqual({ missing: [], secrets: [] });
  const stored = { staging: { REGION: { value: "eu" }, TOKEN: { secret: true, storedIn: "staging" } } };
  expect(sessionEnvironment(result.record, machine, {}, stored)).toEqual({
    values: { REGION: "eu" },
    secrets: [],
    stored: { TOKEN: "staging" },
  });
  const none = (): unknown => sessionEnvironment(result.record, machine, {}, {});
  expect(none).toThrow('the environment "staging", which is not there');
  const more = record("holdfast: { environment: [staging], variables: [LD_PRELOAD] }\n");
  expect(withinRights(more, rights)).toMatchObject({ refused: expect.stringContaining("LD_PRELOAD") });
});

test("a script that is the whole agent gets no tools, because it has no model", () => {
  const wanted = record("holdfast: { script: count }\n");
  const result = withinRights(wanted, { tools: ["script__count", "read_file"], sandbox: "bubblewrap" });
  expect(result).toMatchObject({ record: { tools: null, script: "count" } });
});

describe("a file is refused", () => {
  test.each<[what: string, fields: string, reason: RegExp]>([
    [
      "for a tool",
      "tools: Read, Bash\n",
      /does not give the tool shell, as a line "tools": \["shell"\] of its "agentFiles" would/,
    ],
    ["for a pattern of tools", "tools: mcp__docs__*\n", /does not give the tool mcp__docs__\*/],
    [
      "for tasks, which are code of the project",
      "holdfast: { tasks: [tasks.ts] }\n",
      /cannot have tasks of a project \(tasks\.ts\)/,
    ],
    [
      "for a hook that is a command line",
      "holdfast: { hooks: { before_tool: [{ command: 'true' }] } }\n",
      /cannot have a hook that is a command line \(before_tool\)/,
    ],
    [
      "for a server that is a program",
      "mcpServers: [{ docs: { command: sh, args: [-c, 'true'] } }]\n",
      /settings of an MCP server of its own \(docs\)/,
    ],
    [
      "for a server at an address",
      "mcpServers: [{ docs: { type: http, url: 'https://example.org/mcp' } }]\n",
      /settings of an MCP server of its own \(docs\)/,
    ],
    ["for a server of the machine", "mcpServers: [docs]\n", /does not give the tool mcp__docs__\*/],
    ["for a secret", "holdfast: { secrets: [PASSWORD] }\n", /cannot have secrets \(PASSWORD\)/],
    [
      "for an environment",
      "holdfast: { environment: [staging] }\n",
      /the policy of this runner does not give the environment staging/,
    ],
    ["for a variable", "holdfast: { variables: [LD_PRELOAD] }\n", /does not give the variable LD_PRELOAD/],
    [
      "for an agent that it starts",
      "holdfast: { agents: [other] }\n",
      /does not give the agent other, as a line "subAgents": \["other"\] of its "agentFiles" would/,
    ],
    ["for a script", "holdfast: { scripts: [count] }\n", /does not give the tool script__count/],
    ["for a version of a skill", "skills: [pdf@stable]\n", /cannot name a version \(pdf@stable\)/],
    [
      "for a sandbox that takes files from the machine",
      "holdfast: { sandbox: daytona }\n",
      /cannot have the sandbox daytona/,
    ],
  ])("%s", (_what, fields, reason) => {
    expect(tools(fields)).toMatch(reason);
  });

  test("for a server of the machine that gets the name of another one", () => {
    const fields = "tools: mcp__given__*\nmcpServers: [{ given: prod }]\n";
    const given = ["mcp__given__*"];
    expect(tools(fields, given)).toMatch(/cannot give an MCP server of the machine another name \(given\)/);
    expect(tools("tools: mcp__given__*\nmcpServers: [given]\n", given)).toEqual(given);
  });

  test("for skills, where the policy does not give the tool that reads them", () => {
    const fields = "tools: Read\nskills: [house-style]\n";
    expect(tools(fields, ["read_file"])).toMatch(/does not give the tool read_skill \(skills need it\)/);
    expect(tools(fields, ["read_file", "read_skill"])).toEqual(["read_file"]);
  });
});

describe("hooks and agents below", () => {
  const GUARD = "holdfast: { hooks: { before_tool: [{ script: guard }] } }\n";
  const CHECKER = "holdfast: { hooks: { on_run_start: { agent: checker } } }\n";
  const STARTS = "tools: Read, Task\nholdfast: { agents: [helper] }\n";
  const defines = (given: string) =>
    `holdfast: { subAgents: { b: { description: d, prompt: p${given} } } }\n`;

  test.each<[fields: string, more: object, refused: RegExp | undefined]>([
    [GUARD, {}, /does not give hooks \(before_tool\), as a line "hooks": true/],
    [GUARD, { hooks: true }, /does not give the tool script__guard \(a hook is this script\)/],
    [GUARD, { hooks: true, tools: ["script__guard"] }, undefined],
    [
      "holdfast: { hooks: { before_tool: [{ script: guard@stable }] } }\n",
      { hooks: true, tools: ["script__*"] },
      /cannot name a version \(guard@stable\)/,
    ],
    [
      "holdfast: { hooks: { before_tool: [{ script: guard }, { command: 'true' }] } }\n",
      { hooks: true, tools: ["*"], subAgents: ["*"] },
      /cannot have a hook that is a command line/,
    ],
    [CHECKER, { subAgents: ["checker"] }, /does not give hooks \(on_run_start\)/],
    [CHECKER, { hooks: true, subAgents: ["helper"] }, /does not give the agent checker/],
    [CHECKER, { hooks: true, subAgents: ["checker"] }, undefined],
    [STARTS, { subAgents: ["helper"] }, undefined],
    [STARTS, { subAgents: ["*"] }, undefined],
    [STARTS, { subAgents: ["checker"] }, /does not give the agent helper/],
    ["tools: Read, Task\n", { subAgents: ["*"] }, /cannot start all agents \(\*\)/],
    ["holdfast: { agents: ['*'] }\n", { subAgents: ["*"] }, /cannot start all agents \(\*\)/],
    [defines(""), {}, /does not give the agent a\.b, as a line "subAgents": \["a\.b"\]/],
    [defines(""), { subAgents: ["a.b"] }, undefined],
    // Its tools are narrowed by those of the file alone, which names none here.
    [
      defines(", tools: Bash"),
      { subAgents: ["a.b"] },
      /the tool shell \(an agent inside of the file names it\)/,
    ],
  ])("%s with %o", (fields, more, refused) => {
    const result = withinRights(record(fields), { tools: READING_TOOLS, sandbox: "bubblewrap", ...more });
    if (refused === undefined) expect(result).toMatchObject({ record: { name: "a" } });
    else expect(result).toMatchObject({ refused: expect.stringMatching(refused) });
  });
});
