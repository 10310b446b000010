// `readPluginServers`: the MCP servers in the `mcp.json` of an Agent Plugin (agent-plugins.org, version
// 1.0.0).
//
//   - A file that is wrong as a whole has no servers, and a server that is wrong leaves the others usable.
//   - `${PLUGIN_ROOT}` and `${PLUGIN_DATA}` are filled in once, in arguments, variables and the folder. Any
//     other placeholder is refused: the format gives a plugin no variable of the user.
//   - A server starts in the folder of its plugin. Its data folder outlives the plugin's updates.

import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { z } from "zod";
import type { McpServer } from "@holdfast/mcp";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { FileProblem, readJson } from "../format/front-matter.ts";
import { realPath, requireInside } from "../places/agent-places.ts";
import type { Plugin } from "../files/plugins.ts";

export const PLUGIN_SERVERS_FILE = "mcp.json";

const SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";
const texts = z.record(z.string(), z.string());
const server = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("stdio"),
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    env: texts.default({}),
    cwd: z.string().min(1).optional(),
  }),
  z.strictObject({
    type: z.literal("streamable-http"),
    url: z.url({ protocol: /^https?$/ }),
    headers: texts.default({}),
  }),
]);

interface Folders {
  readonly PLUGIN_ROOT: string;
  readonly PLUGIN_DATA: string;
}

export interface PluginServers {
  readonly servers: Readonly<Record<string, McpServer>>;
  readonly verdicts: readonly FieldVerdict[];
}

/**
 * @param data the folder in which each plugin has one for its data.
 * @throws FileProblem when the file as a whole cannot be used.
 */
export function readPluginServers({ folder, name, scope }: Plugin, data: string): PluginServers {
  const path = join(folder, PLUGIN_SERVERS_FILE);
  const root = realPath(folder);
  requireInside(path, root, { outer: "plugin" });
  const { $schema, mcpServers, ...others } = readJson(path);
  if ($schema !== SCHEMA)
    throw new FileProblem("Holdfast reads version 1.0.0 of the format alone", `write "$schema": "${SCHEMA}"`);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw new FileProblem(
      `it has the unknown field "${unknown}"`,
      "leave it out; the servers are in mcpServers",
    );
  const given = z.record(z.string(), z.unknown()).safeParse(mcpServers);
  if (!given.success)
    throw new FileProblem("mcpServers is missing, or is no object", "write the servers by name");
  const folders = { PLUGIN_ROOT: root, PLUGIN_DATA: join(data, scope, name) };
  const report = new FieldReport();
  const servers: Record<string, McpServer> = {};
  for (const [serverName, value] of Object.entries(given.data)) {
    const read = readServer(value, folders);
    const field = ["mcpServers", serverName];
    if (typeof read === "string") report.add(field, "refused", read);
    else {
      servers[serverName] = read;
      report.add(field, "honoured");
    }
  }
  return { servers, verdicts: report.verdicts };
}

/** @returns the server, or the reason why there is none. */
function readServer(value: unknown, folders: Folders): McpServer | string {
  const read = server.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "it does not fit"}`.replace(/^: /, "");
  }
  if (read.data.type === "streamable-http") {
    const { url, headers } = read.data;
    return placeholderIn([url, ...Object.values(headers)], []) ?? { type: "http", url, headers };
  }
  const { command, args, env, cwd = "" } = read.data;
  const wrong =
    placeholderIn([command], []) ??
    placeholderIn([...args, ...Object.values(env), cwd], Object.keys(folders));
  if (wrong !== undefined) return wrong;
  const fill = (text: string): string =>
    text.replaceAll(/\$\{(PLUGIN_ROOT|PLUGIN_DATA)\}/g, (_, name: keyof Folders) => folders[name]);
  const start = resolve(folders.PLUGIN_ROOT, fill(cwd));
  if (![folders.PLUGIN_ROOT, folders.PLUGIN_DATA].some((outer) => isInside(outer, start)))
    return `cwd: ${start} is outside of the plugin and its data`;
  return {
    type: "stdio",
    // A command with a slash is a file of the plugin; any other is a program on the PATH.
    command: command.includes("/") ? resolve(folders.PLUGIN_ROOT, command) : command,
    args: args.map(fill),
    env: { ...Object.fromEntries(Object.entries(env).map(([name, text]) => [name, fill(text)])), ...folders },
    cwd: start,
    dataFolder: folders.PLUGIN_DATA,
  };
}

function placeholderIn(given: readonly string[], known: readonly string[]): string | undefined {
  for (const text of given)
    for (const [whole, name = ""] of text.matchAll(/\$\{([^{}]*)\}/g))
      if (!known.includes(name))
        return `${whole} has no value here: the format has $\{PLUGIN_ROOT} and $\{PLUGIN_DATA}, in args, env and cwd`;
  return undefined;
}

function isInside(outer: string, path: string): boolean {
  const inside = relative(outer, path);
  return inside === "" || (inside.split(sep)[0] !== ".." && !isAbsolute(inside));
}
