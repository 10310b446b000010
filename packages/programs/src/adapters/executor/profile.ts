// Profiles of executors, and where executors are found: `findExecutor`, `executorAt`, `listExecutors`.
//
// An executor is a program. Its folder `executors/NAME/` holds exactly one file `ao-*-exec`. A profile
// `profiles/NAME.json` names another command or gives the executor a configuration. Both lie in the same
// folder, and the command of a profile is relative to it.

import { defined, HoldfastError, NotFoundError } from "@holdfast/core";
import { isSecretName } from "@holdfast/system";
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { PROVIDER_NAMES, type ProviderKeys } from "@holdfast/runtime/gateway";
import { isFields } from "../../session/fields.ts";
import { SCHEMA_VERSIONS, type SchemaVersion } from "./invocation.ts";

/** A program that carries out turns of sessions, as its file describes it. */
export interface ExecutorProfile {
  /** The name of the agent whose sessions the executor carries out. */
  readonly name: string;
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  /** `persistent`: one process takes several turns. */
  readonly lifecycle: "one_shot" | "persistent";
  /** Given to the executor as `executor_config`, from schema 2.1 on. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Asked of the executor with `--schema` when absent. */
  readonly schemaVersion?: SchemaVersion;
  /** Names of secrets that the executor gets in its environment. */
  readonly secrets: readonly string[];
  /** Model providers that the executor calls through its gateway, each with the name of the secret that is its key. */
  readonly providers: ProviderKeys;
  /** How long a conversation waits for its next prompt; 0 ends it with its first turn. Milliseconds. */
  readonly conversationTtlMs: number;
  /** How long one turn may take; no limit by default. Milliseconds. */
  readonly timeoutMs?: number;
}

/** An executor as a list shows it. */
export interface ListedExecutor {
  readonly name: string;
  /** Its program. */
  readonly path?: string;
  /** Why it cannot be used. */
  readonly problem?: string;
}

export const DEFAULT_EXECUTOR = "test-executor";
/** A conversation that no one continues ends after a day. */
const CONVERSATION_TTL_SECONDS = 86_400;
/** Beside the sources, or beside the built code of the published package. */
const BUILT_IN = ["../../../included-executors", "../included-executors"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(path))!;
const NAME = /^[A-Za-z0-9][\w.-]{0,99}$/;

const DEFAULTS = {
  lifecycle: "one_shot",
  config: {},
  secrets: [],
  providers: {},
  conversationTtlMs: CONVERSATION_TTL_SECONDS * 1_000,
} as const;

/**
 * The profile of an executor by its name, in the given folder or among those that come with Holdfast.
 *
 * @throws HoldfastError `not_found` when there is none, `config_invalid` for several programs or a wrong
 *   profile.
 */
export function findExecutor(root: string, name: string): ExecutorProfile {
  if (!NAME.test(name)) throw unknown(root, name);
  const file = join(root, "profiles", `${name}.json`);
  if (existsSync(file)) return readProfile(file);
  for (const folder of [join(root, "executors", name), join(BUILT_IN, name)]) {
    if (isFolder(folder)) return executorAt(programIn(folder, name), name);
  }
  throw unknown(root, name);
}

/** Whether the folder has an executor or a profile of this name. */
export function hasExecutor(root: string, name: string): boolean {
  return existsSync(join(root, "profiles", `${name}.json`)) || isFolder(join(root, "executors", name));
}

/** The profile of a program by its path. @throws HoldfastError `file_not_found`, or `config_invalid` if it is no program. */
export function executorAt(path: string, name = nameOf(path)): ExecutorProfile {
  if (!existsSync(path) || isFolder(path))
    throw new NotFoundError("file_not_found", `there is no executor ${path}`, {
      expected: "an executable file",
      fix: "check the path; it is taken from the current folder",
    });
  // The executor that comes with Holdfast is a program for Node, which need not be on the PATH.
  if (path.startsWith(BUILT_IN)) return { ...DEFAULTS, name, command: [process.execPath, path] };
  if (!isExecutable(path))
    throw new HoldfastError("config_invalid", `the executor ${name} may not be executed`, {
      at: path,
      fix: `make it executable: chmod +x ${path}`,
    });
  return { ...DEFAULTS, name, command: [path] };
}

/** The names of all secrets of a profile: its own, and the keys of its providers. */
export function secretsOf({ secrets, providers }: ExecutorProfile): readonly string[] {
  return [...new Set([...secrets, ...Object.values(providers)])];
}

/** Whether the program of a profile is one that comes with Holdfast, and so a part of this process's own code. */
export function isBuiltIn({ command }: Pick<ExecutorProfile, "command">): boolean {
  const [program, path = "", ...more] = command;
  return program === process.execPath && path.startsWith(BUILT_IN) && more.length === 0;
}

/** All executors and profiles of the folder, and those that come with Holdfast. */
export function listExecutors(root: string): readonly ListedExecutor[] {
  const names = new Set<string>();
  for (const folder of [join(root, "executors"), BUILT_IN])
    for (const name of namesIn(folder)) if (isFolder(join(folder, name))) names.add(name);
  for (const file of namesIn(join(root, "profiles")))
    if (file.endsWith(".json")) names.add(file.slice(0, -".json".length));
  return [...names].toSorted().map((name) => {
    try {
      const { command } = findExecutor(root, name);
      return { name, path: command.at(-1)! };
    } catch (error) {
      return { name, problem: (error as Error).message };
    }
  });
}

