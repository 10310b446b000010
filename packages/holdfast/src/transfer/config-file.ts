// `ConfigFile`: the configuration of a user and a project as one file, which moves between machines.
//
//   - The same configuration is the same bytes. The file has no times, and no path of a machine that Holdfast
//     added.
//   - A file is checked whole before anything is looked at or changed.
//   - A path in a file stays below its folder, whatever the file says.
//   - Another version of the format is refused by its number.

import { createHash } from "node:crypto";
import {
  type Budget,
  defined,
  HoldfastError,
  isSessionId,
  jsonSyntaxProblem,
  MIB,
  refuseSignalName,
} from "@holdfast/core";
import { checkRunnerPolicy, type RunnerPolicy } from "@holdfast/runner";
import { PROJECT_FILES, type ProjectPath } from "@holdfast/agents";
import { readCron } from "@holdfast/runtime";
import { requireFileVersion } from "@holdfast/system";
import { z } from "zod";
import { checkConfig, type Config } from "@holdfast/place/settings/config";

export const FORMAT = "holdfast-config";
export const VERSION = 1;
/** More than this is no configuration. */
export const FILE_BYTES_MAX = 16 * MIB;
const TEXT_CHARS_MAX = MIB;
const ITEMS_MAX = 10_000;
/** As storage wants it, because started sessions have longer ids. */
const SCHEDULE_ID_CHARS_MAX = 64;

/** A schedule without its times, which the other machine works out. */
export interface MovedSchedule {
  readonly id: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly start?: {
    readonly agent: string;
    readonly version: string;
    /** The file of the agent, from the folder of the project. */
    readonly file?: string;
    /** The coding agent, by its name, in the place of a file. */
    readonly program?: string;
    readonly input?: unknown;
    readonly budget?: Budget;
    readonly demands?: Readonly<Record<string, string>>;
    readonly priority?: number;
  };
  readonly signal?: { readonly sessionId: string; readonly name: string; readonly payload?: unknown };
}

export interface ConfigFile {
  readonly format: typeof FORMAT;
  readonly version: typeof VERSION;
  readonly user: {
    readonly settings: Config;
    /** Agent files of the home folder, by their paths below `.holdfast/agents`. */
    readonly agents: Readonly<Record<string, string>>;
  };
  readonly project: {
    readonly settings: Config;
    readonly agents: Readonly<Record<string, string>>;
    readonly schedules: readonly MovedSchedule[];
    /** SHA-256 of the files that schedules name. The files themselves belong to the project's repository. */
    readonly code: Readonly<Record<string, string>>;
  };
  /** A kind of permission that a later version adds is a field here. */
  readonly permissions: { readonly runnerPolicy?: RunnerPolicy };
}

/** A path below a folder: no step is hidden, leads upward or is empty. */
const PATH = /^[\p{L}\p{N}_][\p{L}\p{N} ._+@-]*(\/[\p{L}\p{N}_][\p{L}\p{N} ._+@-]*)*$/u;
const path = z.string().max(500).regex(PATH, "a path below its folder, with / between its steps");
/** The folder of a project whose agent files are a part of the file. */
export const OWN_AGENTS: ProjectPath = ".holdfast/agents";
const AGENT_FOLDERS = Object.keys(PROJECT_FILES).filter((one) => /^\..+\/agents?$/.test(one));
/** The file of a schedule's agent. Folders of agent files may be hidden. */
const agentPath = z
  .string()
  .max(500)
  .refine(
    (text) => PATH.test(belowAgentFolder(text) ?? text),
    "a path below the project, with / between its steps",
  );
const agents = z
  .record(path.endsWith(".md", "a file .md"), z.string().max(TEXT_CHARS_MAX))
  .refine((files) => Object.keys(files).length <= ITEMS_MAX, `at most ${ITEMS_MAX} files`);
