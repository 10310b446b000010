// Toolsets of an agent of Docker, as tools and MCP servers of Holdfast (`takeToolsets`). The rules are in
// `docker-agents.ts`.

import { defined } from "@holdfast/core";
import { z } from "zod";
import type { AgentDraft } from "../../format/agent-draft.ts";
import type { FieldReport } from "../../format/field-report.ts";
import { mapped, refused, type Ruling } from "../../format/fields.ts";
import { takeServers } from "../../format/mcp-servers.ts";

/** The tools of Docker's toolsets, with the argument that its patterns name most; no tools for one that Holdfast lacks. */
export const DOCKER_TOOLS: Readonly<Record<string, readonly string[]>> = {
  read_file: ["read_file"],
  read_multiple_files: ["read_file"],
  list_directory: ["list_files"],
  directory_tree: ["list_files"],
  search_files_content: ["search"],
  write_file: ["write_file"],
  create_directory: ["write_file"],
  edit_file: ["edit_file"],
  shell: ["shell"],
  fetch: ["web_fetch"],
  create_todo: ["todo"],
  create_todos: ["todo"],
  update_todos: ["todo"],
  list_todos: ["todo"],
  transfer_task: ["delegate"],
  user_prompt: ["ask_user"],
};

/** The tools of each type of toolset. */
const TOOLSETS: Readonly<Record<string, readonly string[]>> = {
  filesystem: ["read_file", "list_files", "search", "write_file", "edit_file"],
  shell: ["shell"],
  fetch: ["web_fetch"],
  todo: ["todo"],
  user_prompt: ["ask_user"],
};

const CATALOGUE = "docker:";

export const toolset = z.looseObject({ type: z.string(), tools: z.array(z.string()).optional() });
const mcpToolset = z.strictObject({
  type: z.literal("mcp"),
  name: z.string().optional(),
  ref: z.string().optional(),
  command: z.string().optional(),
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  remote: z
    .strictObject({
      url: z.string(),
      transport_type: z.string().optional(),
      headers: z.record(z.string(), z.string()).optional(),
    })
    .optional(),
  tools: z.array(z.string()).optional(),
  // Fields that restrict nothing.
  instruction: z.string().optional(),
  lifecycle: z.unknown().optional(),
  version: z.string().optional(),
});

/** docker-agents-1. */
export function takeToolsets(
  sets: readonly z.output<typeof toolset>[],
  servers: Readonly<Record<string, object>>,
  draft: AgentDraft,
  report: FieldReport,
): Ruling {
  const offered = new Set(draft.tools);
  const said: string[] = [];
  for (const [at, { type, tools: wanted, ...others }] of sets.entries()) {
    const place = `toolsets.${at}`;
    if (type === "mcp") {
      const name = takeServer({ type, ...others, tools: wanted }, at, servers, draft, report);
      if (typeof name !== "string") return name;
      offered.add(`mcp__${name}__*`);
      said.push(`the MCP server ${name}`);
      continue;
    }
    const ours = TOOLSETS[type];
    if (ours === undefined) {
      said.push(type === "think" ? "think is not needed" : `${type} is not available`);
      continue;
    }
    const unknown = Object.keys(others).find((name) => name !== "instruction" && name !== "readonly");
    if (unknown !== undefined)
      return refused(
        `${place}.${unknown} may be a limit that Holdfast does not know; write it as a rule of holdfast.approvals`,
      );
    const limited = wanted?.flatMap((tool) => DOCKER_TOOLS[tool] ?? []);
    const reading = others["readonly"] === true ? ["read_file", "list_files", "search", "todo"] : undefined;
    for (const tool of ours)
      if (limited?.includes(tool) !== false && reading?.includes(tool) !== false) offered.add(tool);
    if (others["instruction"] !== undefined)
      report.add([place, "instruction"], "ignored", "write it into the prompt");
  }
  draft.tools = [...offered];
  const list = draft.tools.filter((tool) => !tool.startsWith("mcp__"));
  return mapped([list.join(", ") || "no tool", ...said].join("; "));
}

/** @returns the name of the server, or the reason why there is none. */
function takeServer(
  given: Readonly<Record<string, unknown>>,
  at: number,
  servers: Readonly<Record<string, object>>,
  draft: AgentDraft,
  report: FieldReport,
): string | Ruling {
  const { ref } = given;
  const shared = typeof ref === "string" && Object.hasOwn(servers, ref) ? servers[ref] : undefined;
  const { data, error } = mcpToolset.safeParse(
    shared === undefined
      ? given
      : { ...shared, ...given, ref: undefined, type: "mcp", name: given["name"] ?? ref },
  );
  if (data === undefined) return refused(`toolsets.${at}: ${z.prettifyError(error).replaceAll("\n", " ")}`);
  const settings = settingsOf(data);
  if (settings === undefined)
    return refused(
      `toolsets.${at}: it has no command, no remote and no ref of the file or of Docker's catalogue`,
    );
  const named =
    data.name ??
    data.ref?.replace(CATALOGUE, "") ??
    data.command?.split("/").at(-1) ??
    new URL(data.remote?.url ?? "http://remote").hostname;
  const name = named.replaceAll(/[^A-Za-z0-9-]+/g, "-").slice(0, 40);
  if (Object.hasOwn(draft.mcpServers, name))
    return refused(`two toolsets are the MCP server ${name}; give each a name`);
  takeServers(
    [[name, { ...settings, ...defined({ enabledTools: data.tools }) }]],
    "mcpServers",
    draft,
    report,
  );
  return name;
}

/** The settings as other files have them. A server of the catalogue runs in Docker's own gateway. */
function settingsOf({
  ref,
  command,
  args = [],
  env = {},
  remote,
}: z.output<typeof mcpToolset>): Record<string, unknown> | undefined {
  if (ref?.startsWith(CATALOGUE) === true)
    return {
      command: "docker",
      args: ["mcp", "gateway", "run", `--servers=${ref.slice(CATALOGUE.length)}`],
      env,
    };
  if (command !== undefined) return { command, args, env };
  if (remote === undefined) return undefined;
  const { url, transport_type: transport, headers = {} } = remote;
  return { type: transport === "sse" ? "sse" : "http", url, headers };
}
