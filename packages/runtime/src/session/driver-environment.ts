// `DriverWorld`: the interface of the process for the driver of a session. `Driven` is the interface of the
// driver for the process.

import type {
  AgentRef,
  Arrivals,
  Hash,
  KernelOptions,
  Limits,
  Session,
  SessionSnapshot,
  Whereabouts,
} from "@holdfast/core";
import type { Agent } from "../agents/define.ts";
import type { Departure } from "./session-outcome.ts";
import type { Creator, Submit } from "./session-claim.ts";
import type { Immediate, SliceLoop } from "../loop/slice-loop.ts";
import type { TaskWorld } from "../tasks/task-session.ts";
import type { Timers } from "../loop/timers.ts";

/** The driver of a session, as the process around it knows it. */
export interface Driven {
  readonly sessionId: string;
  /** The token of its claim, once there is one. */
  readonly token: number | undefined;
  /** A hold was settled: ask again for the queued attempts. */
  retryQueued(): void;
}

/** The interface of the process for a driver. */
export interface DriverWorld extends TaskWorld {
  readonly loop: SliceLoop;
  readonly immediate: Immediate;
  readonly timers: Timers;
  readonly hash: Hash;
  readonly limits: Limits;
  /** Whether to check agents for mistakes that cost a little to find. */
  readonly development: boolean;
  readonly submit: Submit;
  /** Call before starting work. If the lease could have ended, every driver is over when this returns. */
  checkLease(): void;
  arrivals(sessionId: string, after: number): Promise<Arrivals>;
  /** Another session as it is stored. */
  find(sessionId: string): Promise<Session | undefined>;
  describeAgent(name: string): AgentRef | undefined;
  agentNames(): readonly string[];
  acceptInput(agent: string, version: string | undefined, input: unknown): unknown;
  /** The machine label of this machine's runners. */
  readonly machine: string | undefined;
  /** Run children of this session that are now stored. */
  spawned(sessionIds: readonly string[]): void;
  /** A hold was settled, so the budgets of these sessions may have room. */
  settled(payers: readonly string[]): void;
  /** A driver asked for tasks that these sessions pay for. If some wait, `retryQueued` is called when there may be room. */
  asked(driver: Driven, payers: readonly string[], waits: boolean): void;
  /** It is committed that the session waits. `bytes` is an estimate of the memory it takes. */
  noteWaiting(sessionId: string, bytes: number): void;
  /** Whether a session is released once its checkpoint is committed. */
  leavesAtCheckpoint(): boolean;
  /** Where the code that runs this very moment belongs. */
  whereabouts(sessionId: string): Whereabouts;
  /** The driver is over. Called once. */
  departed(driver: Driven, departure: Departure): void;
}

export interface DriverOptions {
  readonly agent: Agent;
  readonly snapshot: SessionSnapshot;
  /** The token of its claim, or the function that creates a new session with its first batch. */
  readonly claim: number | Creator;
  readonly acceptDrift: boolean;
  /** Whether a process with earlier code takes the session back if the agent diverges from its journal. */
  readonly mayReturn?: boolean | undefined;
}

/** The kernel options that come from the process. */
export function kernelWorld(
  world: DriverWorld,
  sessionId: string,
): Pick<
  KernelOptions,
  | "sessionId"
  | "hash"
  | "limits"
  | "describeTask"
  | "taskKinds"
  | "describeAgent"
  | "agentNames"
  | "acceptInput"
  | "machine"
  | "bindClosure"
  | "development"
  | "whereabouts"
> {
  return {
    sessionId,
    hash: world.hash,
    limits: world.limits,
    describeTask: (kind) => world.executor.describe(kind),
    taskKinds: () => world.executor.kinds(),
    describeAgent: (name) => world.describeAgent(name),
    agentNames: () => world.agentNames(),
    acceptInput: (...asked) => world.acceptInput(...asked),
    machine: world.machine,
    bindClosure: (kind, closure) => world.bound({ sessionId, task: kind }, closure),
    development: world.development,
    whereabouts: () => world.whereabouts(sessionId),
  };
}
