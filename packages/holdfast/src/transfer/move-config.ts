// `holdfast config export` and `import`: the configuration of a user and a project as one file.

import { resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { UsageError } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { isTrustedContent, trustContent } from "@holdfast/agents";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { lookAtPath, readGiven } from "@holdfast/terminal/frame/given-file";
import { readAll } from "@holdfast/terminal/frame/input";
import { writeNewFile } from "@holdfast/terminal/frame/new-file";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";
import { canAsk } from "@holdfast/terminal/secrets/supplied-secrets";
import { trustFileOf } from "@holdfast/place/project";
import { applyConfig } from "./apply-config.ts";
import { changeLines, configChanges } from "./config-difference.ts";
import {
  configFileText,
  FILE_BYTES_MAX,
  OWN_AGENTS,
  readConfigFile,
  type ConfigFile,
} from "./config-file.ts";
import {
  configPlaces,
  findConfig,
  hashOfFile,
  placesAfter,
  type ConfigPlaces,
  type LeftOut,
} from "./found-config.ts";
import { SecretSuspicion } from "./suspected-secrets.ts";

const TEXT_CHARS = 300;

/** @returns the exit code. */
export async function exportConfig(args: Arguments, io: Io): Promise<number> {
  const output = args.text("output");
  const isToStdout = output === undefined || output === "-";
  if (isToStdout && io.isJson)
    throw refuse("with --json, standard output holds the result and cannot also hold the file", args.usage, {
      fix: "name a file with -o; the file is JSON in any case",
    });
  const { file: found, leftOut } = await findConfig(configPlaces(args, io), args, io);
  const { file, suspected } = withoutSecrets(found, new SecretSuspicion(io.env));
  const missing = [...leftOut, ...suspected];
  const text = configFileText(file);
  if (isToStdout) await io.stream(once(text));
  else {
    const path = resolve(io.cwd, output);
    await writeNewFile(path, once(text));
    io.result({ file: path, leftOut: missing }, path);
  }
  for (const { what, why } of missing) io.note(`${io.notes.symbols.warn} left out: ${what} (${why})`);
  return 0;
}

async function* once(text: string): AsyncGenerator<string> {
  yield text;
}

/** The file without what looks like a secret. */
function withoutSecrets(
  { user, project, permissions, ...head }: ConfigFile,
  suspicion: SecretSuspicion,
): { readonly file: ConfigFile; readonly suspected: readonly LeftOut[] } {
  const suspected: LeftOut[] = [];
  const isSafe = (what: string, value: unknown): boolean => {
    const why = suspicion.why(value);
    if (why !== undefined) suspected.push({ what, why: `looks like a secret: ${why}` });
    return why === undefined;
  };
  const safe = <T extends object>(place: string, values: T): T => {
    const entries = Object.entries(values).filter(([name, value]) =>
      isSafe(`${place}/${name}`, { [name]: value }),
    );
    return Object.fromEntries(entries) as T;
  };
  const { runnerPolicy } = permissions;
  // A policy without one of its fields would allow more.
  const isPolicySafe = runnerPolicy !== undefined && isSafe("permissions/runnerPolicy", runnerPolicy);
  const schedules = project.schedules.filter((schedule) =>
    isSafe(`project/schedules/${schedule.id}`, schedule),
  );
  const files = new Set(schedules.map(({ start }) => start?.file));
  const file: ConfigFile = {
    ...head,
    user: {
      settings: safe("user/settings", user.settings),
      agents: safe("user/agents", user.agents),
    },
    project: {
      settings: safe("project/settings", project.settings),
      agents: safe("project/agents", project.agents),
      schedules,
      code: Object.fromEntries(Object.entries(project.code).filter(([path]) => files.has(path))),
    },
    permissions: isPolicySafe ? { runnerPolicy } : {},
  };
  return { file, suspected };
}

/** @returns the exit code. */
export async function importConfig(name: string, args: Arguments, io: Io): Promise<number> {
  const isDryRun = args.has("dry-run");
  if (isDryRun && args.has("yes"))
    throw refuse("--dry-run and --yes exclude each other", args.usage, { fix: "give one of them" });
  const given = readConfigFile(await textOf(name, io), name === "-" ? "standard input" : name);
  const before = configPlaces(args, io);
  const settled = await findConfig(before, args, io);
  const places = placesAfter(before, settled.file, given);
  const { file: here } = places === before ? settled : await findConfig(places, args, io);
  const changes = configChanges(here, given);
  const result = (applied: boolean): object => ({ changes, applied });
  for (const change of changes) for (const line of changeLines(change, io.notes)) io.note(line);
  for (const warning of warningsOf(given, places))
    io.note(io.notes.paint.yellow(`${io.notes.symbols.warn} ${plainLine(warning, TEXT_CHARS)}`));
  if (changes.length === 0) io.note("everything in the file is here already; nothing is changed");
  if (changes.length === 0 || isDryRun) {
    io.result(result(false), "");
    return 0;
  }
  if (!args.has("yes") && !(await isWanted(name, changes.length, io))) {
    io.note("nothing was changed");
    io.result(result(false), "");
    return 0;
  }
  const [trustFile, project, settings] = [trustFileOf(io), places.project, places.projectSettings];
  const wasTrusted = isTrustedContent(trustFile, project, settings);
  await applyConfig(here, given, changes, places);
  // The person has agreed to these changes, and to nothing that was there before.
  if (wasTrusted) trustContent(trustFile, project, settings);
  io.result(result(true), "");
  io.note(
    `${io.notes.symbols.done} ${count(changes.length, "change")} made; what only this machine has stays`,
  );
  return 0;
}

async function textOf(name: string, io: Io): Promise<string> {
  if (name === "-") return readAll(io.stdin);
  const path = resolve(io.cwd, name);
  if (lookAtPath(path) === "ENOENT")
    throw new UsageError(`there is no file ${name}`, {
      code: "file_not_found",
      at: path,
      fix: "check the path; it is taken from the current folder",
    });
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readGiven(path, FILE_BYTES_MAX));
  } catch (error) {
    throw new UsageError(`the file cannot be read: ${(error as Error).message}`, {
      code: "config_invalid",
      at: path,
      expected: `a JSON file in UTF-8 of at most ${FILE_BYTES_MAX} bytes`,
      fix: "take a file that `holdfast config export` has written",
    });
  }
}