/** A profile from its file. @throws HoldfastError `config_invalid` that names the field. */
function readProfile(file: string): ExecutorProfile {
  const name = basename(file, ".json");
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (cause) {
    throw invalid(file, "", `it is not JSON: ${(cause as Error).message}`, "a JSON object", cause);
  }
  if (!isFields(value)) throw invalid(file, "", "it is not a JSON object", "{ … }");
  for (const key of Object.keys(value))
    if (!Object.hasOwn(FIELDS, key))
      throw invalid(file, key, "the field is unknown", Object.keys(FIELDS).join(", "));
  for (const [key, { fits, expected }] of Object.entries(FIELDS)) {
    if (value[key] !== undefined && !fits(value[key]))
      throw invalid(file, key, "the value is wrong", expected);
  }
  const given = value as RawProfile;
  const command = [given.command ?? []].flat();
  const [program, ...args] = command;
  const root = dirname(dirname(file));
  if (program === undefined) throw invalid(file, "command", "it is missing", FIELDS.command.expected);
  const keys = Object.values(given.providers ?? {});
  const shown = given.secrets?.find((secret) => keys.includes(secret));
  if (shown !== undefined)
    throw invalid(
      file,
      "secrets",
      `the executor would see the key ${shown} of a provider`,
      `${shown} either in secrets, or in providers, where only the gateway has it`,
    );
  return {
    name,
    // A name without a slash is looked for on the PATH.
    command: [program.includes("/") ? resolve(root, program) : program, ...args],
    lifecycle: given.lifecycle ?? DEFAULTS.lifecycle,
    config: given.config ?? {},
    secrets: given.secrets ?? [],
    providers: given.providers ?? {},
    conversationTtlMs: (given.conversation_ttl_seconds ?? CONVERSATION_TTL_SECONDS) * 1_000,
    ...defined({ schemaVersion: given.schema_version }),
    ...(given.timeout_seconds === undefined ? {} : { timeoutMs: given.timeout_seconds * 1_000 }),
  };
}

interface RawProfile {
  readonly command?: string | readonly string[];
  readonly lifecycle?: ExecutorProfile["lifecycle"];
  readonly config?: Readonly<Record<string, unknown>>;
  readonly secrets?: readonly string[];
  readonly providers?: ProviderKeys;
  readonly schema_version?: SchemaVersion;
  readonly conversation_ttl_seconds?: number;
  readonly timeout_seconds?: number;
}

interface Field {
  readonly expected: string;
  fits(value: unknown): boolean;
}

const SECONDS_MAX = 365 * 86_400;
const isSeconds = (value: unknown, min: number): boolean =>
  typeof value === "number" && value >= min && value <= SECONDS_MAX;
const oneOf = (...values: readonly string[]): Field => ({
  expected: values.map((value) => JSON.stringify(value)).join(" or "),
  fits: (value) => values.includes(value as string),
});
const texts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((item) => typeof item === "string" && !item.includes("\0"));

const FIELDS = {
  type: oneOf("autonomous", "procedural"),
  command: {
    expected: "a program, or a list of a program and its arguments",
    fits: (value: unknown) =>
      (typeof value === "string" && value !== "" && !value.includes("\0")) ||
      (texts(value) && (value as string[]).length > 0),
  },
  lifecycle: oneOf("one_shot", "persistent"),
  config: { expected: "a JSON object", fits: isFields },
  agents_dir: { expected: "a path", fits: (value: unknown) => typeof value === "string" },
  schema_version: oneOf(...SCHEMA_VERSIONS),
  secrets: {
    expected: "a list of names of environment variables",
    fits: (value: unknown) => texts(value) && (value as string[]).every(isSecretName),
  },
  providers: {
    expected: `names of secrets by ${PROVIDER_NAMES.join(" and ")}, such as { "anthropic": "ANTHROPIC_API_KEY" }`,
    fits: (value: unknown) =>
      isFields(value) &&
      Object.keys(value).every((name) => (PROVIDER_NAMES as readonly string[]).includes(name)) &&
      Object.values(value).every(isSecretName),
  },
  conversation_ttl_seconds: {
    expected: "seconds, from 0 to a year",
    fits: (value: unknown) => isSeconds(value, 0),
  },
  timeout_seconds: { expected: "seconds, from 1 to a year", fits: (value: unknown) => isSeconds(value, 1) },
} as const satisfies Readonly<Record<string, Field>>;

/** @throws HoldfastError unless there is exactly one. */
function programIn(folder: string, name: string): string {
  const programs = namesIn(folder).filter((file) => /^ao-.+-exec$/.test(file));
  const [program] = programs;
  if (program !== undefined && programs.length === 1) return join(folder, program);
  throw new HoldfastError("config_invalid", `the executor ${name} has ${programs.length} programs`, {
    at: folder,
    got: programs.length === 0 ? "no file ao-*-exec" : programs.join(", "),
    expected: "exactly one file ao-*-exec",
    fix:
      programs.length === 0
        ? "put the executor's program there"
        : "leave one, or name a command in a profile",
  });
}

function unknown(root: string, name: string): HoldfastError {
  const known = NAME.test(name) ? listExecutors(root).map((listed) => listed.name) : [];
  return new NotFoundError("not_found", `there is no executor ${JSON.stringify(name)}`, {
    at: join(root, "executors"),
    expected: `one of ${known.join(", ") || "the executors that --executor-list names"}`,
    fix: "see --executor-list, or name a program with --executor-path",
  });
}

function invalid(
  file: string,
  field: string,
  what: string,
  expected: string,
  cause?: unknown,
): HoldfastError {
  return new HoldfastError(
    "config_invalid",
    `the profile cannot be used: ${field === "" ? "" : `${field}: `}${what}`,
    {
      at: file,
      expected,
      ...defined({ cause }),
    },
  );
}

function nameOf(path: string): string {
  const name = basename(path).replace(/^ao-(.+)-exec$/, "$1");
  return NAME.test(name) ? name : "executor";
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
