// `thisMachine`: the agents of this process, with the secrets and settings of its user.

import { dirname } from "node:path";
import { defined } from "@holdfast/core";
import { Machine, type LoadOptions, type MachineOptions } from "@holdfast/machine";
import type { Io } from "@holdfast/terminal/frame/command";
import { unusedMode, type Mode } from "@holdfast/place/mode";
import { userOfMachine } from "@holdfast/place/answer-principals";
import { signInStore } from "@holdfast/machine/sign-in-store";
import type { AgentSearch } from "./agent-places.ts";
import { withLocalModel } from "./local-model.ts";
import { findCommandNamespace, findSandbox, makeSandboxRoot } from "./sandbox-settings.ts";
import { deleteStarted } from "./workspaces/delete-started.ts";

/** That of the command, whose process has one runtime and one environment. */
let ofProcess: Machine | undefined;

/** The machine of the search, or else that of the process. @throws HoldfastError for a setting that does not count. */
export function thisMachine({ machine, ...io }: Pick<AgentSearch, "cwd" | "env" | "machine">): Machine {
  return machine ?? (ofProcess ??= newMachine(io));
}

/**
 * One for each runtime, because a runtime knows tasks by their names, and because the agents keep the
 * environment of their start.
 */
export function newMachine(io: Pick<Io, "cwd" | "env">, stored?: MachineOptions["stored"]): Machine {
  return new Machine({
    stored,
    secrets: ({ trustFile, env }) => signInStore(dirname(trustFile), { env }),
    user: userOfMachine(),
    commandNamespaces: findCommandNamespace(io).value,
    findLocalModel: withLocalModel,
    deleteSession: deleteStarted,
  });
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
  const sandbox = { name, ...defined(origin === "default" ? { defaultOf: from } : { variable: from }) };
  const unused = unusedMode(io);
  return { root: makeSandboxRoot(io), sandbox, notes: unused === undefined ? [] : [unused] };
}
