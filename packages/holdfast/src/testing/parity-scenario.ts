// The scenario of parity (`openScenario`). It has a skill, an environment, an MCP server over HTTP, a script,
// and an agent that is started. It has hooks of both kinds, an approval, and a process that is killed in
// between.

import { readFileSync } from "node:fs";
import { startMcpHttpServer, type Conversation, type McpHttpServer, type Reply } from "@holdfast/testkit";
import { expect } from "vitest";
import { ModelProject, repliesOf } from "./model-project.ts";

/**
 * The things that the model and the person see, by their names: the rows of a table with a column for each
 * mode and sandbox.
 */
export type Seen = Readonly<Record<string, string>>;

export interface Scenario {
  readonly project: ModelProject;
  readonly server: McpHttpServer;
  /** Called once, when the model has been asked for its reply after the first results. */
  kill: (() => void) | undefined;
  /** The rows, once the session has ended. */
  seen(person: { readonly asked: string; readonly output: string }): Seen;
}

export const SESSION = "p";
export const INPUT = "Count the words.";
export const OUTPUT = "The answer is four.";

const call = (name: string, input: object = {}): Reply => ({ toolCalls: [{ name, input: { ...input } }] });
const STEPS: readonly (readonly [row: string, reply: Reply])[] = [
  ["skill", call("read_skill", { name: "house-style" })],
  ["environment", call("shell", { command: "echo region $REGION release $RELEASE" })],
  ["MCP server", call("mcp__notes__greet", { text: "you" })],
  ["script", call("script__count", { file: "text.txt" })],
  ["child", call("delegate", { agent: "helper", input: "Help." })],
  ["hook", call("read_file", { path: "secret.txt" })],
  ["approval", call("write_file", { path: "result.txt", content: "four\n" })],
  ["shell", call("shell", { command: "cat result.txt; echo *.txt; exit 3" })],
];

/** The tools that the policy of a machine gives to a pushed file. */
export const TOOLS: readonly string[] = [
  "read_file",
  "write_file",
  "shell",
  "read_skill",
  "mcp__notes__*",
  "script__count",
  "script__mark",
];

/** The rights of a pushed file to start agents and to have hooks. */
export const BELOW = { hooks: true, subAgents: ["helper", "checker"] } as const;

/** The environment and the variables that the policy of a machine gives to a pushed file. */
export const GIVEN = { environments: ["staging"], variables: ["REGION", "RELEASE"] } as const;
/** The options of the start, which has a variable that no environment has. */
export const START: readonly string[] = ["--env", "RELEASE=2"];

const agentFile = (sandbox: string): string => `---
name: lead
description: Leads.
tools: Read, Write, Bash, mcp__notes__*, Task
skills: [house-style]
mcpServers: [notes]
holdfast:
  sandbox: ${sandbox}
  scripts: [count]
  agents: [helper]
  hooks:
    before_tool: { tools: [read_file], agent: checker }
    after_tool: { tools: [script__count], script: mark }
  environment: [staging]
  variables: [REGION, RELEASE]
  approvals: { allow: [script__count, mcp__notes__greet, Bash] }
---
You lead.
`;

const MARK = { name: "mark", description: "Marks a result.", script_file: "mark.sh" };
const SCRIPT = {
  name: "count",
  description: "Counts words.",
  script_file: "count.sh",
  parameters_schema: { properties: { file: { type: "string" } }, required: ["file"] },
};

const BLOCKED = JSON.stringify({ action: "block", reason: "It is secret." });

/** @param close takes what closes the parts, in the order in which they were opened. */
export async function openScenario(
  sandbox: string,
  close: (part: () => Promise<void>) => void,
): Promise<Scenario> {
  const server = await startMcpHttpServer();
  close(() => server.close());
  const project = await ModelProject.open({ HOLDFAST_SANDBOX_IMAGE: process.env["HOLDFAST_SANDBOX_IMAGE"] });
  close(() => project.dispose());
  for (const [path, text] of Object.entries({
    "text.txt": "one two three four\n",
    ".holdfast/agents/lead.md": agentFile(sandbox),
    ".holdfast/agents/helper.md": "---\nname: helper\ndescription: Helps.\ntools: Read\n---\nYou help.\n",
    ".holdfast/agents/checker.md": "---\nname: checker\ndescription: Checks.\ntools: Read\n---\nYou check.\n",
    ".holdfast/scripts/mark/script.json": JSON.stringify(MARK),
    ".holdfast/scripts/mark/mark.sh": `cat > /dev/null; echo '{"action":"continue","context":"It is marked."}'\n`,
    ".holdfast/scripts/count/script.json": JSON.stringify(SCRIPT),
    ".holdfast/scripts/count/count.sh": 'wc -w < "$2" | tr -d " "\n',
    ".agents/skills/house-style/SKILL.md":
      "---\nname: house-style\ndescription: The style.\n---\nShort words.\n",
  }))
    project.write(path, text);
  for (const args of [
    ["agents", "trust"],
    ["env", "set", "staging", "REGION=north"],
    ["mcp", "add", "notes", "--user", "--url", server.url],
  ]) {
    const { code, stderr } = await project.run(...args);
    expect(code, `${args.join(" ")}: ${stderr}`).toBe(0);
  }
  const killedAt = STEPS.findIndex(([row]) => row === "script");
  let last: Conversation | undefined;
  const scenario: Scenario = {
    project,
    server,
    kill: undefined,
    seen: (person) => rowsOf(last, person, scenario),
  };
  project.script = (conversation) => {
    if (conversation.system.includes("You help.")) return { text: "helped" };
    if (conversation.system.includes("You check.")) return { text: BLOCKED };
    last = conversation;
    const replies = repliesOf(conversation);
    if (replies === killedAt) {
      scenario.kill?.();
      scenario.kill = undefined;
    }
    return STEPS[replies]?.[1] ?? { text: OUTPUT };
  };
  return scenario;
}

function rowsOf(
  last: Conversation | undefined,
  person: { readonly asked: string; readonly output: string },
  { project, server }: Scenario,
): Seen {
  const results = last?.messages.flatMap(({ toolResults }) => toolResults) ?? [];
  const rows = {
    ...Object.fromEntries(
      (last?.system ?? "")
        .split("\n\n")
        .map((part) => [`prompt: ${/^(\S+ ?){1,4}/.exec(part)?.[0].trim()}`, part]),
    ),
    ...Object.fromEntries(
      (last?.tools ?? []).map(({ name, ...tool }) => [`tool ${name}`, JSON.stringify(tool)]),
    ),
    ...Object.fromEntries(STEPS.map(([row], at) => [row, results[at]?.text ?? "none"])),
    ...person,
    file: readFileSync(project.path("result.txt"), "utf8"),
    "calls of the MCP server": server.log.filter((line) => line.startsWith("tools/call")).join(", "),
  };
  return Object.fromEntries(Object.entries(rows).map(([row, text]) => [row, plain(text, project)]));
}

/** Without what differs between two sessions: their ids, folders and times. */
function plain(text: string, { folder, home }: ModelProject): string {
  return text
    .replaceAll(folder, "FOLDER")
    .replaceAll(home, "HOME")
    .replaceAll(/ses_[\w-]+/g, "SESSION")
    .replaceAll(/\d+ ms/g, "N ms")
    .replaceAll(/\d{4}-\d\d-\d\d/g, "DAY");
}
