// `contentsToTrust`: the hashes of the files of a project with hooks and MCP servers, of folder agents and their capabilities,
// which no mount can guard.
//
//   trusted-contents-1. Only the fields that Holdfast reads count: other programs keep their own settings in the same files, and change them.
//   trusted-contents-2. A file without any of these fields starts nothing and needs no hash.

import { join, relative, sep } from "node:path";

import { namesIn } from "../agent-places.ts";
import { FileProblem, readJson } from "../format/front-matter.ts";
import type { GrantingPath } from "./granting-places.ts";
import { CONFIG_FILE, hashOfFields } from "./trust-file.ts";

/** Files by their fields; `null` for every field. `*` stands for one name. */
const FILES: readonly (readonly [path: GrantingPath, fields: readonly string[] | null])[] = [
  [CONFIG_FILE, null],
  [".claude/settings.json", ["hooks", "disableAllHooks"]],
  [".claude/settings.local.json", ["hooks", "disableAllHooks"]],
  [".mcp.json", ["mcpServers"]],
  [".vscode/mcp.json", ["servers"]],
  [".agents/plugins/*/mcp.json", null],
  ["mcp-servers/*/mcp-server.json", null],
  ["agents/*/agent.json", null],
  ["agents/*/agent.mcp.json", null],
  ["capabilities/*/capability.json", null],
  ["capabilities/*/capability.mcp.json", null],
];

/** The hashes of a project by the paths of the files. */
export function contentsToTrust(project: string): Readonly<Record<string, string>> {
  const found = FILES.flatMap(([path]) => expanded(project, path)).map(
    (path) => [path, contentToTrust(project, path)] as const,
  );
  return Object.fromEntries(found.flatMap(([path, hash]) => (hash === undefined ? [] : [[path, hash]])));
}

/** The hash of a file that is there. @returns `undefined` for a file that starts nothing. */
export function contentToTrust(project: string, path: string): string | undefined {
  const at = pathIn(project, path);
  const [, fields] = FILES.find(([pattern]) => isLike(at, pattern)) ?? [at, null];
  try {
    return hashOfFields(readJson(join(project, at)), fields);
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return undefined; // Nothing can be read, and its reader says so.
  }
}

/** The path from the project, with slashes. */
export function pathIn(project: string, path: string): string {
  const inside = path.startsWith(project) ? relative(project, path) : path;
  return inside.split(sep).join("/");
}

function expanded(project: string, path: string): readonly string[] {
  const [before, after] = path.split("/*/");
  if (after === undefined) return [path];
  return namesIn(join(project, before ?? "")).map((name) => `${before}/${name}/${after}`);
}

function isLike(path: string, pattern: string): boolean {
  const [names, steps] = [path.split("/"), pattern.split("/")];
  return names.length === steps.length && steps.every((step, at) => step === "*" || step === names[at]);
}
