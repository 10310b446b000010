// `withinRights`: an agent record with no more rights than the owner of a machine gives to agents that come from elsewhere.
//
//   rights-1. A record that asks for more is refused. A record that names no tools gets those that are given.
//   rights-2. Programs, code, secrets and variables of the machine are never given: hooks, servers with a command or an address, tasks of a
//       project, environments. Agents inside of the file are refused, too, as their tools are compared with the file and not with the policy.

import type { AgentRecord } from "../agent-record.ts";
import { TOOLS } from "../format/tool-names.ts";

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

/** @param tools the tools that are given; `*` at the end of a name stands for any text. @returns the record, or why it is refused. */
export function withinRights(
  record: AgentRecord,
  tools: readonly string[],
): { readonly record: AgentRecord } | { readonly refused: string } {
  const given = (tool: string): boolean => tools.some((one) => covers(one, tool));
  const wanted = record.tools ?? TOOLS.filter(given);
  const more = wanted.find((tool) => !given(tool));
  if (more !== undefined) return { refused: `the policy of this runner does not give the tool ${more}` };
  const problem = problemOf(record, given);
  if (problem !== undefined) return { refused: problem };
  // The sandbox of this machine counts, where the file would have none.
  return {
    record: { ...record, tools: wanted, sandbox: record.sandbox === "filesystem" ? null : record.sandbox },
  };
}

/** rights-2. */
function problemOf(record: AgentRecord, given: (tool: string) => boolean): string | undefined {
  const { hooks, mcpServers, secrets, environments, variables, agents, subAgents, tasks, scripts } = record;
  const isOutside = (what: string): string => `a file from a coordinator cannot have ${what} on this runner`;
  if (hooks.length > 0) return isOutside("hooks");
  const own = Object.entries(mcpServers).find(([, server]) => typeof server !== "string");
  if (own !== undefined) return isOutside(`settings of an MCP server of its own (${own[0]})`);
  const server = Object.keys(mcpServers).find((name) => !given(`mcp__${name}__*`));
  if (server !== undefined) return `the policy of this runner does not give the tools mcp__${server}__*`;
  if (secrets.length > 0) return isOutside(`secrets (${secrets.join(", ")})`);
  const outside = [...environments, ...variables];
  if (outside.length > 0) return isOutside(`environments or variables (${outside.join(", ")})`);
  if (agents.length > 0) return isOutside(`agents that it starts (${agents.join(", ")})`);
  const inside = Object.keys(subAgents);
  if (inside.length > 0) return isOutside(`agents inside of the file (${inside.join(", ")})`);
  if (tasks.length > 0) return isOutside(`tasks of a project (${tasks.join(", ")})`);
  const script = scripts.find((name) => !given(`script__${name}`));
  return script === undefined
    ? undefined
    : `the policy of this runner does not give the tool script__${script}`;
}

/** Whether each tool that the second name stands for is one that the first stands for. */
function covers(given: string, wanted: string): boolean {
  if (!given.endsWith("*")) return given === wanted;
  return wanted.startsWith(given.slice(0, -1));
}
