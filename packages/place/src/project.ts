// Where we are: the project and its database.
//
// The project is the nearest folder upward with `.holdfast`, else the root of the git repository, else this
// folder. The home folder is the project only outside of a git repository.
// The first source that has a value wins: the command line, the environment, the project's configuration, the
// user's configuration, the default.
//
// The configuration of a project that nobody has trusted gives nothing but what `setting-trust.ts` allows. A
// command that needs another setting of it ends with `policy_denied`, and names the command that trusts. The
// home folder is its user's.

import { existsSync, lstatSync, realpathSync, type Stats } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { isTrustedConfig } from "@holdfast/agents/trust";
import { HoldfastError } from "@holdfast/core";
import { makePrivateFolder, dataFolder } from "@holdfast/system";
import { isRunning } from "@holdfast/system/processes";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { adminTokenFile, readToken } from "./admin-token.ts";
import { readConfig, userConfigFile, type Config } from "./settings/config.ts";
import { markOf, type Mark } from "./settings/database-mark.ts";
import { SETTING_RULES } from "./settings/setting-trust.ts";
import { coordinatorToken, namedCoordinator, type CoordinatorAccess } from "./coordinator-access.ts";
import { isFolder } from "@holdfast/terminal/frame/given-file";
import { hideFromGit } from "./settings/git-ignore.ts";
import { readStackState, stackPaths, type StackState } from "./local-stack.ts";
import type { Origin } from "@holdfast/terminal/frame/origin";
import type { WantedTraces } from "./settings/wanted-tracer.ts";

export interface Database {
  readonly path: string;
  readonly origin: Origin;
  /** The flag, the variable or the file; nothing for the default. */
  readonly from?: string;
  /** It is a coordinator's, which `path` is the address of. */
  readonly coordinator?: CoordinatorAccess;
  /** The folder that is made together with it. */
  readonly projectFolder: string;
  /** The project around it and the mark of this user, where it may lie in a clone (own-database-1). */
  readonly own?: { readonly project: string; readonly mark: Mark };
  /** The local stack, when it runs and nobody named a place: its sessions are found as well. */
  readonly stack?: StackDatabase;
  /** A local stack that does not answer now, and nobody named a place: its sessions are not found meanwhile. */
  readonly awayStack?: AwayStack;
}

export type AwayStack = "stopped" | "starting" | "stopping";

/** The places that commands without the name of a place look into: the database, and the local stack that runs beside it. */
export function placesOf(database: Database): readonly Database[] {
  return database.stack === undefined ? [database] : [database, database.stack];
}

/** The database of the running local stack. */
export interface StackDatabase extends Database {
  readonly coordinator: CoordinatorAccess;
  /** The folder that its agents work in. */
  readonly project: string;
  /** The names of the agents that its runner has loaded. */
  readonly agents: readonly string[];
  /** The sources of these agents, as sessions store them. */
  readonly sources: readonly string[];
}

const FOLDER = ".holdfast";
const VARIABLE = "HOLDFAST_DB";
const LEASE_MS = 15_000;
/** Longer than the supervisor of the local stack takes to start its coordinator again. */
const STACK_WAIT_MS = 15_000;

/** The part of `Io` that the search for a place needs. It says something only while it waits for the local stack. */
type PlaceIo = Pick<Io, "cwd" | "env"> & Partial<Pick<Io, "note">>;

/** Where sessions are: at the coordinator that is named, or in the database of this project. */
export function findDatabase(args: Arguments, io: PlaceIo): Database {
  const local = findLocalDatabase(args, io);
  const named = namedCoordinator(args, io);
  if (named === undefined) {
    const isNamed = local.origin === "flag" || local.origin === "environment";
    const state = isNamed ? undefined : readStackState(stackPaths(io));
    if (state === undefined) return local;
    const { status } = state;
    if (!isRunning(state.supervisor)) return { ...local, awayStack: "stopped" };
    if (status === "starting" || status === "stopping") return { ...local, awayStack: status };
    const stack = findStackDatabase(state, local, io);
    return stack === undefined ? local : { ...local, stack };
  }
  const { url, origin, from } = named;
  const coordinator = { url, ...coordinatorToken(args, io) };
  return { path: url, origin, from, projectFolder: local.projectFolder, coordinator };
}