/** @throws UsageError when nobody can be asked. */
async function isWanted(name: string, changes: number, io: Io): Promise<boolean> {
  if (name === "-" || !canAsk(io))
    throw new UsageError(`the import would make ${count(changes, "change")}, and nobody can be asked here`, {
      at: "--yes",
      expected: "--yes, or a terminal to ask on",
      fix: "look at the changes (--dry-run), then give --yes; nothing was changed",
    });
  const asking = createInterface({ input: io.stdin, terminal: false });
  try {
    io.write(`Make ${count(changes, "change")}? [y/N] `);
    for await (const line of asking) return /^y(es)?$/i.test(line.trim());
    return false;
  } finally {
    asking.close();
  }
}

/** Names code that is not as it was where the file was written. */
function warningsOf(
  { project: { agents, code, schedules } }: ConfigFile,
  places: ConfigPlaces,
): readonly string[] {
  const brought = new Set(Object.keys(agents).map((path) => `${OWN_AGENTS}/${path}`));
  return Object.entries(code).flatMap(([path, hash]) => {
    if (brought.has(path)) return [];
    const users = schedules.filter(({ start }) => start?.file === path).map(({ id }) => id);
    const now = hashOfFile(resolve(places.project, path));
    if (now === hash || users.length === 0) return [];
    const what = now === undefined ? "is not here" : "is another version here";
    return [`${path}, the agent of schedule ${users.join(", ")}, ${what}`];
  });
}
