// The sandbox of agents that name none (`findSandbox`), and the folder that it works in (`findSandboxRoot`).
//
//   sandbox-settings-1. The agent's own file goes before these settings.
//   sandbox-settings-2. SANDBOX_TYPE and SANDBOX_ROOT_DIR are the names that earlier systems gave to the same settings.

import { resolve } from "node:path";
import { HoldfastError } from "@holdfast/core";
import { makePrivateFolder } from "@holdfast/runtime/internal";
import type { Arguments, Io } from "../frame/command.ts";
import { findMode } from "../place/mode.ts";
import type { Given } from "../place/project.ts";

/** The sandbox of agents that name none. The mode chooses the default. */
export function findSandbox(args: Arguments, io: Pick<Io, "cwd" | "env">): Given<string> {
  const given = givenSandbox(io);
  if (given !== undefined) return given;
  // Each value of the mode chooses its default here.
  return { value: DEFAULT_SANDBOX, origin: "default", from: `mode ${findMode(args, io, false).value}` };
}

/** The sandbox that the environment names, if it names one. */
export function givenSandbox({ env }: Pick<Io, "env">): Given<string> | undefined {
  return givenBy(env, "HOLDFAST_SANDBOX", "SANDBOX_TYPE");
}

export const DEFAULT_SANDBOX = "filesystem";

/** The folder that agents without code work in: the current folder, unless the environment names another. */
export function findSandboxRoot({ cwd, env }: Pick<Io, "cwd" | "env">): Given<string> {
  const given = givenBy(env, "SANDBOX_ROOT_DIR");
  return given === undefined
    ? { value: cwd, origin: "default" }
    : { ...given, value: resolve(cwd, given.value) };
}

/** Makes the folder when it is not there. @throws HoldfastError `config_invalid` */
export function makeSandboxRoot(io: Pick<Io, "cwd" | "env">): string {
  const { value, origin } = findSandboxRoot(io);
  if (origin === "default") return value;
  try {
    makePrivateFolder(value);
    return value;
  } catch (error) {
    throw new HoldfastError(
      "config_invalid",
      `the folder for sandboxes cannot be made: ${(error as Error).message}`,
      {
        at: "SANDBOX_ROOT_DIR",
        got: value,
        expected: "the path of a folder",
        fix: "name a folder that you may write to",
      },
    );
  }
}

function givenBy(env: Io["env"], ...names: readonly string[]): Given<string> | undefined {
  const from = names.find((name) => (env[name] ?? "") !== "");
  return from === undefined ? undefined : { value: env[from] ?? "", origin: "environment", from };
}