function findStackDatabase(
  { url, status, project, offers, agents }: StackState,
  { projectFolder }: Database,
  io: PlaceIo,
): StackDatabase | undefined {
  if (url === undefined || status !== "running") return undefined;
  // Not HOLDFAST_TOKEN, which is for the coordinator of HOLDFAST_URL.
  const tokenFrom = adminTokenFile(dataFolder(io));
  const token = readToken(tokenFrom);
  if (token === undefined || token === "") return undefined;
  const onWait = (): void =>
    io.note?.(`the local stack does not answer: waiting for it, at most ${STACK_WAIT_MS / 1_000} s`);
  const coordinator = { url, token, tokenFrom, patience: { waitMs: STACK_WAIT_MS, onWait } };
  const loaded = { project, agents: offers, sources: agents };
  return { path: url, origin: "default", projectFolder, coordinator, ...loaded };
}

/** The database of this project. @throws HoldfastError `config_invalid` for a project whose `.holdfast` leads out of it. */
export function findLocalDatabase(args: Arguments, io: Pick<Io, "cwd" | "env">): Database {
  const project = findProject(io);
  const own = project === io.env["HOME"] ? {} : { own: { project, mark: markOf(dataFolder(io)) } };
  return { ...databaseIn(project, args, io), projectFolder: join(project, FOLDER), ...own };
}

function databaseIn(
  project: string,
  args: Arguments,
  io: Pick<Io, "cwd" | "env">,
): Pick<Database, "path" | "origin" | "from"> {
  const flag = args.text("db");
  if (flag !== undefined) return { path: resolve(io.cwd, flag), origin: "flag", from: "--db" };
  const variable = io.env[VARIABLE];
  if (variable !== undefined && variable !== "")
    return { path: resolve(io.cwd, variable), origin: "environment", from: VARIABLE };
  const configured = fromFiles("db", project, io);
  if (configured !== undefined) {
    const { value, ...given } = configured;
    return { path: resolve(project, value), ...given };
  }
  const path = join(project, FOLDER, "holdfast.db");
  requireInProject(path, project);
  return { path, origin: "default" };
}

/** The destinations for traces of sessions that run here. The command line overrides the file. */
export function findTraces(args: Arguments, io: Pick<Io, "cwd" | "env">): WantedTraces {
  const targets = args.texts("trace");
  if (targets.length > 0) return { targets, folder: io.cwd, origin: "flag", from: "--trace" };
  const project = findProject(io);
  const configured = fromFiles("trace", project, io);
  if (configured === undefined) return { targets: [], folder: project, origin: "default" };
  const { value, ...given } = configured;
  return { targets: typeof value === "string" ? [value] : value, folder: project, ...given };
}

/** Whether a session that nothing bounds is refused. A flag and files can say so. */
export function findStrictBounds(args: Arguments, io: Pick<Io, "cwd" | "env">): Given<boolean> {
  if (args.has("strict-bounds")) return { value: true, origin: "flag", from: "--strict-bounds" };
  return (
    fromFiles("strictBounds", findProject(io), io) ?? {
      value: false,
      origin: "default",
    }
  );
}

/** The setting of the first configuration file that has it. @throws HoldfastError `policy_denied`. */
export function fromConfigFiles<Key extends keyof Config>(
  key: Key,
  io: Pick<Io, "cwd" | "env">,
): Given<NonNullable<Config[Key]>> | undefined {
  return fromFiles(key, findProject(io), io);
}

export interface Given<T> {
  readonly value: T;
  readonly origin: Origin;
  /** The flag or the file; nothing for the default. */
  readonly from?: string;
}

/**
 * The setting of the first file that has it, or of a folder above the project that only takes something away.
 *
 * @throws HoldfastError `policy_denied`.
 */
function fromFiles<Key extends keyof Config>(
  key: Key,
  project: string,
  io: Pick<Io, "cwd" | "env">,
): Given<NonNullable<Config[Key]>> | undefined {
  for (const layer of findLayers(project, project, io).slice(1)) {
    const from = join(layer, FOLDER, "config.json");
    const value = readConfig(from)[key];
    if (value !== undefined && SETTING_RULES[key].countsUntrusted(value))
      return { value, origin: "project_file", from };
  }
  for (const [origin, from] of configFiles(project, io)) {
    const config = readConfig(from);
    const value = config[key];
    if (value === undefined) continue;
    if (origin === "project_file" && !SETTING_RULES[key].countsUntrusted(value))
      requireTrusted(key, project, config, io);
    return { value, origin, from };
  }
  return undefined;
}

