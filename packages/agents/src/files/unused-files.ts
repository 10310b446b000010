// `findUnusedFiles`: files of other tools in a project that no session uses, each with the reason and the way to
// use it. They are looked for by their names, and hardly any is read. `other-tools.ts` has the kinds.
//
//   - Nothing that a person wrote for another tool is left out without a word. Fields of a file that is read
//     stand in the report of that file.
//   - The search for packages below the project is bounded (`PACKAGES_MAX`), and follows no link.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { MIB } from "@holdfast/core";
import {
  foldersIn,
  layersOf,
  namesIn,
  realPath,
  workFolderOf,
  type AgentPlaces,
} from "../places/agent-places.ts";
import { placesWithoutSkill } from "../places/skill-folders.ts";
import { kindIn, OTHER_FOLDERS, REASONS, type OtherKind } from "./other-tools.ts";

export interface UnusedFile {
  readonly path: string;
  /** The kind of file, in a word or two. */
  readonly kind: string;
  readonly reason: string;
}

/** A path from the folder of a project or from the home folder. With `text`, only a file that has it. */
type Row = readonly [path: string, kind: OtherKind, text?: RegExp];

const ROWS: readonly Row[] = [
  ["CLAUDE.md", "instructions"],
  ["CLAUDE.local.md", "instructions"],
  ["GEMINI.md", "instructions"],
  ["AGENT.md", "instructions"],
  ["AGENTS.override.md", "instructions"],
  [".cursorrules", "instructions"],
  [".windsurfrules", "instructions"],
  [".roorules", "rules"],
  [".clinerules", "rules"],
  [".roomodes", "agents"],
  ...[".cursorignore", ".geminiignore", ".aiexclude", ".clineignore", ".rooignore", ".codeiumignore"].map(
    (path): Row => [path, "denied files"],
  ),
  [".kiroignore", "denied files"],
  [".aiignore", "denied files"],
  [".worktreeinclude", "set-up"],
  ["gemini-extension.json", "plugins"],
  ...[".claude-plugin", ".cursor-plugin", ".codex-plugin"].map((path): Row => [path, "plugins"]),
  [".github/copilot-instructions.md", "instructions"],
  [".github/instructions", "rules"],
  [".github/chatmodes", "chat modes"],
  [".github/skills", "skills"],
  [".github/hooks", "hooks"],
  [".github/mcp.json", "servers"],
  [".github/copilot", "settings"],
  [".vscode/settings.json", "instructions", /"github\.copilot\.chat\.\w+\.instructions"/],
  [".gemini/settings.json", "servers", /"mcpServers"/],
  [".gemini/settings.json", "hooks", /"hooks"\s*:/],
  [".codex/config.toml", "servers", /^\s*\[mcp_servers\b/m],
  [".codex/config.toml", "hooks", /^\s*\[+hooks\b|^\s*hooks\s*=/m],
  ...["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"].flatMap(
    (path): Row[] => [
      [path, "servers", /"mcp"\s*:/],
      [path, "agents of settings", /"agent"\s*:/],
      [path, "commands", /"command"\s*:\s*\{/],
      [path, "rules", /"instructions"\s*:/],
      [path, "plugins", /"plugin"\s*:/],
    ],
  ),
];

const HOME_ROWS: readonly Row[] = [
  [".claude/CLAUDE.md", "instructions"],
  [".codex/AGENTS.md", "instructions"],
  [".codex/AGENTS.override.md", "instructions"],
  [".gemini/GEMINI.md", "instructions"],
  [".gemini/system.md", "instructions"],
  [".config/opencode/AGENTS.md", "instructions"],
  [".copilot/copilot-instructions.md", "instructions"],
  [".codeium/windsurf/memories/global_rules.md", "instructions"],
  [".claude/rules", "rules"],
  [".cursor/rules", "rules"],
  [".roo/rules", "rules"],
  [".kiro/steering", "rules"],
  ["Documents/Cline/Rules", "rules"],
  [".claude/output-styles", "style"],
  ...[".codex", ".gemini", ".config/opencode", ".copilot", ".cursor", ".roo", ".kiro", ".cline"].map(
    (folder): Row => [`${folder}/skills`, "skills"],
  ),
  [".codeium/windsurf/skills", "skills"],
  [".cursor/agents", "agents"],
  [".kiro/agents", "agents"],
  [".cursor/commands", "commands"],
  [".roo/commands", "commands"],
  [".kiro/prompts", "commands"],
  [".codeium/windsurf/global_workflows", "commands"],
  ["Documents/Cline/Workflows", "commands"],
  [".cursor/hooks.json", "hooks"],
  [".codex/hooks.json", "hooks"],
  [".gemini/settings.json", "hooks", /"hooks"\s*:/],
  [".copilot/hooks", "hooks"],
  [".codeium/windsurf/hooks.json", "hooks"],
  ["Documents/Cline/Hooks", "hooks"],
  [".cursor/cli-config.json", "permissions", /"permissions"/],
  [".claude.json", "servers", /"mcpServers"/],
  [".cursor/mcp.json", "servers"],
  [".gemini/settings.json", "servers", /"mcpServers"/],
  [".codex/config.toml", "servers", /^\s*\[mcp_servers\b/m],
  [".copilot/mcp-config.json", "servers"],
  [".codeium/windsurf/mcp_config.json", "servers"],
  [".kiro/settings/mcp.json", "servers"],
  [".gemini/extensions", "plugins"],
  [".config/opencode/plugins", "plugins"],
  [".config/opencode/plugin", "plugins"],
];

/** A folder that has one of these has files for agents. */
const OF_PACKAGE = [
  ".holdfast/agents",
  ".holdfast/scripts",
  ".github/prompts",
  "mcp-servers",
  ".claude/agents",
  ".claude/skills",
  ".claude/commands",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".opencode",
  ".codex",
  ".gemini",
  ".github/agents",
  ".agents/skills",
  ".agents/plugins",
  ".mcp.json",
  ".vscode/mcp.json",
  "opencode.json",
  "opencode.jsonc",
];
const PACKAGES_MAX = { folders: 1_000, depth: 4 } as const;

/** The files of the project. @param withHome also those of the user. */
export function findUnusedFiles(
  places: Pick<AgentPlaces, "project" | "layers" | "home">,
  { withHome = false } = {},
): readonly UnusedFile[] {
  const { project, home } = places;
  const folders = layersOf(places).map((layer) => layer.project);
  const isHome = home !== undefined && realPath(home) === realPath(project);
  const ofHome = withHome || isHome ? home : undefined;
  return [
    ...(isHome
      ? []
      : [
          ...folders.flatMap((folder) => [
            ...rowsIn(folder, ROWS),
            ...entriesIn(folder),
            ...withoutSkill(folder),
          ]),
          ...packagesIn(workFolderOf(places)),
        ]),
    ...(ofHome === undefined ? [] : [...rowsIn(ofHome, HOME_ROWS), ...withoutSkill(ofHome)]),
  ];
}

function rowsIn(root: string, rows: readonly Row[]): readonly UnusedFile[] {
  return rows.flatMap(([name, kind, text]) => {
    const path = join(root, name);
    if (!hasContent(path) || (text !== undefined && !text.test(textOf(path)))) return [];
    return unused(path, kind, root);
  });
}

/** Files in the folders of other tools that are not read. */
function entriesIn(root: string): readonly UnusedFile[] {
  return OTHER_FOLDERS.flatMap((folder) =>
    namesIn(join(root, folder)).flatMap((name) => {
      const kind = kindIn(folder, name);
      const path = join(root, folder, name);
      return kind === undefined || !hasContent(path) ? [] : unused(path, kind, root);
    }),
  );
}

function unused(path: string, kind: OtherKind, root: string): readonly UnusedFile[] {
  if (kind === "instructions" && isRead(path, join(root, "AGENTS.md"))) return [];
  return [{ path, kind, reason: REASONS[kind] }];
}

function withoutSkill(root: string): readonly UnusedFile[] {
  return placesWithoutSkill(root).map((place) => ({ ...place, kind: "no skill" }));
}

/** A folder counts with what is in it. */
function hasContent(path: string): boolean {
  try {
    return !statSync(path).isDirectory() || readdirSync(path).length > 0;
  } catch {
    return false;
  }
}

function textOf(path: string): string {
  try {
    return statSync(path).size > MIB ? "" : readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** One file under two names, or a text that only takes in the other one. */
function isRead(path: string, instructions: string): boolean {
  if (!existsSync(instructions)) return false;
  return realPath(path) === realPath(instructions) || /^@(\.\/|\.\.\/)?AGENTS\.md$/.test(textOf(path).trim());
}

/** Whether a folder has files that count for agents that work there. */
export function hasAgentFiles(folder: string): boolean {
  return OF_PACKAGE.some((name) => hasContent(join(folder, name)));
}

/** Folders below a project that have files for agents, and are no projects of their own. */
function packagesIn(project: string): readonly UnusedFile[] {
  const found: UnusedFile[] = [];
  let ahead = foldersIn(project).map(({ path }) => path);
  let looked = 0;
  for (let depth = 1; depth <= PACKAGES_MAX.depth && ahead.length > 0; depth++) {
    const here = ahead.slice(0, PACKAGES_MAX.folders - looked);
    looked += here.length;
    for (const folder of here.filter((one) => !isProject(one))) {
      const reason = reasonOfPackage(folder);
      if (reason !== undefined) found.push({ path: folder, kind: "package", reason });
    }
    ahead = here.filter((one) => !isProject(one)).flatMap((one) => foldersIn(one).map(({ path }) => path));
  }
  return found;
}

/** Its files count where a person works in it. */
function isProject(folder: string): boolean {
  return [".holdfast", ".git"].some((name) => existsSync(join(folder, name)));
}

/** @returns nothing for a folder without files for agents. */
function reasonOfPackage(folder: string): string | undefined {
  const isThere = (name: string): boolean => hasContent(join(folder, name));
  const names = OF_PACKAGE.filter(isThere);
  const shown = /^[\w@%+=:,./-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
  if (names.length > 0)
    return (
      `${names.join(", ")} of this folder count for no session here, neither what they permit nor what they forbid; ` +
      `they count, beside those of the folders above, for a session that you start there (\`cd ${shown}\`)`
    );
  const others = OTHER_FOLDERS.filter(isThere);
  if (others.length === 0) return undefined;
  return `no session reads ${others.join(", ")} of this folder; \`cd ${shown} && holdfast agents check\` says why`;
}
