// What a session's driver needs of the process around it, and how it tells that it is done.

import type {
  AgentRef,
  Arrivals,
  Clock,
  ConversationEntry,
  Hash,
  KernelOptions,
  Limits,
  Prices,
  Session,
  SessionSnapshot,
  TaskExecutor,
  TraceEvent,
  Whereabouts,
} from "@holdfast/core";
import type { Agent } from "../agents/define.ts";
import type { Departure } from "./driver-exit.ts";
import type { Creator, Submit } from "./session-claim.ts";
import type { Immediate, SliceLoop } from "../loop/slice-loop.ts";
import type { Timers } from "../loop/timers.ts";

/** A session that is driven, as the process around it knows it. */
export interface Driven {
  readonly sessionId: string;
  /** Of its claim, once there is one. */
  readonly token: number | undefined;
  /** What it waited for to be settled was: ask again. */
  retryQueued(): void;
}

/** Whose code it is that runs. */
export interface RunningCode {
  readonly sessionId: string;
  /** The kind of task whose handler it is; absent for the agent's own. */
  readonly task?: string;
}

/** What a driver needs of the process around it. */
export interface DriverWorld {
  readonly loop: SliceLoop;
  readonly immediate: Immediate;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly hash: Hash;
  readonly limits: Limits;
  /** Whether mistakes of agents are looked for that cost a little to find. */
  readonly development: boolean;
  readonly executor: TaskExecutor;
  /** Integers in [0, 2^32), for jitter. */
  readonly random: () => number;
  readonly submit: Submit;
  /** Before anything is begun: when the lease could have passed on, every driver is over when this returns. */
  checkLease(): void;
  arrivals(sessionId: string, after: number): Promise<Arrivals>;
  /** Another session as it is stored. */
  find(sessionId: string): Promise<Session | undefined>;
  conversation(
    session: Session,
    leaf: number | null,
    isOver: () => boolean,
  ): Promise<readonly ConversationEntry[]>;
  readonly prices: Prices | undefined;
  describeAgent(name: string): AgentRef | undefined;
  agentNames(): readonly string[];
  /** What runners of this machine are labelled with. */
  readonly machine: string | undefined;
  /** Sessions that this one asked for are stored: run them. */
  spawned(sessionIds: readonly string[]): void;
  /** Something that was held for was settled: ask again for what waits for that. */
  settled(): void;
  /** Call `retry` when something was settled, or after a while. */
  awaitSettlement(driver: Driven): void;
  /** Nothing when nobody listens: then no event is built. */
  readonly trace: ((event: TraceEvent) => void) | undefined;
  /** Its trace context, or that of an attempt of it. */
  traceparent(
    sessionId: string,
    attempt?: { readonly taskId: string; readonly attempt: number },
  ): string | undefined;
  /** It is committed that the session waits. `bytes` is an estimate of the memory it takes. */
  noteWaiting(sessionId: string, bytes: number): void;
  /** Call the agent, or what is done for a task of it, in a context in which their stray rejections can be told from others'. */
  enter<T>(whose: RunningCode, fn: () => T): T;
  /** What is known of the code that runs this very moment. */
  whereabouts(sessionId: string): Whereabouts;
  /** The driver is over. Called once. */
  departed(driver: Driven, departure: Departure): void;
}

export interface DriverOptions {
  readonly agent: Agent;
  readonly snapshot: SessionSnapshot;
  /** Of its claim; of a session that is yet to be created, what creates it with its first batch. */
  readonly claim: number | Creator;
  readonly acceptDrift: boolean;
}

/** What a session's kernels know of the process around them. */
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
  | "machine"
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
    machine: world.machine,
    development: world.development,
    whereabouts: () => world.whereabouts(sessionId),
  };
}