function requireTrusted(
  key: keyof Config,
  project: string,
  config: Config,
  io: Pick<Io, "cwd" | "env">,
): void {
  const trustFile = trustFileOf(io);
  if (project === io.env["HOME"] || isTrustedConfig(trustFile, project, { ...config })) return;
  const at = join(project, FOLDER, "config.json");
  throw new HoldfastError(
    "policy_denied",
    `the project sets "${key}", and you have not trusted this configuration`,
    {
      at: `${at}#/${key}`,
      expected: "a configuration that you have read, with the content that you have trusted",
      fix: `read ${at}, and then run \`holdfast agents trust\`, or use ${SETTING_RULES[key].instead}`,
    },
  );
}

/** The file with what the user trusts. */
export function trustFileOf(io: Pick<Io, "cwd" | "env">): string {
  return join(dataFolder(io), "trusted-folders.json");
}

/** The configuration files, whether or not they exist. The project's goes before the user's. */
export function configFiles(
  project: string,
  { env }: Pick<Io, "env">,
): readonly (readonly ["project_file" | "user_file", string])[] {
  const user = userConfigFile(env);
  const own = ["project_file", join(project, FOLDER, "config.json")] as const;
  return user === undefined ? [own] : [own, ["user_file", user]];
}

export function findProject({ cwd, env }: Pick<Io, "cwd" | "env">): string {
  const marked = nearest(cwd, (folder) => isFolder(join(folder, FOLDER)));
  const repository = nearest(cwd, (folder) => isRepository(join(folder, ".git")));
  // The home folder has agents of the user in `.holdfast`, and is not the project of every repository below
  // it.
  const isBelowHome = marked === env["HOME"] && repository?.startsWith(`${marked}${sep}`) === true;
  return (isBelowHome ? repository : (marked ?? repository)) ?? cwd;
}

/**
 * The folders whose files for agents count for work in a folder, from there up to the root of the repository. The
 * home folder is one only as the project.
 */
export function findLayers(folder: string, project: string, { env }: Pick<Io, "env">): readonly string[] {
  const repository = nearest(folder, (at) => isRepository(join(at, ".git")));
  const top = repository !== undefined && project.startsWith(`${repository}${sep}`) ? repository : project;
  const found: string[] = [];
  nearest(folder, (at) => found.push(at) > 0 && at === top);
  return found.filter((at) => at === project || at !== env["HOME"]);
}

/** Claims at a coordinator have a lease: others may have the session when this process is gone. */
export function leaseOf({ coordinator }: Pick<Database, "coordinator">): { readonly leaseMs?: number } {
  return coordinator === undefined ? {} : { leaseMs: LEASE_MS };
}

/** Where a watchdog keeps the names of sessions that it ended the process for (K4a). */
export function suspectsFile({ path, coordinator, projectFolder }: Database): string {
  return coordinator === undefined ? `${path}-suspects` : join(projectFolder, "coordinator-suspects");
}

/**
 * A cloned project may have links in the place of its folders, and a command must not write through them.
 *
 * @param path a path below the project, which need not be there. @throws HoldfastError `config_invalid` for a
 *   link that leads out.
 */
export function requireInProject(path: string, project: string): void {
  let at = project;
  for (const step of relative(project, path).split(sep)) {
    at = join(at, step);
    const stats = lookAt(at);
    if (stats?.isDirectory() === true) continue;
    if (stats?.isSymbolicLink() !== true) return; // Nothing is below it.
    const real = realOf(at);
    if (real?.startsWith(`${realpathSync(project)}${sep}`) === true) continue;
    throw new HoldfastError("config_invalid", `${at} is a link that leads out of the project`, {
      at,
      got: real ?? "a link to nothing",
      expected: "a file or folder of the project itself",
      fix: "remove the link; `--db` puts the database elsewhere",
    });
  }
}

function lookAt(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** Make the project's folder, readable by its user only, and keep git from taking what is in it. */
export function makeProjectFolder({ path, origin, projectFolder }: Database): void {
  if (origin !== "default" && !path.startsWith(`${projectFolder}${sep}`)) return;
  try {
    makePrivateFolder(projectFolder);
    hideFromGit(projectFolder);
  } catch {
    // Making the database reports the problem later.
  }
}

/** A sandbox, such as that of Codex, leaves an empty folder in this place, also in folders that many projects share. */
function isRepository(git: string): boolean {
  return existsSync(join(git, "HEAD")) || (existsSync(git) && !isFolder(git));
}

function nearest(from: string, matches: (folder: string) => boolean): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (matches(folder)) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}
