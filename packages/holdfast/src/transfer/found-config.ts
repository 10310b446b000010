// `findConfig`: the configuration of this user and project as it is on this machine.
//
//   - A part that cannot move is left out and named, such as a link or a path outside of its folder.
//   - Values of secrets, tokens, sessions, the code of agents and trusted folders are never part of it. A
//     person trusts a folder on each machine.

import { existsSync, lstatSync, readdirSync, realpathSync, type Dirent } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { decodeJson, defined, HoldfastError, MIB, type Schedule } from "@holdfast/core";
import { programOf } from "@holdfast/machine/agent-source";
import type { RunnerPolicy } from "@holdfast/runner";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { readGiven } from "@holdfast/terminal/frame/given-file";
import { withReader } from "@holdfast/place/find-session";
import { findDatabase, findProject, type Database } from "@holdfast/place/project";
import { readBounded, readConfig, userConfigFile, type Config } from "@holdfast/place/settings/config";
import { policyPath, readRunnerPolicy } from "@holdfast/place/settings/runner-policy-file";
import {
  FORMAT,
  hashOf,
  isMovableAgent,
  isMovablePath,
  sorted,
  VERSION,
  type ConfigFile,
  type MovedSchedule,
} from "./config-file.ts";

/** The folders and files of this machine. */
export interface ConfigPlaces {
  readonly project: string;
  readonly database: Database;
  readonly projectSettings: string;
  readonly projectAgents: string;
  /** Nothing without a home folder. The user's folder is none when it is the project. */
  readonly userSettings: string | undefined;
  readonly userAgents: string | undefined;
  readonly policy: string | undefined;
}

export interface FoundConfig {
  readonly file: ConfigFile;
  readonly leftOut: readonly LeftOut[];
}

export interface LeftOut {
  readonly what: string;
  readonly why: string;
}

const DEPTH_MAX = 5;
const CODE_BYTES_MAX = 16 * MIB;

export function configPlaces(args: Arguments, io: Pick<Io, "cwd" | "env">): ConfigPlaces {
  const project = findProject(io);
  const { HOME: home } = io.env;
  const hasHome = home !== undefined && isAbsolute(home);
  const folder = join(project, ".holdfast");
  return {
    project,
    database: findDatabase(args, io),
    projectSettings: join(folder, "config.json"),
    projectAgents: join(folder, "agents"),
    userSettings: userConfigFile(io.env),
    userAgents: hasHome && real(home) !== real(project) ? join(home, ".holdfast", "agents") : undefined,
    policy: policyPath(args, io),
  };
}

/**
 * The places as they are once the settings of a file are in effect. Schedules belong into the database that
 * those settings name.
 *
 * @param here what is on this machine now.
 */
export function placesAfter(places: ConfigPlaces, here: ConfigFile, given: ConfigFile): ConfigPlaces {
  const { database, project } = places;
  const isFixed = database.coordinator !== undefined || ["flag", "environment"].includes(database.origin);
  const isNamed = given.project.settings.db !== undefined || given.user.settings.db !== undefined;
  if (isFixed || !isNamed) return places;
  const ofProject = given.project.settings.db ?? here.project.settings.db;
  const path = ofProject ?? given.user.settings.db;
  if (path === undefined) return places;
  const origin = ofProject === undefined ? "user_file" : "project_file";
  return { ...places, database: { ...database, path: resolve(project, path), origin } };
}

/** @throws HoldfastError for a file that cannot be read, or that others may write. */
export async function findConfig(places: ConfigPlaces, args: Arguments, io: Io): Promise<FoundConfig> {
  const leftOut: LeftOut[] = [];
  const schedules = await schedulesIn(places.database);
  const moved = schedules
    .map((schedule) => movedSchedule(schedule, places.project, leftOut))
    .filter((schedule) => schedule !== undefined)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const policy = policyOf(places, args, io);
  const file: ConfigFile = {
    format: FORMAT,
    version: VERSION,
    user: {
      settings: settingsOf(places.userSettings),
      agents: agentsIn(places.userAgents, "user/agents", leftOut),
    },
    project: {
      settings: settingsOf(places.projectSettings),
      agents: agentsIn(places.projectAgents, "project/agents", leftOut),
      schedules: moved,
      code: codeOf(moved, places.project, leftOut),
    },
    permissions: policy === undefined ? {} : { runnerPolicy: policy },
  };
  return { file, leftOut };
}

/** A database that settings name is made by the first session. */
async function schedulesIn(database: Database): Promise<readonly Schedule[]> {
  const { coordinator, origin, path } = database;
  if (coordinator === undefined && origin !== "flag" && !existsSync(path)) return [];
  return withReader(database, async (reader) => (await reader?.schedules()) ?? []);
}

