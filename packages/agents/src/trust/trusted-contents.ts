// `filesToTrust`: the hashes of the files of a project that give rights. They have hooks, MCP servers or
// settings. Also the hash of one agent file (`rightsToTrust`), and the names of all hashes.
//
//   - Only the fields that Holdfast reads count: other programs keep their own settings in the same files,
//     and change them.
//   - A file without any of these fields starts nothing and needs no hash.
//   - An agent file counts with its rights (`granted-rights.ts`), so a person may write its prompt all day.
//   - Rules of another tool that allow calls have a hash of their own, because a change of them changes no
//     hook.

import { join, relative, sep } from "node:path";

import { namesIn } from "../places/agent-places.ts";
import type { AgentRecord } from "../record/agent-record.ts";
import { FileProblem, jsoncObject, readText } from "../format/front-matter.ts";
import { rightsOf } from "./granted-rights.ts";
import type { ProtectedPath } from "@holdfast/workspace";
import { codeOf, hashOfCode } from "./named-code.ts";
import { CONFIG_FILE, hashOf, hashOfFields } from "./trust-file.ts";

const OPENCODE = ["permission", "tools", "agent"];

/** Files whose rules may allow calls, by the fields of these rules. */
const RULES: readonly (readonly [path: ProtectedPath, fields: readonly string[]])[] = [
  [".claude/settings.json", ["permissions"]],
  [".claude/settings.local.json", ["permissions"]],
  ["opencode.json", OPENCODE],
  ["opencode.jsonc", OPENCODE],
  [".opencode/opencode.json", OPENCODE],
  [".opencode/opencode.jsonc", OPENCODE],
];

/** Files by their fields; `null` for every field. `*` stands for one name. */
const FILES: readonly (readonly [path: ProtectedPath, fields: readonly string[] | null])[] = [
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

/** The hashes of the files of a project that its tools and settings have, by their paths. */
export function filesToTrust(
  project: string,
): readonly (readonly [path: string, hash: string | undefined])[] {
  return [
    ...FILES.flatMap(([path]) => expanded(project, path)).map(
      (path) => [path, contentToTrust(project, path)] as const,
    ),
    ...RULES.map(([path]) => [rulesKey(path), rulesToTrust(project, path)] as const),
  ];
}

/** The hash of a file that is there. @returns `undefined` for a file that starts nothing. */
export function contentToTrust(project: string, path: string): string | undefined {
  const at = pathIn(project, path);
  const [, fields] = FILES.find(([pattern]) => isLike(at, pattern)) ?? [at, null];
  return hashOfFile(project, at, fields);
}

/** The hash of fields of a file; `null` for every field. */
function hashOfFile(project: string, at: string, fields: readonly string[] | null): string | undefined {
  try {
    const all = Object.entries(jsoncObject(readText(join(project, at)), at));
    const content = Object.fromEntries(all.filter(([name]) => fields === null || fields.includes(name)));
    const hash = hashOfFields(content);
    const named = at === CONFIG_FILE ? [] : codeOf(project, JSON.stringify(content));
    return hash === undefined || named.length === 0 ? hash : hashOf(`${hash} ${hashOfCode(project, named)}`);
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return undefined; // Nothing can be read, and its reader says so.
  }
}

/** The hash of the rules of a file. @returns `undefined` for a file without rules. */
export function rulesToTrust(project: string, path: string): string | undefined {
  const at = pathIn(project, path);
  const [, fields = []] = RULES.find(([file]) => file === at) ?? [];
  return hashOfFile(project, at, fields);
}

/** The name of the rules of a file among the hashes. */
export function rulesKey(path: string): string {
  return `rules:${path}`;
}

/** The hash of an agent file. A file that is refused gives nothing. */
export function rightsToTrust(record: AgentRecord | null, project: string): string | undefined {
  return record === null ? undefined : rightsOf(record, project);
}

/** The name of a file of tasks among the hashes. */
export function codeKey(path: string): string {
  return `${CODE}${path}`;
}

/** The files of tasks among hashes. */
export function codeIn(contents: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(contents).flatMap((key) => (key.startsWith(CODE) ? [key.slice(CODE.length)] : []));
}

const CODE = "code:";

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
