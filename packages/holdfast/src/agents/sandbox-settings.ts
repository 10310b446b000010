// The sandbox of agents that name none (`findSandbox`), the folder that it works in (`findSandboxRoot`), and
// the user namespace of its commands (`findCommandNamespace`).
//
//   - The agent's own file goes before these settings.
//   - In mode cloud the default is a machine of Daytona, because a runner of a fleet works for several
//     people. A machine without its key refuses agents that name no sandbox, and runs no command of theirs
//     outside of one.
//   - The configuration of a project, which may be cloned, does not choose mode local against the
//     configuration of the user.
//   - SANDBOX_TYPE and SANDBOX_ROOT_DIR are the names that earlier systems gave to the same settings.

import { resolve } from "node:path";
import { defined, didYouMean, HoldfastError, UsageError } from "@holdfast/core";
import { makePrivateFolder } from "@holdfast/system";
import { ownSandboxes } from "@holdfast/workspace";
import type { Io } from "@holdfast/terminal/frame/command";
import { findMode, type Mode } from "@holdfast/place/mode";
import { fromConfigFiles, type Given } from "@holdfast/place/project";
import { readConfig, userConfigFile } from "@holdfast/place/settings/config";

/**
 * The sandbox of agents that name none. The mode chooses the default.
 *
 * @param mode that of a command which takes it as an option.
 */
export function findSandbox(io: Pick<Io, "cwd" | "env">, mode = findSandboxMode(io)): Given<string> {
  const given = givenBy(io.env, "HOLDFAST_SANDBOX", "SANDBOX_TYPE");
  return given ?? { value: DEFAULTS[mode], origin: "default", from: `mode ${mode}` };
}

/** As `findSandbox`. @throws UsageError for a name that no sandbox has. */
export function requireSandbox(io: Pick<Io, "cwd" | "env">): Given<string> {
  const found = findSandbox(io);
  const names = ownSandboxes().flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  if (names.includes(found.value)) return found;
  throw new UsageError(`there is no sandbox "${found.value}"${didYouMean(found.value, names)}`, {
    ...defined({ at: found.from }),
    got: found.value,
    expected: `one of ${names.join(", ")}`,
    fix: "correct the variable, or leave it out for the default",
  });
}

const DEFAULTS: Readonly<Record<Mode, string>> = { local: "filesystem", cloud: "daytona" };

// The configuration of a project, which may be cloned, does not choose mode local.
function findSandboxMode(io: Pick<Io, "cwd" | "env">): Mode {
  const { value, origin } = findMode({ text: () => undefined }, io, false);
  const user = origin === "project_file" ? userConfigFile(io.env) : undefined;
  return user !== undefined && readConfig(user).mode === "cloud" ? "cloud" : value;
}

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

/**
 * Whether each command of the sandbox `filesystem` has a user namespace of its own. @throws UsageError,
 * HoldfastError `policy_denied`
 */
export function findCommandNamespace(io: Pick<Io, "cwd" | "env">): Given<boolean> {
  const given = givenBy(io.env, "HOLDFAST_COMMAND_NAMESPACE");
  if (given !== undefined) return { ...given, value: isOn(given) };
  return fromConfigFiles("commandNamespace", io) ?? { value: true, origin: "default" };
}

function isOn({ value, from }: Given<string>): boolean {
  if (value === "on" || value === "off") return value === "on";
  throw new UsageError(`"${value}" is neither on nor off`, {
    ...defined({ at: from }),
    got: value,
    expected: "on or off",
  });
}

function givenBy(env: Io["env"], ...names: readonly string[]): Given<string> | undefined {
  const from = names.find((name) => (env[name] ?? "") !== "");
  return from === undefined ? undefined : { value: env[from] ?? "", origin: "environment", from };
}
