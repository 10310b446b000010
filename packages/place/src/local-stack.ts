// The local stack of this user: where its files are, and what its supervisor wrote about it (`StackState`).
//
//   local-stack-1. The supervisor replaces the state file after each change. The file outlives a killed
//       supervisor, so a reader believes it only while that very process runs.
//   - All files are in one folder that only this user may read.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isRunning, type ProcessIdentity } from "@holdfast/system/processes";
import type { Io } from "@holdfast/terminal/frame/command";
import { dataFolder, requireFileVersion } from "@holdfast/system";

export const COMPONENTS = ["supervisor", "coordinator", "runner"] as const;
export type Component = (typeof COMPONENTS)[number];

/** `failed`: the supervisor gave up. */
export type StackStatus = "starting" | "running" | "stopping" | "stopped" | "failed";

export interface StackState {
  readonly version: 1;
  readonly status: StackStatus;
  readonly supervisor: ProcessIdentity;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Absent until the coordinator listens. */
  readonly url?: string;
  /** The folder that agents work in. */
  readonly project: string;
  /** The texts of their sources, as sessions store them: absolute paths of files, and coding agents. */
  readonly agents: readonly string[];
  /** The name or the absolute path of the executor that the runner offers. */
  readonly executor?: string;
  /** The file of the runner's policy, when `start` named one. */
  readonly policy?: string;
  /** How long the runner's steps may take to end at a stop. */
  readonly graceMs: number;
  /** The names of the agents that the runner offers. */
  readonly offers: readonly string[];
  readonly processes: readonly ProcessState[];
  /** How often `holdfast local restart` was done. */
  readonly renewals: number;
  /** Why the newest version of the agents did not load. The version before still runs. */
  readonly problem?: string;
  /** Why the supervisor gave up. */
  readonly failure?: string;
}

export interface ProcessState {
  readonly component: "coordinator" | "runner";
  /** `draining`: a runner that another one replaces, until its sessions have ended. */
  readonly status: "starting" | "ready" | "restarting" | "draining";
  readonly pid?: number;
  /** How often it was restarted after an end that nobody asked for. */
  readonly restarts: number;
  /** How it ended the last time. */
  readonly lastEnd?: string;
}

export interface StackPaths {
  readonly folder: string;
  readonly state: string;
  readonly lock: string;
  readonly log: string;
}

export function stackPaths(io: Pick<Io, "env" | "cwd">): StackPaths {
  const folder = join(dataFolder(io), "local");
  return {
    folder,
    state: join(folder, "stack.json"),
    lock: join(folder, "stack.lock"),
    log: join(folder, "stack.log"),
  };
}

/**
 * The state that the last supervisor wrote; `undefined` when there was none. A file that is cut short counts as
 * none.
 *
 * @throws HoldfastError `version_unsupported`
 */
export function readStackState({ state }: Pick<StackPaths, "state">): StackState | undefined {
  let read: Partial<StackState> | null;
  try {
    read = JSON.parse(readFileSync(state, "utf8")) as Partial<StackState> | null;
  } catch {
    return undefined;
  }
  requireFileVersion(read, "the local stack", state);
  return read?.version === undefined ? undefined : (read as StackState);
}

/** The stack that runs now, if there is one (local-stack-1). */
export function findRunningStack(io: Pick<Io, "env" | "cwd">): StackState | undefined {
  const state = readStackState(stackPaths(io));
  return state !== undefined && isRunning(state.supervisor) ? state : undefined;
}
