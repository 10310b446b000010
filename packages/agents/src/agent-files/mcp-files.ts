// `readMcpFiles`: the MCP servers that a project configures in `.mcp.json` and `.vscode/mcp.json`, by name.
//
//   mcp-files-1. A file of a project that the user does not trust is listed, and not read: a server of it is a program to start.
//   mcp-files-2. The first file that has a server of a name counts, and a server that is refused leaves the others usable.

import { existsSync } from "node:fs";
import { join, sep } from "node:path";
import type { McpServer } from "./agent-record.ts";
import { realPath, type AgentPlaces } from "./agent-places.ts";
import { newDraft } from "./format/agent-draft.ts";
import { FieldReport, type FieldVerdict } from "./format/field-report.ts";
import { FileProblem, readJson } from "./format/front-matter.ts";
import { mcpServerValue, takeServers } from "./format/mcp-servers.ts";
import { isTrusted } from "./trusted-folders.ts";

export interface McpFile {
  readonly path: string;
  readonly status: "loaded" | "refused" | "untrusted";
  readonly servers: Readonly<Record<string, McpServer>>;
  readonly verdicts: readonly FieldVerdict[];
  /** The reason why the file as a whole cannot be used. */
  readonly problem: string | null;
}

/** The files, and the field of each that has the servers. */
const FILES = [
  [".mcp.json", "mcpServers"],
  [".vscode/mcp.json", "servers"],
] as const;

/** @throws HoldfastError `config_invalid` when the file of trusted folders cannot be used. */
export function readMcpFiles({ project, trustFile, trustsProject = false }: AgentPlaces): readonly McpFile[] {
  const found = FILES.map(([name, key]) => [join(project, name), key] as const).filter(([path]) =>
    existsSync(path),
  );
  if (found.length === 0) return [];
  const isRead = trustsProject || isTrusted(trustFile, project);
  return found.map(([path, key]) =>
    isRead
      ? readMcpFile(path, key, realPath(project))
      : { path, status: "untrusted", servers: {}, verdicts: [], problem: null },
  );
}

function readMcpFile(path: string, key: string, within: string): McpFile {
  try {
    if (!realPath(path).startsWith(`${within}${sep}`))
      throw new FileProblem(
        "the file is a link that leads out of the project",
        "put the file itself into the project",
      );
    const { [key]: servers = {}, ...others } = readJson(path);
    const report = new FieldReport();
    const draft = newDraft("", "");
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
      else if (
        takeServers([[name, server.data]], key, draft, report)[0] === "honoured" &&
        Object.hasOwn(draft.mcpServers, name)
      )
        report.add([key, name], "honoured");
    }
    return {
      path,
      status: "loaded",
      servers: draft.mcpServers as McpFile["servers"],
      verdicts: report.verdicts,
      problem: null,
    };
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { path, status: "refused", servers: {}, verdicts: [], problem: error.message };
  }
}
