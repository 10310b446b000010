// `withinRights`: compares the agent file of a coordinator with the policy of the runner, which the owner of
// the machine writes. It returns the completed record, or why the record is refused.
//
//   - A record that asks for more is refused. A record without `tools` gets the tools of Holdfast that the
//     policy gives. A record that names no skills gets none, because the skills of the machine's user are for
//     the user's own agents.
//   - A file brings no program, code or secret with it: command lines of hooks, servers with a command or an
//     address, tasks of a project. It may name scripts and MCP servers of the machine whose tools the policy
//     gives, and the environments and variables that the policy names. Where the policy says so, its other
//     environments are those of the coordinator. A variable can change what a program does, also one that a
//     start gives.
//   - A hook is a script or an agent. The policy says whether there are hooks, and gives the tool of the
//     script or the name of the agent besides.
//   - Agents that a file starts, or that it defines, have names that the policy gives. An agent that it starts
//     has rights of its own. The tools of one that it defines are compared here.
//   - A refusal names the line of the policy that would give what is missing.
//   - Each field of a record has a rule. A new field without one does not compile.

import { ownSandbox } from "@holdfast/workspace";
import type { AgentRecord } from "../record/agent-record.ts";
import { splitReference } from "../record/content-references.ts";
import { subAgentRecords } from "../record/sub-agents.ts";
import { TOOLS } from "../record/tool-names.ts";

/** Tools that change nothing and reach nothing outside of the workspace. */
export const READING_TOOLS: readonly string[] = [
  "read_file",
  "list_files",
  "search",
  "git_diff",
  "todo",
  "ask_user",
  "read_skill",
];

const SKILL_TOOL = "read_skill";
/** It starts the agents that a file names, which the policy gives by their names. */
const START_TOOL = "delegate";

/** The rights that a machine gives to agent files of a coordinator. */
interface GivenRights {
  /** Names of tools; `*` at the end of a name stands for any text. */
  readonly tools: readonly string[];
  /** Names of environments of its user. */
  readonly environments?: readonly string[] | undefined;
  /** Whether the agents get the other environments that they name from their coordinator. */
  readonly coordinatorEnvironments?: boolean | undefined;
  /** Names of variables, from these environments or from a start. */
  readonly variables?: readonly string[] | undefined;
  /** Whether there may be hooks. */
  readonly hooks?: boolean | undefined;
  /** Names of the agents that may be started, defined in a file, or hooks; `*` for all. */
  readonly subAgents?: readonly string[] | undefined;
  /** The sandbox of the machine for agents that name none. */
  readonly sandbox: string;
}

/** @returns the record, or why it is refused. */
export function withinRights(
  record: AgentRecord,
  rights: GivenRights,
): { readonly record: AgentRecord } | { readonly refused: string } {
  const { subAgents = [] } = rights;
  const given: Given = (tool) =>
    rights.tools.some((one) => covers(one, tool)) || (tool === START_TOOL && subAgents.length > 0);
  // A script that is the whole agent has no model, and so no tools.
  const usual = record.script === undefined ? TOOLS.filter(given) : null;
  const wanted: AgentRecord = { ...record, tools: record.tools ?? usual };
  for (const rule of Object.values<Rule>(RULES)) {
    const refused = rule(wanted, given, rights);
    if (refused !== undefined) return { refused };
  }
  const { environments = [], coordinatorEnvironments = false } = rights;
  const others = record.environments.filter((name) => !environments.includes(name));
  const stored = coordinatorEnvironments ? { storedEnvironments: others } : {};
  const scope = "coordinator" as const;
  const source = { ...record.source, scope, environments, ...stored };
  // No names mean no skills here, and not all of them.
  return { record: { ...wanted, skills: record.skills ?? [], source } };
}

type Given = (tool: string) => boolean;
/** Why a record has more rights in this field than a machine gives, if so. */
type Rule = (record: AgentRecord, given: Given, rights: GivenRights) => string | undefined;

/** The field gives no right: it describes the agent, restricts it, or changes only the work of the tools that it has. */
const noRight: Rule = () => undefined;

/** The field holds programs or values, which are never given. */
const never =
  (what: string, namesOf: (record: AgentRecord) => readonly string[]): Rule =>
  (record) => {
    const names = namesOf(record);
    if (names.length === 0) return undefined;
    return `a file from a coordinator cannot have ${what} (${names.join(", ")}) on this runner`;
  };

