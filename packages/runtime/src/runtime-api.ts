// What a runtime offers to those who start sessions and talk to them: options in, handles and receipts out.

import type {
  AgentStorage,
  AgentTracer,
  Budget,
  Clock,
  Limits,
  Prices,
  Random,
  Session,
  SessionStatus,
  SignalReceipt,
  SignalSource,
  TaskExecutor,
} from "@holdfast/core";
import type { Agent, TaskDefinition } from "./define.ts";
import type { Immediate } from "./slice-loop.ts";
import type { Settled } from "./settled.ts";
import type { Watchdog } from "./watchdog.ts";

export interface RuntimeOptions {
  readonly storage: AgentStorage;
  /** Agents whose sessions this process may run, besides those given to `start`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of agents of any input and output has no other type.
  readonly agents?: readonly Agent<any, any>[];
  /** Tasks for all agents, or an executor of your own. Agents bring their own tasks along. */
  readonly tasks?: readonly TaskDefinition[] | TaskExecutor;
  readonly signals?: readonly SignalSource[];
  readonly tracer?: AgentTracer;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Turns of the event loop, for simulation: `setImmediate` otherwise. */
  readonly immediate?: Immediate;
  readonly limits?: Partial<Limits>;
  /** What models cost, for budgets and traces. */
  readonly prices?: Prices;
  /** Attempts of tasks running at once. */
  readonly concurrency?: number;
  /** How long a session that only waits is kept in memory. */
  readonly warmMs?: number;
  /** Run sessions of known agents whenever something they wait for arrives or is due, not only those started here. */
  readonly adopt?: boolean;
  /** Names this process in claims. */
  readonly owner?: string;
  /** Ends the process when an agent keeps it busy; made by whoever owns the process. */
  readonly watchdog?: Watchdog;
  /** Report what an agent must not do between two deliveries, and remember the lines of its waits. On unless NODE_ENV is `production`. */
  readonly development?: boolean;
}

export interface StartOptions {
  /** Your own id: starting the same id again finds the session instead of making another. */
  readonly sessionId?: string;
  /** Where the agent's code came from, to be found again. */
  readonly file?: string;
  /** What it and those below it may spend. */
  readonly budget?: Budget;
  /** How much of it survives its process: everything by default. */
  readonly persistence?: "full" | "minimal";
  /** It is cancelled this long after it was started. */
  readonly timeoutMs?: number;
  /** W3C trace context (`traceparent`) to be part of: the session's spans hang under it, in every process. */
  readonly traceparent?: string;
}

export interface ForkOptions {
  /**
   * Where it leaves the other one: how many records of the journal it begins with, or the `seq` of a checkpoint. The last checkpoint
   * by default; where there is none, as far as the other one had got, short of its end.
   */
  readonly at?: number;
  /** Another input, at a checkpoint or at position 0. */
  readonly input?: unknown;
  /** What becomes of tasks that had no outcome there: done again, by default. */
  readonly tasks?: "rerun" | "cancel";
  /** Your own id: forking the same there again finds the fork instead of making another. */
  readonly sessionId?: string;
  /** Go on with it here, if its agent is known; by default. */
  readonly run?: boolean;
}

export interface ImportOptions {
  /** Names the file in errors. */
  readonly name?: string;
  /** An id to store it under instead of its own. Not for a child: its parent knows it by that. */
  readonly sessionId?: string;
}

export interface ResumeOptions {
  /** Recorded results stand although the code asks with other inputs (K5). */
  readonly acceptDrift?: boolean;
}

export interface SignalOptions {
  /** A second signal with the same key is not stored. */
  readonly dedupKey?: string;
  /** Its id, when whoever sends it must be able to send it again: with the same id it is stored once. Minted by default. */
  readonly signalId?: string;
}

export interface AnswerOptions {
  /** As of `SignalOptions`. */
  readonly signalId?: string;
  /** The question's position; the oldest open one by default. */
  readonly question?: number;
}

export interface CancelOptions {
  /** `hard` ends it at once; otherwise it may clean up for `graceMs`. */
  readonly hard?: boolean;
  readonly graceMs?: number;
  readonly reason?: string;
}

/** A session, from any process: everything it says is asked of storage. */
export interface SessionHandle<Output = unknown> {
  readonly sessionId: string;
  /** False when `start` found a session of this id. */
  readonly created: boolean;
  /** The output. @throws HoldfastError when it failed, was cancelled, or is paused. */
  result(): Promise<Output>;
  /** How it ends in this process; never throws. */
  settled(): Promise<Settled<Output>>;
  session(): Promise<Session>;
  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  answer(answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  cancel(options?: CancelOptions): Promise<CancelReceipt>;
  pause(): Promise<SessionStatus>;
  unpause(): Promise<SessionStatus>;
  setBudget(limits: Budget): Promise<SessionStatus>;
}

export type CancelReceipt = {
  readonly status: "requested" | "already_ended";
  readonly sessionStatus: string;
};

export interface Runtime {
  /**
   * Start a session; answers when it is stored. One of this id that exists already is found, and gone on with unless it
   * has ended, is paused, or runs elsewhere.
   */
  start<Input, Output>(
    agent: Agent<Input, Output>,
    input?: Input,
    options?: StartOptions,
  ): Promise<SessionHandle<Output>>;
  /** Go on with a session of a known agent that no process is running. */
  resume(sessionId: string, options?: ResumeOptions): Promise<SessionHandle>;
  /** Make a session that begins as this one did, up to a point, and goes on by itself. Answers when it is stored. */
  fork(sessionId: string, options?: ForkOptions): Promise<SessionHandle>;
  /**
   * One session as lines of a file, as it stands: its journal, its entries and the signals it has not read. It may go on meanwhile;
   * its children and its parent are not in it.
   */
  export(sessionId: string): AsyncIterable<string>;
  /** Store the session of a file, whole or not at all. It stands as it stood there, until somebody resumes it. */
  import(file: AsyncIterable<Uint8Array>, options?: ImportOptions): Promise<SessionHandle>;
  /** Go on with every session of known agents that has something to do. Answers their ids. */
  recover(): Promise<readonly string[]>;
  handle(sessionId: string): SessionHandle;
  signal(sessionId: string, name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  /** Answer a question of `ctx.requestInput`. The first answer counts; later ones are duplicates. */
  answer(sessionId: string, answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  cancel(sessionId: string, options?: CancelOptions): Promise<CancelReceipt>;
  /** Have it stand still: what runs is waited for and kept, nothing more is begun. Answers how it stands. */
  pause(sessionId: string): Promise<SessionStatus>;
  /** Let a paused session go on, here when its agent is known. */
  unpause(sessionId: string): Promise<SessionStatus>;
  /** Replace limits of its budget. Sessions paused for want of one go on. */
  setBudget(sessionId: string, limits: Budget): Promise<SessionStatus>;
  /** Sessions driven now. */
  readonly live: number;
  /** Stop: running tasks are aborted, sessions stay as their last commit left them. Does not close the storage. */
  close(): Promise<void>;
}
