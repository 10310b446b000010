// Finds the program of an external agent on the PATH (`locateProgram`) and asks for its version
// (`findProgram`).

import { resolve } from "node:path";
import { HoldfastError, UnavailableError } from "@holdfast/core";
import { describeProcessEnd } from "@holdfast/system";
import { type ProcessReport } from "@holdfast/system/processes";

import { executableAt, programOnPath } from "@holdfast/workspace";
import type { ChosenProgram, OwnFolders } from "../external-agent-protocol.ts";
import type { ProgramAnswers } from "./program-answers.ts";

export interface WantedProgram {
  /** The name of the file. */
  readonly name: string;
  /** The name for people. */
  readonly title: string;
  /** Without it the program is not asked for its version. */
  readonly versionMin?: string;
  /** The version, where it is known without asking. */
  readonly version?: string;
  /** Refuses the program by an error. */
  readonly check?: () => Promise<void>;
  /** The command that installs it. */
  readonly install: string;
  /** The correction by a person who has chosen the program. */
  readonly fix?: string;
}

/** The fields of a profile for an agent whose program a user may choose. */
export const CHOSEN_FIELDS = ["program", "variables", "keys", "folders"] as const;

/** The program as a profile chooses it. */
export function chosenProgram(wanted: WantedProgram, { program }: ChosenProgram = {}): WantedProgram {
  if (program === undefined) return wanted;
  return { ...wanted, name: program, fix: "correct `program` in the profile" };
}

/** The variables that a profile adds to those of the program. */
export function chosenVariables({ variables = [], keys = [] }: ChosenProgram = {}): readonly string[] {
  return [...variables, ...keys];
}

/**
 * The places of a program in a sandbox, with those of a profile.
 *
 * @param own `undefined` where the adapter does not know them. The profile then names all of them.
 */
export function chosenFolders(
  own: OwnFolders | undefined,
  { folders }: ChosenProgram = {},
): OwnFolders | undefined {
  if (own === undefined || folders === undefined) return own ?? folders;
  return { written: [...own.written, ...folders.written], read: [...own.read, ...folders.read] };
}

const ASKED_MAX = 3;

/**
 * The absolute path of the program. Runs nothing.
 *
 * @throws HoldfastError `program_missing`
 */
export function locateProgram(
  { name, title, versionMin, install, fix = `install it: ${install}` }: WantedProgram,
  env: Readonly<Record<string, string>>,
  cwd: string,
): string {
  const program = name.includes("/")
    ? executableAt(resolve(cwd, name))
    : programOnPath(name, env["PATH"] ?? "");
  if (program !== undefined) return program;
  const place = name.includes("/") ? "" : " on the PATH";
  throw new HoldfastError("program_missing", `there is no program "${name}" (${title})${place}`, {
    expected: versionMin === undefined ? "an executable file" : `${title} ${versionMin} or later`,
    fix,
  });
}

/**
 * @throws HoldfastError `program_missing`, `version_unsupported`, and the errors of the check.
 * @throws UnavailableError for a program that was ended before it answered.
 */
export async function findProgram(
  wanted: WantedProgram,
  answers: ProgramAnswers,
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<{ readonly program: string; readonly version: string }> {
  const { versionMin, version: known = "unknown" } = wanted;
  await wanted.check?.();
  const program = locateProgram(wanted, env, cwd);
  if (versionMin === undefined) return { program, version: known };
  const { end, stdout } = await askVersion(program, answers, env, cwd);
  const version = /\d+\.\d+\.\d+/.exec(stdout)?.[0];
  if (end.type === "exit" && end.exitCode === 0 && version !== undefined && !isOlder(version, versionMin))
    return { program, version };
  if (end.type !== "exit" && end.type !== "not_started")
    throw new UnavailableError(
      "unavailable",
      `the program ${program} was ended before it named its version`,
      {
        at: program,
        got: describeProcessEnd(end),
        expected: `version ${versionMin} or later`,
        fix: "start the program in a terminal, and begin again once it answers there",
      },
    );
  throw new HoldfastError("version_unsupported", `the program ${program} cannot be used as ${wanted.title}`, {
    at: program,
    got: version === undefined ? `no version (${describeProcessEnd(end)})` : `version ${version}`,
    expected: `version ${versionMin} or later`,
    fix: wanted.fix ?? `install a newer one: ${wanted.install}`,
  });
}

/** Another process may end the program before it answers, which says nothing about it. It is then asked again. */
async function askVersion(
  program: string,
  answers: ProgramAnswers,
  env: Readonly<Record<string, string>>,
  cwd: string,
): Promise<ProcessReport> {
  for (let asked = 1; ; asked++) {
    const ended = await answers.of(program, "--version", { env, cwd });
    if (ended.end.type !== "signal" || asked === ASKED_MAX) return ended;
  }
}

function isOlder(version: string, min: string): boolean {
  const [a, b] = [version, min].map((text) => text.split(".").map(Number));
  for (const [at, part] of (b ?? []).entries()) {
    const own = a?.[at] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}