const texts = z.record(z.string(), z.string());
const schedule = z
  .strictObject({
    id: z
      .string()
      .max(SCHEDULE_ID_CHARS_MAX)
      .refine(isSessionId, "letters, digits, dots, dashes and underscores"),
    cron: z.string().max(500),
    timeZone: z.string().max(100),
    start: z
      .strictObject({
        agent: z.string().min(1).max(200),
        version: z.string().max(200),
        file: agentPath.optional(),
        program: z
          .string()
          .regex(/^[\w.:-]{1,200}$/, "the name of a coding agent")
          .optional(),
        input: z.unknown().optional(),
        budget: z.looseObject({}).optional(),
        demands: texts.optional(),
        priority: z.number().optional(),
      })
      .refine(({ file, program }) => file === undefined || program === undefined, "either file or program")
      .optional(),
    signal: z
      .strictObject({
        sessionId: z.string().refine(isSessionId, "the id of a session"),
        name: z.string().min(1),
        payload: z.unknown().optional(),
      })
      .optional(),
  })
  .refine(({ start, signal }) => (start === undefined) !== (signal === undefined), "either start or signal");
const settings = z.looseObject({});
const CONFIG_FILE = z.strictObject({
  format: z.literal(FORMAT),
  version: z.literal(VERSION),
  user: z.strictObject({ settings, agents }),
  project: z.strictObject({
    settings,
    agents,
    schedules: z.array(schedule).max(ITEMS_MAX),
    code: z.record(agentPath, z.string().regex(/^[0-9a-f]{64}$/, "a SHA-256 in hex")),
  }),
  permissions: z.strictObject({ runnerPolicy: z.looseObject({}).optional() }),
});

/** The file as text. */
export function configFileText(file: ConfigFile): string {
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** @param at names the file in errors. @throws HoldfastError `config_invalid` or `version_unsupported`. */
export function readConfigFile(text: string, at: string): ConfigFile {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    throw invalid(at, `the file is not JSON: ${jsonSyntaxProblem(text)}`);
  }
  refuseOther(value, at);
  const checked = CONFIG_FILE.safeParse(value);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const pointer = [...(issue?.path ?? []), ...(issue?.code === "unrecognized_keys" ? issue.keys : [])];
    const place = pointer.map((step) => String(step).slice(0, 200)).join("/");
    throw invalid(`${at}#/${place}`, "a field of the file is missing, unknown or wrong", issue?.message);
  }
  const file = checked.data as unknown as ConfigFile;
  checkConfig(file.user.settings, `${at}#/user/settings`);
  checkConfig(file.project.settings, `${at}#/project/settings`);
  if (file.permissions.runnerPolicy !== undefined)
    checkRunnerPolicy(file.permissions.runnerPolicy, `${at}#/permissions/runnerPolicy`);
  checkSchedules(file.project.schedules, at);
  return file;
}

/** Refuses another version of the format, and files of other programs. */
function refuseOther(value: unknown, at: string): void {
  const { format } = (value ?? {}) as { readonly format?: unknown };
  if (format !== FORMAT) throw invalid(at, "the file is no exported configuration", `"format": "${FORMAT}"`);
  requireFileVersion(value, "an exported configuration", at);
}

/** Each schedule as `schedule add` would check it. @throws UsageError that names it. */
function checkSchedules(schedules: readonly MovedSchedule[], at: string): void {
  const ids = new Set<string>();
  for (const { id, cron, timeZone, signal } of schedules) {
    try {
      readCron(cron, timeZone);
      if (signal !== undefined) refuseSignalName(signal.name);
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      throw invalid(`${at}#/project/schedules`, `schedule ${id}: ${error.message}`, error.expected);
    }
    if (ids.has(id)) throw invalid(`${at}#/project/schedules`, `the schedule ${id} is there twice`);
    ids.add(id);
  }
}

export function hashOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Whether a path may be in a file. */
export function isMovablePath(given: string): boolean {
  return path.safeParse(given).success;
}

/** Whether the path of a schedule's agent may be in a file. */
export function isMovableAgent(given: string): boolean {
  return agentPath.safeParse(given).success;
}

function belowAgentFolder(text: string): string | undefined {
  const folder = AGENT_FOLDERS.find((one) => text.startsWith(`${one}/`));
  return folder === undefined ? undefined : text.slice(folder.length + 1);
}

/** An object with its fields in the order of their names. */
export function sorted<T extends object>(value: T): T {
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries) as T;
}

function invalid(at: string, message: string, expected?: string): HoldfastError {
  return new HoldfastError("config_invalid", message, {
    at,
    ...defined({ expected }),
    fix: "take a file that `holdfast config export` has written; nothing was changed",
  });
}
