// The folders with agent files of a project and of a user and the files in them (`findAgentFiles`).
//
//   - A project has layers where a session works in a folder of a repository: each folder from there up to the
//     root. The files of all layers count, and those of the nearest go first (`layersOf`). Each reader of
//     files of a project reads one layer after the other, with the trust of the layer.

import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve, sep } from "node:path";
import type { PushedContents } from "../contents/pushed-contents.ts";
import type { AgentRecord, AgentSource } from "../record/agent-record.ts";
import { FileProblem } from "../format/front-matter.ts";
import type { ProjectPath } from "./project-inputs.ts";

/** A format whose files are read where they are. */
export type PlacedDialect = "holdfast" | "claude" | "opencode" | "codex" | "gemini" | "copilot" | "folder";
/** `docker`, `managed` and `opencode-config` are formats of files that are imported. */
export type DialectName = PlacedDialect | "docker" | "managed" | "opencode-config";

/** Where agent files are looked for. */
export interface AgentPlaces {
  /** The folder of the project. */
  readonly project: string;
  /**
   * The folders whose files count, from the one that sessions work in up to the root of the repository, the
   * nearest first. Absent means the project alone.
   */
  readonly layers?: readonly string[];
  /** The home folder of the user; `undefined` for none. */
  readonly home: string | undefined;
  /** The environment, for the folders that other tools take from it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file with the folders that the user trusts. */
  readonly trustFile: string;
  /** Loads the files of the project although the user has not trusted it. */
  readonly trustsProject?: boolean;
  /**
   * The sessions belong to several people, as those of a coordinator's runner. No answer becomes a rule of
   * the project then, and a start names no other environments than the agent.
   */
  readonly servesOthers?: boolean;
  /** The labels of the runner that looks for agents; absent in a process that is no runner. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The names of external agents, which have no file. */
  readonly externalAgents?: () => readonly string[];
  /** The names of the secrets that the user has stored, whose values a server can be given. */
  readonly storedSecrets?: readonly string[];
  /** The contents and agents of a coordinator, for agents that come from it. */
  readonly pushed?: PushedPlaces | undefined;
}

/** Skills and scripts of a coordinator, and the agents that its agent files may start or have as hooks. */
export interface PushedPlaces extends Readonly<Record<"skills" | "scripts", PushedContents>> {
  /** An agent of this name that the runner offers. @throws HoldfastError where it offers none. */
  readonly agent: (name: string) => OfferedAgent;
}

/** The places of an agent. Skills and scripts of a coordinator are for agents that come from it. */
export function placesOf({ source }: Pick<AgentRecord, "source">, places: AgentPlaces): AgentPlaces {
  return source.scope === "coordinator" ? places : { ...places, pushed: undefined };
}

/** An agent that a runner offers, as other agents know it. */
export interface OfferedAgent {
  readonly name: string;
  readonly description?: string | undefined;
  /** That of an agent without code. */
  readonly record?: AgentRecord | undefined;
}

/** A file that may be an agent. */
export interface FoundFile {
  /** The file, or the folder of the folder form. */
  readonly path: string;
  readonly dialect: PlacedDialect;
  readonly scope: AgentSource["scope"];
  /** The folder that the file must be in when links are followed; `null` where the user alone decides. */
  readonly within: string | null;
}

/** Folders of other people's code. */
const SKIPPED_FOLDERS: ReadonlySet<string> = new Set(["node_modules"]);

interface AgentFolder {
  readonly path: string;
  readonly dialect: PlacedDialect;
}

/** Folders of a project, from its folder. */
const PROJECT_FOLDERS: readonly (readonly [folder: ProjectPath, dialect: PlacedDialect])[] = [
  [".holdfast/agents", "holdfast"],
  [".claude/agents", "claude"],
  [".opencode/agents", "opencode"],
  [".opencode/agent", "opencode"],
  [".codex/agents", "codex"],
  [".gemini/agents", "gemini"],
  [".github/agents", "copilot"],
  ["agents", "folder"],
];

/** The layers of a project, each as a project of its own, the nearest first. */
export function layersOf<Places extends Pick<AgentPlaces, "project" | "layers">>(
  places: Places,
): readonly Places[] {
  const { project, layers = [project] } = places;
  return layers.map((folder) => ({ ...places, project: folder, layers: [folder] }));
}

/** The layer that a file of the project lies in. */
export function layerOf<Places extends Pick<AgentPlaces, "project" | "layers">>(
  places: Places,
  path: string,
): Places {
  const found = layersOf(places).find(({ project }) => path.startsWith(`${project}${sep}`));
  return found ?? { ...places, layers: [places.project] };
}

/** The folder that sessions work in. */
export function workFolderOf({ project, layers }: Pick<AgentPlaces, "project" | "layers">): string {
  return layers?.[0] ?? project;
}

/** All files of the project and the user, those of the project first. */
export function findAgentFiles(places: AgentPlaces): readonly FoundFile[] {
  const { home, env } = places;
  const ofProject = layersOf(places).flatMap(({ project }) => {
    const root = realPath(project);
    if (home !== undefined && realPath(home) === root) return [];
    return PROJECT_FOLDERS.flatMap(([path, dialect]) =>
      filesOf({ path: join(project, path), dialect }, "project", root),
    );
  });
  return [...ofProject, ...userFolders(home, env).flatMap((folder) => filesOf(folder, "user", null))];
}

