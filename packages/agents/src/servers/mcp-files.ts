// `readMcpFiles`: the files with MCP servers, in the order in which they count. Files of the project
// (`.mcp.json`, `.vscode/mcp.json`, `mcp-servers/ID/mcp-server.json`) come first, then those of its plugins,
// of the user, and of the user's plugins.
//
//   - The servers of a project that the user does not trust are listed and not used: each is a program to
//     start. The same holds for a file whose servers are new or have changed since the user trusted the
//     project (trusted-folders-2). It is only hashed.
//   - The caller takes the first server of a name that can be used. A server that is refused leaves the
//     others usable.
//   - The file of the user lies in the data folder. It is refused when users outside of this user's groups
//     may write it, which is not checked on Windows.

import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isWritableByOthers } from "@holdfast/system";
import type { McpServer } from "@holdfast/mcp";
import { layersOf, namesIn, realPath, requireInside, type AgentPlaces } from "../places/agent-places.ts";
import { newDraft } from "../format/agent-draft.ts";
import { FieldReport, type FieldVerdict } from "../format/field-report.ts";
import { FileProblem, readJson } from "../format/front-matter.ts";
import type { ProjectPath } from "../places/project-inputs.ts";
import { mcpServerValue, takeServers } from "../format/mcp-servers.ts";
import { PLUGIN_SERVERS_FILE, readPluginServers } from "./plugin-servers.ts";
import { findPlugins, PLUGINS, type Plugin } from "../files/plugins.ts";
import { isTrusted, isTrustedContent } from "../trust/trusted-folders.ts";
import { readRegistryFile } from "./registry-files.ts";

/** A file that may have MCP servers. */
export interface McpPlace {
  readonly path: string;
  readonly scope: "project" | "user";
}

export interface McpFile extends McpPlace {
  /** `unapproved` for servers that have changed since the user trusted the project. */
  readonly status: "loaded" | "refused" | "untrusted" | "unapproved";
  readonly servers: Readonly<Record<string, McpServer>>;
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: string | null;
}

/** The files, and the field of each that has the servers. */
const FILES = [
  [".mcp.json", "mcpServers"],
  [".vscode/mcp.json", "servers"],
] as const satisfies readonly (readonly [path: ProjectPath, field: string])[];

/** A registry with a folder for each server. */
const REGISTRY = "mcp-servers" satisfies ProjectPath;
const REGISTRY_FILE = "mcp-server.json";

/** The file that `holdfast mcp add` writes. */
export function mcpPlace({ project, trustFile }: AgentPlaces, scope: McpPlace["scope"]): McpPlace {
  const path = scope === "user" ? join(dirname(trustFile), "mcp-servers.json") : join(project, FILES[0][0]);
  return { path, scope };
}

/** @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used. */
export function readMcpFiles(places: AgentPlaces): readonly McpFile[] {
  const own = mcpPlace(places, "user");
  const plugins = findPlugins(places).filter(
    ({ folder, status }) =>
      (status === "loaded" || status === "untrusted") && existsSync(join(folder, PLUGIN_SERVERS_FILE)),
  );
  return [
    ...layersOf(places).flatMap((layer) => filesOfLayer(layer, plugins)),
    ...(existsSync(own.path) ? [readMcpFile(own, "mcpServers", undefined)] : []),
    ...plugins
      .filter(({ scope }) => scope === "user")
      .map((plugin) => readPluginFile(plugin, places.trustFile)),
  ];
}

function filesOfLayer(
  { project, trustFile, trustsProject = false }: AgentPlaces,
  plugins: readonly Plugin[],
): readonly McpFile[] {
  const found = [
    ...FILES.map(([name, key]) => [join(project, name), key] as const),
    ...namesIn(join(project, REGISTRY)).map(
      (id) => [join(project, REGISTRY, id, REGISTRY_FILE), null] as const,
    ),
  ].filter(([path]) => existsSync(path));
  const isRead = found.length > 0 && (trustsProject || isTrusted(trustFile, project));
  const isApproved = (path: string): boolean => trustsProject || isTrustedContent(trustFile, project, path);
  const unread = (path: string, status: "untrusted" | "unapproved"): McpFile => ({
    path,
    scope: "project",
    status,
    servers: {},
    verdicts: [],
    problem: null,
  });
  const ofPlugins = plugins
    .filter(({ scope, folder }) => scope === "project" && dirname(folder) === join(project, PLUGINS))
    .map((plugin) => {
      const path = join(plugin.folder, PLUGIN_SERVERS_FILE);
      if (plugin.status === "untrusted") return unread(path, "untrusted");
      return isApproved(path) ? readPluginFile(plugin, trustFile) : unread(path, "unapproved");
    });
  return [
    ...found.map(([path, key]): McpFile => {
      if (!isRead) return unread(path, "untrusted");
      if (!isApproved(path)) return unread(path, "unapproved");
      return readMcpFile({ path, scope: "project" }, key, realPath(project));
    }),
    ...ofPlugins,
  ];
}

/**
 * @param key the field with the servers; `null` for the file of one server in a registry.
 * @param within the folder that the file must lie in; `undefined` for the file of the user.
 */
function readMcpFile({ path, scope }: McpPlace, key: string | null, within: string | undefined): McpFile {
  try {
    if (within === undefined && isWritableByOthers(statSync(path)))
      throw new FileProblem("other users may write it", "run chmod 600 on it");
    requireInside(path, within);
    const report = new FieldReport();
    const draft = newDraft("", "");
    const loaded = (): McpFile => ({
      path,
      scope,
      status: "loaded",
      servers:
        scope === "user"
          ? ofUser(draft.mcpServers as McpFile["servers"])
          : (draft.mcpServers as McpFile["servers"]),
      verdicts: report.verdicts,
      problem: null,
    });
    if (key === null) {
      readRegistryFile(path, readJson(path), draft, report);
      return loaded();
    }
    const { [key]: servers = {}, ...others } = readJson(path);
    for (const name of Object.keys(others))
      report.add(
        [name],
        "ignored",
        name === "inputs"
          ? "no value is asked for; name a secret instead"
          : "Holdfast reads the servers only",
      );
    for (const [name, given] of Object.entries(servers as Record<string, unknown>)) {
      const server = mcpServerValue.safeParse(given);
      if (!server.success) report.add([key, name], "refused", "it is no object with the fields of a server");
      else if ("ref" in server.data)
        report.add(
          [key, name],
          "refused",
          "a file of servers has no references to others; write its settings",
        );
      else if (
        takeServers([[name, server.data]], key, draft, report)[0] === "honoured" &&
        Object.hasOwn(draft.mcpServers, name)
      )
        report.add([key, name], "honoured");
    }
    return loaded();
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { path, scope, status: "refused", servers: {}, verdicts: [], problem: error.message };
  }
}

function readPluginFile(plugin: Plugin, trustFile: string): McpFile {
  const { folder, scope } = plugin;
  const file = { path: join(folder, PLUGIN_SERVERS_FILE), scope, servers: {}, verdicts: [], problem: null };
  try {
    return {
      ...file,
      status: "loaded",
      ...readPluginServers(plugin, join(dirname(trustFile), "plugin-data")),
    };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { ...file, status: "refused", problem: error.message };
  }
}

function ofUser(servers: McpFile["servers"]): McpFile["servers"] {
  return Object.fromEntries(
    Object.entries(servers).map(([name, server]) => [
      name,
      server.type === "http" ? { ...server, isUsers: true } : server,
    ]),
  );
}