function settingsOf(path: string | undefined): Config {
  return path === undefined ? {} : sorted(readConfig(path));
}

/** As the runner reads it, so that a wrong policy is an error here as well. */
function policyOf({ policy, project }: ConfigPlaces, args: Arguments, io: Io): RunnerPolicy | undefined {
  if (policy === undefined || lookAt(policy) === undefined) return undefined;
  const { network, ...top } = readRunnerPolicy(args, io, project).policy;
  return sorted({ ...top, ...(network === undefined ? {} : { network: sorted(network) }) });
}

/** Agent files of Holdfast below a folder, by their paths. Links are left out, because they may lead anywhere. */
function agentsIn(folder: string | undefined, place: string, leftOut: LeftOut[]): Record<string, string> {
  const found: Record<string, string> = {};
  const look = (steps: readonly string[]): void => {
    for (const entry of folder === undefined ? [] : entriesOf(join(folder, ...steps))) {
      const path = [...steps, entry.name].join("/");
      if (entry.isDirectory() && steps.length < DEPTH_MAX) look([...steps, entry.name]);
      if (!entry.name.endsWith(".md") || entry.isDirectory()) continue;
      const what = `${place}/${path}`;
      if (!entry.isFile()) leftOut.push({ what, why: "it is no file of its own but a link" });
      else if (!isMovablePath(path)) leftOut.push({ what, why: "its name cannot be used on every machine" });
      else found[path] = readText(join(folder!, path), what, leftOut) ?? "";
      if (found[path] === "") delete found[path];
    }
  };
  look([]);
  return sorted(found);
}

function readText(path: string, what: string, leftOut: LeftOut[]): string | undefined {
  try {
    return readBounded(path);
  } catch (error) {
    leftOut.push({ what, why: (error as Error).message });
    return undefined;
  }
}

function movedSchedule(
  { scheduleId: id, cron, timeZone, action }: Schedule,
  project: string,
  leftOut: LeftOut[],
): MovedSchedule | undefined {
  if (action.type === "signal") {
    const { sessionId, name } = action;
    const payload = decodeJson(action.payload);
    return { id, cron, timeZone, signal: { sessionId, name, ...defined({ payload }) } };
  }
  const { agent, budget, placement } = action;
  const program = programOf(agent.file);
  const file =
    agent.file === undefined || program !== undefined
      ? undefined
      : relative(project, agent.file).split(sep).join("/");
  if (file !== undefined && !isMovableAgent(file)) {
    leftOut.push({ what: `project/schedules/${id}`, why: unmovable(file) });
    return undefined;
  }
  const input = decodeJson(action.input);
  return {
    id,
    cron,
    timeZone,
    start: {
      agent: agent.name,
      version: agent.version,
      ...defined({ file, program, input }),
      ...(budget === undefined ? {} : { budget: sorted(budget) }),
      ...(placement?.demands === undefined ? {} : { demands: sorted(placement.demands) }),
      ...defined({ priority: placement?.priority }),
    },
  };
}

function unmovable(file: string): string {
  return file.startsWith("../") || isAbsolute(file)
    ? "the file of its agent is outside of the project"
    : `the path of its agent (${file}) cannot be used on every machine`;
}

function codeOf(
  schedules: readonly MovedSchedule[],
  project: string,
  leftOut: LeftOut[],
): Record<string, string> {
  const hashes: Record<string, string> = {};
  for (const { start } of schedules) {
    if (start?.file === undefined || hashes[start.file] !== undefined) continue;
    const hash = hashOfFile(join(project, start.file));
    if (hash === undefined) leftOut.push({ what: `project/code/${start.file}`, why: "it cannot be read" });
    else hashes[start.file] = hash;
  }
  return sorted(hashes);
}

/** The hash of a file; nothing when it cannot be read. */
export function hashOfFile(path: string): string | undefined {
  try {
    return hashOf(readGiven(path, CODE_BYTES_MAX));
  } catch {
    return undefined;
  }
}

function entriesOf(folder: string): Dirent[] {
  // A folder that is a link leads out of the place that was asked for.
  if (lookAt(folder)?.isDirectory() !== true) return [];
  return readdirSync(folder, { withFileTypes: true });
}

/** The file or folder at a path, or the link itself; nothing when nothing is there. */
export function lookAt(path: string): ReturnType<typeof lstatSync> {
  try {
    return lstatSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new HoldfastError("config_invalid", `${path} cannot be read: ${(error as Error).message}`, {
      at: path,
      expected: "a file or folder of this user",
      fix: `let this user read ${dirname(path)}`,
      cause: error,
    });
  }
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
