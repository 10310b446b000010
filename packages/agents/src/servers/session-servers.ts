// `withMcpServers`: the record of an agent with the settings of its MCP servers, checked before a session
// starts.
//
//   - A server is a program to start, or an address that learns what a session does. Settings from a folder
//     that the user has not trusted are not used.
//   - A placeholder without a value, and a literal secret, refuse the session before anything starts.
//   - A program would run outside of a sandbox. An agent in a sandbox has servers at an address alone.
//   - The configuration of a reference is headers of a server at an address. It changes no program and no
//     address.

import { dirname } from "node:path";
import { didYouMean, HoldfastError } from "@holdfast/core";

import type { AgentPlaces } from "../places/agent-places.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import {
  type McpServer,
  fillPlaceholders,
  serverPlaceholderProblem,
  serverTexts,
  variablesOfServer,
} from "@holdfast/mcp";
import type { SessionEnvironment } from "../environments/session-environment.ts";
import { readMcpFiles } from "./mcp-files.ts";
import { literalSecret } from "../format/literal-secret.ts";
import { isFileTrusted } from "../trust/trusted-folders.ts";
import { FILESYSTEM } from "@holdfast/workspace";

/** The variables of a session that the placeholders of a server name. */
export type VariablesOf = (record: AgentRecord, variables: readonly string[]) => SessionEnvironment;

const NO_VARIABLES: VariablesOf = () => ({ values: {}, secrets: [] });

/**
 * The record with settings in the place of each name of a server. Servers of the project that its `tools`
 * name are added.
 *
 * @throws HoldfastError `agent_invalid`, `config_invalid`, `policy_denied`, and the errors of `variablesOf`
 */
export function withMcpServers(
  record: AgentRecord,
  places: AgentPlaces,
  variablesOf: VariablesOf = NO_VARIABLES,
): AgentRecord {
  const named = (record.tools ?? []).flatMap((tool) => /^mcp__([^*]+?)__/.exec(tool)?.[1] ?? []);
  if (Object.keys(record.mcpServers).length === 0 && named.length === 0) return record;
  const files = readMcpFiles(places);
  const found: Record<string, McpServer> = {};
  for (const file of files.toReversed()) Object.assign(found, file.servers);
  const added = named.filter((name) => Object.hasOwn(found, name)).map((name) => [name, name] as const);
  const wanted = { ...Object.fromEntries(added), ...record.mcpServers };
  const servers = Object.entries(wanted).map(([name, given]) => {
    if (typeof given !== "string" && !("ref" in given)) {
      refuseUntrusted(record, name, places);
      return [name, given] as const;
    }
    const { ref, config } = typeof given === "string" ? { ref: given, config: {} } : given;
    const server = Object.hasOwn(found, ref) ? found[ref] : undefined;
    if (server !== undefined) return [name, configured(server, config, ref, record)] as const;
    const untrusted = files.find(({ status }) => status === "untrusted" || status === "unapproved");
    throw new HoldfastError(
      "agent_invalid",
      `agent "${record.name}" asks for the MCP server "${ref}", which is not there${didYouMean(ref, Object.keys(found))}`,
      {
        at: record.source.path,
        fix:
          untrusted === undefined
            ? "add it (`holdfast mcp add`), or write its settings into the agent's file"
            : `read ${untrusted.path}, and then run \`holdfast agents trust\``,
      },
    );
  });
  for (const [name, server] of servers) checkServer(record, name, server, places, variablesOf);
  return { ...record, mcpServers: Object.fromEntries(servers) };
}

/** The server with the headers of an agent in the place of its own. */
function configured(
  server: McpServer,
  config: Readonly<Record<string, string>>,
  ref: string,
  { name: agent, source }: AgentRecord,
): McpServer {
  const names = Object.keys(config);
  if (names.length === 0) return server;
  if (server.type !== "http")
    throw new HoldfastError(
      "agent_invalid",
      `agent "${agent}" has a configuration for the MCP server "${ref}", which is a program and has no headers`,
      {
        at: source.path,
        fix: `write \${${names[0]}} into \`env\` of the server, and give it a value by an environment`,
      },
    );
  const replaced = new Set(names.map((header) => header.toLowerCase()));
  const own = Object.entries(server.headers).filter(([header]) => !replaced.has(header.toLowerCase()));
  return { ...server, headers: { ...Object.fromEntries(own), ...config } };
}

function refuseUntrusted({ name: agent, source }: AgentRecord, name: string, places: AgentPlaces): void {
  if (source.scope !== "path" || places.trustsProject === true) return;
  if (isFileTrusted(places, source.path)) return;
  throw new HoldfastError(
    "policy_denied",
    `agent "${agent}" would start the MCP server ${name}, and you have not trusted the project of its file`,
    {
      at: source.path,
      fix: `read the file, and then run \`holdfast agents trust\` in ${dirname(source.path)}`,
    },
  );
}

/** The variables that the servers of an agent name. */
export function variablesOfServers({ mcpServers }: Pick<AgentRecord, "mcpServers">): readonly string[] {
  const names = Object.values(mcpServers).flatMap((server) =>
    typeof server === "string" || "ref" in server ? [] : variablesOfServer(server),
  );
  return [...new Set(names)];
}

function checkServer(
  record: AgentRecord,
  name: string,
  server: McpServer,
  places: AgentPlaces,
  variablesOf: VariablesOf,
): void {
  const { name: agent, sandbox, source } = record;
  const at = source.path;
  // The program would run outside of the sandbox.
  if (server.type === "stdio" && sandbox !== null && sandbox !== FILESYSTEM)
    throw new HoldfastError(
      "agent_invalid",
      `agent "${agent}" has the sandbox "${sandbox}" and the MCP server ${name}, which would run outside of the sandbox`,
      { at, fix: `take the server out, or use the sandbox "${FILESYSTEM}"` },
    );
  const secret = literalSecret(server);
  if (secret !== undefined)
    throw new HoldfastError(
      "config_invalid",
      `the MCP server ${name} has a secret written into its settings: ${secret}`,
      { at, fix: secretFix(server, secret) },
    );
  const own = variablesOf(record, variablesOfServer(server));
  const ownValues = new Map([
    ...Object.entries(own.values),
    ...own.secrets.map((one) => [one, "a secret"] as const), // Its value is looked up when the server starts.
  ]);
  const isGivenLater = (variable: string): boolean =>
    variable.startsWith("params.") || places.storedSecrets?.includes(variable) === true;
  const values = {
    // The fields of the input have their values when the session starts, and a secret when its process asks
    // for it.
    variable: (variable: string) =>
      ownValues.get(variable) ?? places.env[variable] ?? (isGivenLater(variable) ? "a value" : undefined),
    sessionId: "session",
    folder: places.project,
  };
  const [place, problem] = serverPlaceholderProblem(server, record) ?? [];
  if (problem !== undefined)
    throw new HoldfastError("config_invalid", `the MCP server ${name}, ${place}: ${problem}`, { at });
  for (const [part, text] of serverTexts(server))
    fillPlaceholders(text, values, `the MCP server ${name}, ${part}`);
}

function secretFix({ type }: McpServer, name: string): string {
  return type === "http" || !/^\w+$/.test(name)
    ? "set a variable such as MCP_TOKEN, and write ${MCP_TOKEN} in its place"
    : `set the variable ${name}, and write \${${name}} in its place`;
}