const RULES = {
  name: noRight,
  description: noRight,
  prompt: noRight,
  model: noRight,
  fallbackModels: noRight,
  resumeAtReset: noRight,
  tools: ({ tools }, given) => {
    const more = tools?.find((tool) => tool !== START_TOOL && !given(tool));
    return more === undefined ? undefined : toolNotGiven(more);
  },
  deniedTools: noRight,
  permissions: noRight, // They concern tools that the policy gives.
  effects: noRight,
  turnsMax: noRight,
  planFirst: noRight,
  agents: ({ agents }, _given, rights) => agentNotGiven(agents, rights),
  subAgents: (record, given, rights) => {
    const agents = subAgentRecords(record);
    const more = agents.flatMap(({ tools }) => tools ?? []).find((tool) => !given(tool));
    // mutant: defined-agent-with-more-tools
    if (more !== undefined) return toolNotGiven(more, "an agent inside of the file names it");
    const names = agents.map(({ name }) => name);
    return agentNotGiven(names, rights);
  },
  relaysMessages: noRight,
  skills: ({ skills }, given) =>
    (skills ?? []).length === 0 || given(SKILL_TOOL)
      ? versionNamed(skills ?? [])
      : toolNotGiven(SKILL_TOOL, "skills need it"),
  script: ({ script }, given) =>
    script === undefined || given(scriptTool(script))
      ? undefined
      : toolNotGiven(scriptTool(script), "the agent itself is this script"),
  scripts: ({ scripts }, given) => {
    const script = scripts.find((name) => !given(scriptTool(name)));
    return script === undefined ? versionNamed(scripts) : toolNotGiven(scriptTool(script));
  },
  tasks: never("tasks of a project", ({ tasks }) => tasks),
  when: noRight,
  hooks: ({ hooks }, given, rights) => {
    const [first] = hooks;
    if (first === undefined) return undefined;
    const command = hooks.find(({ run }) => run.type === "command");
    // mutant: pushed-command-hook
    if (command !== undefined)
      return `a file from a coordinator cannot have a hook that is a command line (${command.point}) on this runner: a hook is a script or an agent`;
    // mutant: pushed-hook-not-given
    if (rights.hooks !== true) return notGiven(`hooks (${first.point})`, '"hooks": true');
    const scripts = hooks.flatMap(({ run }) => (run.type === "script" ? [run.name] : []));
    const script = scripts.find((name) => !given(scriptTool(name)));
    // mutant: pushed-hook-any-script
    if (script !== undefined) return toolNotGiven(scriptTool(script), "a hook is this script");
    const agents = hooks.flatMap(({ run }) => (run.type === "agent" ? [run.name] : []));
    return versionNamed(scripts) ?? agentNotGiven(agents, rights);
  },
  mcpServers: ({ mcpServers }, given) => {
    const own = Object.entries(mcpServers).find(([, server]) => typeof server !== "string");
    if (own !== undefined)
      return `a file from a coordinator cannot have settings of an MCP server of its own (${own[0]}) on this runner`;
    // A tool is named by the server's name in the file, and the machine knows a server by the name that it
    // gave to it.
    const renamed = Object.entries(mcpServers).find(([name, server]) => server !== name);
    if (renamed !== undefined)
      return `a file from a coordinator cannot give an MCP server of the machine another name (${renamed[0]})`;
    const server = Object.keys(mcpServers).find((name) => !given(`mcp__${name}__*`));
    return server === undefined ? undefined : toolNotGiven(`mcp__${server}__*`);
  },
  workspace: noRight,
  sandbox: ({ sandbox }, _given, { sandbox: ofMachine }) => {
    if (sandbox === null || sandbox === ofMachine) return undefined;
    if (ownSandbox(sandbox)?.keepsFilesHere !== true)
      return `a file from a coordinator cannot have the sandbox ${sandbox}, which takes files from this machine`;
    return sandbox === "filesystem"
      ? `a file from a coordinator cannot have the sandbox filesystem, which isolates nothing, on this runner: its own is ${ofMachine}`
      : undefined;
  },
  environments: ({ environments }, _given, rights) => {
    // mutant: coordinator-environment-without-policy
    if (rights.coordinatorEnvironments === true) return undefined;
    const refused = missingIn("environments", rights.environments, environments, "the environment");
    return refused && `${refused}; \`agentFiles.coordinatorEnvironments\` would give it from the coordinator`;
  },
  variables: ({ variables }, _given, rights) =>
    missingIn("variables", rights.variables, variables, "the variable"),
  secrets: never("secrets", ({ secrets }) => secrets),
  inputSchema: noRight,
  outputSchema: noRight,
  isConversation: noRight,
  budget: noRight,
  ttlMs: noRight,
  tags: noRight,
  labels: noRight,
  source: noRight,
} satisfies Record<keyof AgentRecord, Rule>;

/** The versions of a coordinator are chosen there, and its tags are not those of this machine. */
function versionNamed(references: readonly string[]): string | undefined {
  const named = references.find((one) => splitReference(one).version !== undefined);
  if (named === undefined) return undefined;
  return `a file from a coordinator cannot name a version (${named}): sessions get the one that is current there`;
}

function missingIn(
  line: string,
  given: readonly string[] = [],
  wanted: readonly string[],
  what: string,
): string | undefined {
  const more = wanted.find((name) => !given.includes(name));
  return more === undefined ? undefined : notGiven(`${what} ${more}`, `"${line}": ["${more}"]`);
}

/** A name that stands for all is none that a policy was asked for. */
function agentNotGiven(names: readonly string[], { subAgents = [] }: GivenRights): string | undefined {
  if (names.includes("*"))
    return "a file from a coordinator cannot start all agents (*) on this runner: it names each of them";
  // mutant: pushed-agent-not-given
  return missingIn("subAgents", subAgents.includes("*") ? names : subAgents, names, "the agent");
}

function scriptTool(script: string): string {
  return `script__${splitReference(script).name}`;
}

function toolNotGiven(tool: string, why?: string): string {
  return notGiven(`the tool ${tool}${why === undefined ? "" : ` (${why})`}`, `"tools": ["${tool}"]`);
}

/** @param line the part of `agentFiles` that would give it. */
function notGiven(what: string, line: string): string {
  return `the policy of this runner does not give ${what}, as a line ${line} of its "agentFiles" would`;
}

/** Whether each tool that the second name stands for is one that the first stands for. */
function covers(given: string, wanted: string): boolean {
  if (!given.endsWith("*")) return given === wanted;
  return wanted.startsWith(given.slice(0, -1));
}
