// `findUnusedFiles`: files of other tools in a project that no session uses, each with the reason and the way to
// use it. They are looked for by their names, and hardly any is read.
//
//   - Nothing that a person wrote for another tool is left out without a word. Fields of a file that is read
//     stand in the report of that file.
//   - The search for packages below the project is bounded (`PACKAGES_MAX`), and follows no link.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { MIB } from "@holdfast/core";
import { foldersIn, layersOf, realPath, workFolderOf, type AgentPlaces } from "../places/agent-places.ts";
import { placesWithoutSkill } from "../places/skill-folders.ts";

export interface UnusedFile {
  readonly path: string;
  readonly reason: string;
}

const INSTRUCTIONS = "the instructions of a project are those in AGENTS.md, which may be a link to this file";
const RULES = "no session reads these rules; what always holds belongs into AGENTS.md";
const STYLE = "it changes how another tool answers; write it into the text of an agent file";
const SKILLS = "skills are read in .agents/skills and .claude/skills, which may have links to these";
const SERVERS = "MCP servers are read in .mcp.json and .vscode/mcp.json";

/** A path from the folder of a project or from the home folder. With `text`, only a file that has it. */
type Row = readonly [path: string, reason: string, text?: RegExp];

const ROWS: readonly Row[] = [
  ["CLAUDE.md", INSTRUCTIONS],
  ["CLAUDE.local.md", INSTRUCTIONS],
  [".claude/CLAUDE.md", INSTRUCTIONS],
  ["GEMINI.md", INSTRUCTIONS],
  ["AGENT.md", INSTRUCTIONS],
  [".github/copilot-instructions.md", INSTRUCTIONS],
  [".cursorrules", INSTRUCTIONS],
  [".windsurfrules", INSTRUCTIONS],
  [".clinerules", RULES],
  [".claude/rules", RULES],
  [".cursor/rules", RULES],
  [".windsurf/rules", RULES],
  [".github/instructions", RULES],
  [".claude/output-styles", STYLE],
  [
    ".github/chatmodes",
    "Copilot reads chat modes as agents in .github/agents: move NAME.chatmode.md to NAME.agent.md",
  ],
  [".cursor/agents", "agents of this tool are not read; their files belong into .claude/agents"],
  [".cursor/commands", "commands of this tool are not read; a conversation has those in .claude/commands"],
  [".windsurf/workflows", "commands of this tool are not read; a conversation has those in .claude/commands"],
  [".github/skills", SKILLS],
  [".codex/skills", SKILLS],
  [".gemini/skills", SKILLS],
  [".opencode/skills", SKILLS],
  [".opencode/skill", SKILLS],
  [".cursor/skills", SKILLS],
  [".cursor/mcp.json", SERVERS],
  [".gemini/settings.json", SERVERS, /"mcpServers"/],
  [".codex/config.toml", SERVERS, /^\s*\[mcp_servers\b/m],
  ...["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"].flatMap(
    (path): Row[] => [
      [path, SERVERS, /"mcp"\s*:/],
      [
        path,
        "its agents are not read here; `holdfast agents import FILE` writes them as files",
        /"agent"\s*:/,
      ],
    ],
  ),
];

const HOME_ROWS: readonly Row[] = [
  [".claude/CLAUDE.md", INSTRUCTIONS],
  [".codex/AGENTS.md", INSTRUCTIONS],
  [".gemini/GEMINI.md", INSTRUCTIONS],
  [".config/opencode/AGENTS.md", INSTRUCTIONS],
  [".claude/rules", RULES],
  [".claude/output-styles", STYLE],
  [".codex/skills", SKILLS],
  [".gemini/skills", SKILLS],
  [".config/opencode/skills", SKILLS],
  [".copilot/skills", SKILLS],
  [".claude.json", SERVERS, /"mcpServers"/],
  [".cursor/mcp.json", SERVERS],
  [".gemini/settings.json", SERVERS, /"mcpServers"/],
  [".codex/config.toml", SERVERS, /^\s*\[mcp_servers\b/m],
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
  ".cursor",
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
          ...folders.flatMap((folder) => [...rowsIn(folder, ROWS), ...placesWithoutSkill(folder)]),
          ...packagesIn(workFolderOf(places)),
        ]),
    ...(ofHome === undefined ? [] : [...rowsIn(ofHome, HOME_ROWS), ...placesWithoutSkill(ofHome)]),
  ];
}

function rowsIn(root: string, rows: readonly Row[]): readonly UnusedFile[] {
  return rows.flatMap(([name, reason, text]) => {
    const path = join(root, name);
    if (!hasContent(path) || (text !== undefined && !text.test(textOf(path)))) return [];
    if (reason === INSTRUCTIONS && isRead(path, join(root, "AGENTS.md"))) return [];
    return [{ path, reason }];
  });
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
      const names = OF_PACKAGE.filter((name) => hasContent(join(folder, name)));
      if (names.length > 0) found.push({ path: folder, reason: reasonOfPackage(folder, names) });
    }
    ahead = here.filter((one) => !isProject(one)).flatMap((one) => foldersIn(one).map(({ path }) => path));
  }
  return found;
}

/** Its files count where a person works in it. */
function isProject(folder: string): boolean {
  return [".holdfast", ".git"].some((name) => existsSync(join(folder, name)));
}

function reasonOfPackage(folder: string, names: readonly string[]): string {
  const shown = /^[\w@%+=:,./-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
  return (
    `${names.join(", ")} of this folder count for no session here, neither what they permit nor what they forbid; ` +
    `they count, beside those of the folders above, for a session that you start there (\`cd ${shown}\`)`
  );
}