/** Whether a file is one of the user's own, which needs no trust. @param path its real path. */
export function isUserFile({ home, env }: Pick<AgentPlaces, "home" | "env">, path: string): boolean {
  return userFolders(home, env).some((folder) => path.startsWith(`${realPath(folder.path)}${sep}`));
}

function userFolders(home: string | undefined, env: AgentPlaces["env"]): readonly AgentFolder[] {
  if (home === undefined) return [];
  const homes = homesOfTools(home, env);
  return [
    { path: join(home, ".holdfast", "agents"), dialect: "holdfast" },
    { path: join(homes.claude, "agents"), dialect: "claude" },
    { path: join(homes.opencode, "agents"), dialect: "opencode" },
    { path: join(homes.opencode, "agent"), dialect: "opencode" },
    { path: join(homes.codex, "agents"), dialect: "codex" },
    { path: join(homes.gemini, "agents"), dialect: "gemini" },
    { path: join(homes.copilot, "agents"), dialect: "copilot" },
  ];
}

/** The folders in which other tools keep what belongs to their user. */
export function homesOfTools(
  home: string,
  env: AgentPlaces["env"],
): Readonly<Record<"claude" | "opencode" | "codex" | "gemini" | "copilot", string>> {
  const set = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  return {
    claude: set("CLAUDE_CONFIG_DIR") ?? join(home, ".claude"),
    opencode: join(set("XDG_CONFIG_HOME") ?? join(home, ".config"), "opencode"),
    codex: set("CODEX_HOME") ?? join(home, ".codex"),
    gemini: join(home, ".gemini"),
    copilot: join(home, ".copilot"),
  };
}

/** A path that somebody named, as a file of the dialect that its place or its ending says. */
export function foundAt(path: string): FoundFile {
  const at = resolve(path);
  const isFolder = existsSync(at) && statSync(at).isDirectory();
  const file = basename(at) === "agent.json" ? dirname(at) : at;
  const dialect = isFolder || file !== at ? "folder" : dialectOf(at);
  return { path: file, dialect, scope: "path", within: null };
}

function dialectOf(path: string): PlacedDialect {
  if (path.endsWith(".agent.md")) return "copilot";
  if (extname(path) === ".toml") return "codex";
  const steps = `${dirname(path)}${sep}`;
  const known = PROJECT_FOLDERS.find(
    ([folder, dialect]) =>
      dialect !== "folder" && steps.includes(`${sep}${folder.replaceAll("/", sep)}${sep}`),
  );
  return known?.[1] ?? "holdfast";
}

function filesOf(
  { path, dialect }: AgentFolder,
  scope: FoundFile["scope"],
  within: string | null,
): readonly FoundFile[] {
  const paths =
    dialect === "folder" ? agentFoldersIn(path) : filesIn(path, dialect === "codex" ? ".toml" : ".md");
  return paths.map((found) => ({ path: found, dialect, scope, within }));
}

/** The files and folders in a folder that may be agents, whatever tool they are for. */
export function agentPathsIn(folder: string): readonly string[] {
  return [...filesIn(folder, ".md"), ...filesIn(folder, ".toml"), ...agentFoldersIn(folder)];
}

/** Files with this ending, also in folders below; links to folders are not followed. */
export function filesIn(folder: string, ending: string): readonly string[] {
  const entries = readFolder(folder);
  const files = entries
    .filter((entry) => !entry.isDirectory() && entry.name.endsWith(ending))
    .map(({ name }) => join(folder, name));
  return [...files, ...foldersIn(folder).flatMap(({ path }) => filesIn(path, ending))];
}

function agentFoldersIn(folder: string): readonly string[] {
  return readFolder(folder)
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, "agent.json")))
    .map(({ name }) => join(folder, name));
}

/**
 * The folders in a folder, in the order of their names. Installed packages and hidden folders are left out.
 * @param withLinks also links that lead to a folder.
 */
export function foldersIn(
  folder: string,
  { withLinks = false } = {},
): readonly { readonly path: string; readonly isLink: boolean }[] {
  return readFolder(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.name.startsWith(".") || SKIPPED_FOLDERS.has(entry.name)) return [];
    const isLink = withLinks && entry.isSymbolicLink();
    const isFolder =
      entry.isDirectory() || (isLink && statSync(path, { throwIfNoEntry: false })?.isDirectory());
    return isFolder === true ? [{ path, isLink }] : [];
  });
}

/** The names in a folder in their order; none for a folder that cannot be read. */
export function namesIn(folder: string): readonly string[] {
  return readFolder(folder).map(({ name }) => name);
}

function readFolder(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

/**
 * A file must lie inside the folder that it came from when links are followed: a link could bring in a file
 * of anybody.
 *
 * @param within the real path of the folder; without it the user alone decides.
 * @throws FileProblem
 */
export function requireInside(
  path: string,
  within: string | null | undefined,
  { what = "file", outer = "project" } = {},
): void {
  const real = realPath(path);
  if (within === null || within === undefined || real.startsWith(`${within}${sep}`)) return;
  throw new FileProblem(
    `the ${what} is a link that leads out of the ${outer}, to ${real}`,
    `put the ${what} itself into the ${outer}`,
  );
}

/** The path without links; of a path that is not there, the path itself. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
