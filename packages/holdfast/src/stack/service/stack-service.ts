// `holdfast local enable` and `disable`: the local stack as a service of this user.
//
//   - The options are checked as `local start` checks them, before anything is written.
//   - As `local start`, `enable` returns when the stack is ready.

import { ConflictError } from "@holdfast/core";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { findRunningStack, stackPaths, type StackState } from "@holdfast/place/local-stack";
import { reportStack } from "../stack-text.ts";
import { planOf, startWords } from "../start-stack.ts";
import type { ServiceName } from "./service-unit.ts";
import { disableService, enableService, isService, whenStopped } from "./user-service.ts";

const STACK: ServiceName = {
  name: "holdfast-local",
  is: "the local stack",
  origin: "Written by `holdfast local enable`, and removed by `holdfast local disable`.",
  otherwise: "start the stack by `holdfast local start`",
};

/** @returns the exit code. */
export async function enableStack(args: Arguments, io: Io): Promise<number> {
  const { graceMs } = await planOf(args, io);
  if (findRunningStack(io) !== undefined && !isService(STACK, io))
    throw new ConflictError("conflict", "the local stack runs already, and was not started by a service", {
      fix: "run `holdfast local stop`, and then the same command again",
    });
  const words = ["local", "start", "--foreground", ...startWords(args)];
  // A restart would fail again: wrong words, settings, files, or another stack that runs.
  const finalExits = "2 3 4 6 11 12";
  const former = findRunningStack(io)?.supervisor.pid; // A service that ends and starts again.
  const runs = (): StackState | undefined => {
    const state = findRunningStack(io);
    return state?.status === "running" && state.supervisor.pid !== former ? state : undefined;
  };
  const isReady = () => runs() !== undefined;
  const exitCode = await enableService({ ...STACK, words, graceMs, finalExits, isReady }, io);
  const state = runs();
  if (state !== undefined && !io.isJson) reportStack(state, stackPaths(io), io);
  return exitCode;
}

/** @returns the exit code. */
export async function disableStack(io: Io): Promise<number> {
  return disableService(STACK, io);
}

/** How the local stack starts again after a stop; `undefined` when it is no service. */
export function whenStackStopped(io: Io): string | undefined {
  return whenStopped(STACK, io);
}
