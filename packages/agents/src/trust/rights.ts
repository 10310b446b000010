// `withinRights`: compares the agent file of a coordinator with the policy of the runner, which the owner of
// the machine writes. It returns the completed record, or why the record is refused.
//
//   - A record that asks for more is refused. A record without `tools` gets the tools of Holdfast that the
//     policy gives. A record that names no skills gets none, because the skills of the machine's user are for
//     the user's own agents.
//   - A file brings no program, code or secret with it: hooks, servers with a command or an address, tasks of
//     a project. It may name scripts and MCP servers of the machine whose tools the policy gives, and the
//     environments and variables that the policy names. Where the policy says so, its other environments are
//     those of the coordinator. A variable can change what a program does, also one
//     that a start gives. Agents that it defines or starts are refused, as their tools would be compared
//     with the file and not with the policy.
//   - Each field of a record has a rule. A new field without one does not compile.

import { ownSandbox } from "@holdfast/workspace";
import type { AgentRecord } from "../record/agent-record.ts";
import { splitReference } from "../record/content-references.ts";
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

/** The rights that a machine gives to agent files of a coordinator. */
export interface GivenRights {
  /** Names of tools; `*` at the end of a name stands for any text. */
  readonly tools: readonly string[];
  /** Names of environments of its user. */
  readonly environments?: readonly string[] | undefined;
  /** Whether the agents get the other environments that they name from their coordinator. */
  readonly coordinatorEnvironments?: boolean | undefined;
  /** Names of variables, from these environments or from a start. */
  readonly variables?: readonly string[] | undefined;
  /** The sandbox of the machine for agents that name none. */
  readonly sandbox: string;
}

/** @returns the record, or why it is refused. */
export function withinRights(
  record: AgentRecord,
  rights: GivenRights,
): { readonly record: AgentRecord } | { readonly refused: string } {
  const given: Given = (tool) => rights.tools.some((one) => covers(one, tool));
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
  const source = { ...record.source, environments, ...stored };
  // No names mean no skills here, and not all of them.
  return { record: { ...wanted, skills: record.skills ?? [], source } };
}

type Given = (tool: string) => boolean;
/** Why a record has more rights in this field than a machine gives, if so. */
type Rule = (record: AgentRecord, given: Given, rights: GivenRights) => string | undefined;

/** The field gives no right: it describes the agent, restricts it, or changes only the work of the tools that it has. */
const noRight: Rule = () => undefined;

/** The field holds programs, values or agents, which are never given. */
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
    const more = tools?.find((tool) => !given(tool));
    return more === undefined ? undefined : notGiven(`the tool ${more}`);
  },
  deniedTools: noRight,
  permissions: noRight, // They concern tools that the policy gives.
  effects: noRight,
  turnsMax: noRight,
  planFirst: noRight,
  agents: never("agents that it starts", ({ agents }) => agents),
  subAgents: never("agents inside of the file", ({ subAgents }) => Object.keys(subAgents)),
  relaysMessages: noRight,
  skills: ({ skills }, given) =>
    (skills ?? []).length === 0 || given(SKILL_TOOL)
      ? versionNamed(skills ?? [])
      : notGiven(`the tool ${SKILL_TOOL}, which skills need`),
  script: ({ script }, given) =>
    script === undefined || given(`script__${script}`)
      ? undefined
      : notGiven(`the tool script__${script}, which the agent itself is`),
  scripts: ({ scripts }, given) => {
    const script = scripts.find((name) => !given(`script__${splitReference(name).name}`));
    return script === undefined ? versionNamed(scripts) : notGiven(`the tool script__${script}`);
  },
  tasks: never("tasks of a project", ({ tasks }) => tasks),
  when: noRight,
  hooks: never("hooks", ({ hooks }) => hooks.map(({ point }) => point)),
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
    return server === undefined ? undefined : notGiven(`the tools mcp__${server}__*`);
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
    const refused = missingIn(rights.environments, environments, "the environment");
    return refused && `${refused}; \`agentFiles.coordinatorEnvironments\` would give it from the coordinator`;
  },
  variables: ({ variables }, _given, rights) => missingIn(rights.variables, variables, "the variable"),
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
  given: readonly string[] = [],
  wanted: readonly string[],
  what: string,
): string | undefined {
  const more = wanted.find((name) => !given.includes(name));
  return more === undefined ? undefined : notGiven(`${what} ${more}`);
}

function notGiven(what: string): string {
  return `the policy of this runner does not give ${what}`;
}

/** Whether each tool that the second name stands for is one that the first stands for. */
function covers(given: string, wanted: string): boolean {
  if (!given.endsWith("*")) return given === wanted;
  return wanted.startsWith(given.slice(0, -1));
}
