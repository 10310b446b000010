// `lethalTrifecta`: whether an agent has private data, texts of strangers and a way out that asks nobody. A
// text of a stranger could then make its model send the data away.
//
// A way out that asks a person is none: the person sees the call. The rules that people gave for a project
// are not seen here. The agents that it starts have files of their own.
//
// Leaky: scripts, tasks and hooks of the user are taken as what the user wants them to do.

import { ownSandbox } from "@holdfast/workspace";
import { decide, type PermissionTool } from "../permissions/permissions.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { matchesName } from "../record/tool-names.ts";

interface LethalTrifecta {
  /** The tools, variables and servers by which it has private data. */
  readonly privateData: readonly string[];
  readonly strangers: readonly string[];
  /** The calls that reach others without asking. */
  readonly waysOut: readonly string[];
}

type Agent = Pick<
  AgentRecord,
  "tools" | "deniedTools" | "permissions" | "mcpServers" | "sandbox" | "secrets" | "variables"
>;

const READING = ["read_file", "search", "shell", "git_diff"] as const;

/** Commands that send data to others, or run any program that does. */
const SENDING =
  "curl,wget,nc,ssh,scp,rsync,sftp,ftp,git push,npm,npx,node,python,python3,perl,ruby,sh,bash,make".split(
    ",",
  );

/** @returns nothing for an agent that lacks one of the three. */
export function lethalTrifecta(agent: Agent): LethalTrifecta | undefined {
  const { tools, deniedTools, secrets, variables, mcpServers } = agent;
  const has = (tool: string): boolean =>
    !deniedTools.some((pattern) => matchesName(pattern, tool)) &&
    (tools === null || tools.some((pattern) => matchesName(pattern, tool)));
  const servers = Object.keys(mcpServers)
    .map((name) => `mcp__${name}__*`)
    .filter((all) => !deniedTools.some((pattern) => matchesName(pattern, all)));
  const privateData = [...READING.filter(has), ...secrets, ...variables, ...servers];
  const strangers = [...["web_fetch"].filter(has), ...servers];
  const waysOut = [...(has("shell") ? commandsOut(agent) : []), ...callsOut(agent, servers, has)];
  const isComplete = [privateData, strangers, waysOut].every((part) => part.length > 0);
  return isComplete ? { privateData, strangers, waysOut } : undefined;
}

function commandsOut({ permissions, sandbox }: Agent): readonly string[] {
  if (sandbox !== null && ownSandbox(sandbox)?.capabilities.network === "none") return [];
  const shell: PermissionTool = { isReading: false, subjectKind: "command", offered: { name: "shell" } };
  const runs = (command: string): boolean => decide(permissions, shell, command).decision === "allow";
  const free = SENDING.filter((command) => runs(`${command} x`));
  return free.length === SENDING.length ? ["shell"] : free.map((command) => `shell(${command})`);
}

/** A host that the author names is no stranger, so that an `allow` for it is no way out. */
function callsOut(
  { permissions }: Agent,
  servers: readonly string[],
  has: (tool: string) => boolean,
): readonly string[] {
  const runs = (name: string): boolean =>
    decide(permissions, { isReading: false, subjectKind: "text", offered: { name } }, "host.invalid")
      .decision === "allow";
  const named = permissions.flatMap(({ decision, tool }) =>
    decision === "allow" && servers.some((all) => matchesName(all, tool)) && runs(tool) ? [tool] : [],
  );
  return [
    ...(has("web_fetch") && runs("web_fetch") ? ["web_fetch"] : []),
    ...new Set([...servers.filter((all) => runs(all)), ...named]),
  ];
}
