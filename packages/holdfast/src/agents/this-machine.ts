// `thisMachine`: the agents of this process, with the secrets and settings of its user.

import { dirname } from "node:path";
import { Machine, type LoadOptions } from "@holdfast/machine";
import type { Io } from "../frame/command.ts";
import { unusedMode, type Mode } from "../place/mode.ts";
import { userOfMachine } from "../principals/answer-principals.ts";
import { signInStore } from "../secrets/sign-in-store.ts";
import { withLocalModel } from "./local-model.ts";
import { findCommandNamespace, findSandbox, makeSandboxRoot } from "./sandbox-settings.ts";
import { deleteStarted } from "./workspaces/delete-started.ts";

let machine: Machine | undefined;

/** One for the process, because its tasks are known by their names. @throws HoldfastError for a setting that does not count. */
export function thisMachine(io: Pick<Io, "cwd" | "env">): Machine {
  machine ??= new Machine({
    secrets: ({ trustFile, env }) => signInStore(dirname(trustFile), { env }),
    user: userOfMachine(),
    commandNamespaces: findCommandNamespace(io).value,
    findLocalModel: withLocalModel,
    deleteSession: deleteStarted,
  });
  return machine;
}

/**
 * The settings of the user for agents whose files say nothing.
 *
 * @param mode that of a command which takes it as an option.
 * @returns with notes on settings that do not count. @throws HoldfastError `config_invalid`
 */
export function userSettings(
  io: Pick<Io, "cwd" | "env">,
  mode?: Mode,
): Pick<LoadOptions, "root" | "sandbox"> & { readonly notes: readonly string[] } {
  const { value: name, origin, from } = findSandbox(io, mode);
  const sandbox = { name, ...(origin === "default" && from !== undefined ? { defaultOf: from } : {}) };
  const unused = unusedMode(io);
  return { root: makeSandboxRoot(io), sandbox, notes: unused === undefined ? [] : [unused] };
}
