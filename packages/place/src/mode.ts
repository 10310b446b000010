// The mode: `local` for one machine, `cloud` for a fleet (`findMode`). It chooses defaults and nothing else.
//
//   - HOLDFAST_MODE goes before MODE. A bare MODE of `local` or `cloud` counts for every command. Build
//     machines export the name for purposes of their own, so another value is an error for the commands of a
//     fleet alone. Other commands note it.
//   - ENV names a stage for people (`production`). Earlier systems also said the mode with it: `ENV=local`
//     counts for the commands of a fleet while nothing else says a mode, with a warning.

import { didYouMean, HoldfastError, UsageError } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { fromConfigFiles, type Given } from "./project.ts";

const MODES = ["local", "cloud"] as const;
export type Mode = (typeof MODES)[number];

/**
 * @param isOfFleet whether another value of a bare MODE is an error. @throws UsageError, or HoldfastError
 *   `config_invalid` for a file.
 */
export function findMode(
  args: Pick<Arguments, "text">,
  io: Pick<Io, "cwd" | "env">,
  isOfFleet: boolean,
): Given<Mode> {
  const flag = args.text("mode");
  if (flag !== undefined) return { value: checked(flag, "--mode"), origin: "flag", from: "--mode" };
  const variable = fromVariables(io, isOfFleet);
  if (variable !== undefined) return variable;
  const file = fromConfigFiles("mode", io);
  if (file !== undefined) {
    const { value, ...given } = file;
    return { value: checkedInFile(value, given.from ?? ""), ...given };
  }
  if (isOfFleet && io.env["ENV"] === "local") return { value: "local", origin: "environment", from: "ENV" };
  return { value: "local", origin: "default" };
}

/**
 * Refuses an unknown mode in a variable, for a command of a fleet that needs no mode. No file is read: a
 * stack must be stopped and shown also while its configuration is wrong.
 */
export function checkModeVariables(io: Pick<Io, "env">): void {
  fromVariables(io, true);
}

function fromVariables({ env }: Pick<Io, "env">, isOfFleet: boolean): Given<Mode> | undefined {
  for (const from of ["HOLDFAST_MODE", "MODE"]) {
    const value = env[from] ?? "";
    if (value === "" || (from === "MODE" && !isOfFleet && !isMode(value))) continue;
    return { value: checked(value, from), origin: "environment", from };
  }
  return undefined;
}

/** A note for a person on a MODE that does not count. */
export function unusedMode({ env }: Pick<Io, "env">): string | undefined {
  const { HOLDFAST_MODE: own = "", MODE: value = "" } = env;
  if (own !== "" || value === "" || isMode(value)) return undefined;
  return `MODE is neither local nor cloud, and does not count: set HOLDFAST_MODE, which goes before it`;
}

function isMode(text: string): boolean {
  return MODES.some((mode) => mode === text);
}

/** The mode of a command of a fleet. A note says when only ENV chose it. */
export function findFleetMode(args: Arguments, io: Io): Mode {
  const { value, from } = findMode(args, io, true);
  if (from === "ENV")
    io.note(
      `${io.notes.symbols.warn} ENV=local chooses the mode only for now: set HOLDFAST_MODE=local, and keep ENV for a stage`,
    );
  return value;
}

/** The stage of ENV, if it looks like one: for a POSIX shell the variable names a file. */
export function findStage({ env }: Pick<Io, "env">): string | undefined {
  const stage = env["HOLDFAST_ENV"] ?? env["ENV"];
  return stage !== undefined && /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/.test(stage) ? stage : undefined;
}

function checked(text: string, at: string): Mode {
  const mode = MODES.find((candidate) => candidate === text);
  if (mode !== undefined) return mode;
  throw new UsageError(`"${text}" is no mode${didYouMean(text, MODES)}`, {
    at,
    got: text,
    expected: MODES.join(" or "),
    fix: at === "MODE" ? "set HOLDFAST_MODE, which goes before MODE, to local or cloud" : "correct the value",
  });
}

function checkedInFile(text: string, file: string): Mode {
  try {
    return checked(text, file);
  } catch {
    throw new HoldfastError("config_invalid", `"${text}" is no mode${didYouMean(text, MODES)}`, {
      at: `${file}#/mode`,
      expected: MODES.join(" or "),
      fix: "correct the file",
    });
  }
}
