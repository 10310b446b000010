// Where we are: the project, its configuration, its database.
//
// The project is the nearest folder upward with `.holdfast`, else the root of the git repository, else this folder.
// What is given on the command line goes before the environment, that before the file, that before the default.

import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { didYouMean } from "./arguments.ts";
import type { Arguments, Io } from "./command.ts";
import type { WantedTraces } from "./wanted-tracer.ts";

export interface Database {
  readonly path: string;
  /** Where its path was given. */
  readonly origin: "flag" | "environment" | "file" | "default";
  /** The folder that is made together with it. */
  readonly projectFolder: string;
}

const FOLDER = ".holdfast";
const CONFIG_KEYS = ["$schema", "db", "trace"] as const;

/** Where the sessions of this project are. */
export function findDatabase(args: Arguments, io: Pick<Io, "cwd" | "env">): Database {
  const project = findProject(io.cwd);
  const projectFolder = join(project, FOLDER);
  const flag = args.text("db");
  if (flag !== undefined) return { path: resolve(io.cwd, flag), origin: "flag", projectFolder };
  const environment = io.env["HOLDFAST_DB"];
  if (environment !== undefined && environment !== "") {
    return { path: resolve(io.cwd, environment), origin: "environment", projectFolder };
  }
  const { db } = readConfig(join(projectFolder, "config.json"));
  if (db !== undefined)
    return { path: isAbsolute(db) ? db : join(project, db), origin: "file", projectFolder };
  return { path: join(projectFolder, "holdfast.db"), origin: "default", projectFolder };
}

/** Where sessions that are run here are traced to. What the command line says stands instead of what the file says. */
export function findTraces(args: Arguments, io: Pick<Io, "cwd">): WantedTraces {
  const targets = args.texts("trace");
  if (targets.length > 0) return { targets, folder: io.cwd };
  const project = findProject(io.cwd);
  return { targets: readConfig(join(project, FOLDER, "config.json")).trace, folder: project };
}

export function findProject(cwd: string): string {
  return (
    nearest(cwd, (folder) => isFolder(join(folder, FOLDER))) ??
    nearest(cwd, (folder) => existsSync(join(folder, ".git"))) ??
    cwd
  );
}

/** Make the project's folder, readable by its user only, and keep git from taking what is in it. */
export function makeProjectFolder({ origin, projectFolder }: Database): void {
  if (origin !== "default" || existsSync(projectFolder)) return;
  try {
    mkdirSync(projectFolder, { mode: 0o700 });
    writeFileSync(join(projectFolder, ".gitignore"), "*\n!.gitignore\n!config.json\n");
  } catch {
    // Whoever makes the database says why it cannot.
  }
}

interface Config {
  readonly db?: string;
  readonly trace: readonly string[];
}

function readConfig(path: string): Config {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { trace: [] };
    throw invalid(path, `the configuration cannot be read: ${(error as Error).message}`);
  }
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (error) {
    throw invalid(path, `the configuration is not JSON: ${(error as Error).message}`);
  }
  if (typeof config !== "object" || config === null || Array.isArray(config)) {
    throw invalid(path, "the configuration is not a JSON object", {
      expected: '{ "db": "path of the database" }',
    });
  }
  for (const key of Object.keys(config)) {
    if ((CONFIG_KEYS as readonly string[]).includes(key)) continue;
    throw invalid(path, `the configuration has no "${key}"${didYouMean(key, CONFIG_KEYS)}`, {
      expected: CONFIG_KEYS.join(", "),
    });
  }
  const { db, trace = [] } = config as { db?: unknown; trace?: unknown };
  if (db !== undefined && (typeof db !== "string" || db === ""))
    throw invalid(path, '"db" is not a path', { got: JSON.stringify(db), expected: "a text" });
  const targets: unknown[] = Array.isArray(trace) ? trace : [trace];
  if (!targets.every((target) => typeof target === "string")) {
    const expected = '"file:PATH", or a list like ["stdout", "file:PATH"]';
    throw invalid(path, '"trace" is not where to trace to', { got: JSON.stringify(trace), expected });
  }
  return { ...(db === undefined ? {} : { db }), trace: targets };
}

function invalid(
  path: string,
  message: string,
  details: { got?: string; expected?: string } = {},
): HoldfastError {
  return new HoldfastError("config_invalid", message, {
    at: path,
    ...details,
    fix: "correct the file, or remove it",
  });
}

function nearest(from: string, matches: (folder: string) => boolean): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (matches(folder)) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
