// What a runtime offers to those who start sessions and talk to them: options in, handles and receipts out.

import type {
  AgentRef,
  AgentStorage,
  AgentTracer,
  Budget,
  Clock,
  Limits,
  Persistence,
  Prices,
  Random,
  Schedule,
  Session,
  SessionStatus,
  SignalReceipt,
  SignalSource,
  TaskExecutor,
} from "@holdfast/core";
import type { Agent, TaskDefinition } from "../agents/define.ts";
import type { Immediate } from "../loop/slice-loop.ts";
import type { Settled } from "../session/session-outcome.ts";
import type { Watchdog } from "../isolation/watchdog.ts";

export interface RuntimeOptions {
  readonly storage: AgentStorage;
  /** Agents whose sessions this process may run, besides those given to `start`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of agents of any input and output has no other type.
  readonly agents?: readonly Agent<any, any>[];
  /** Tasks for all agents, or an executor of your own. Agents bring their own tasks along. */
  readonly tasks?: readonly TaskDefinition[] | TaskExecutor;
  /** Who does tasks this process has no handler for: otherwise they are an error. Closed with the runtime. */
  readonly queue?: TaskExecutor;
  readonly signals?: readonly SignalSource[];
  readonly tracer?: AgentTracer;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Turns of the event loop, for simulation: `setImmediate` otherwise. */
  readonly immediate?: Immediate;
  readonly limits?: Partial<Limits>;
  /**
   * Refuse to start an agent in the turn form that neither a time nor a budget bounds: nothing else ends it. Such a session is started
   * with a warning otherwise. Off by default.
   */
  readonly strictBounds?: boolean;
  /** What models cost, for budgets and traces. */
  readonly prices?: Prices;
  /** Attempts of tasks running at once. */
  readonly concurrency?: number;
  /** How long a session that only waits is kept in memory, in milliseconds: 30,000 by default. */
  readonly warmMs?: number;
  /**
   * How many sessions that only wait are kept in memory: 500 by default. The least recently used one is evicted first; it costs its
   * rows in the storage and nothing more, and what it waits for brings it back.
   */
  readonly warmSessions?: number;
  /** As `warmSessions`, but how many bytes they may take by the runtime's estimate: 16 MiB by default. */
  readonly warmBytes?: number;
  /** Run sessions of known agents whenever something they wait for arrives or is due, not only those started here. */
  readonly adopt?: boolean;
  /**
   * Storage says which sessions are run here, by announcing them as arrivals: a runner's, which a coordinator gives them to, with
   * claims that are at most `claimAgeMs` old. Then children are asked for and nothing more.
   */
  readonly dispatched?: { readonly claimAgeMs: number };
  /** What this machine is called where there are several: children asked for as `local` demand it. */
  readonly machine?: string;
  /**
   * Fire schedules that are due, whoever put them, while this runtime lives. Not unless it is asked for: a process that runs one
   * session, or only sends a signal, must not begin the work of others, and would end in the middle of it.
   */
  readonly schedules?: boolean | ScheduleOptions;
  /** Names this process in claims. */
  readonly owner?: string;
  /**
   * How long a claim of this process outlives it, where others may take over: it is renewed until it is released, and what cannot be
   * renewed in time is stopped here first. By default for ever, as under one owner process of a file.
   */
  readonly leaseMs?: number;
  /** How often claims are renewed: a quarter of `leaseMs` by default, a third of it at most. */
  readonly renewMs?: number;
  /** Ends the process when an agent keeps it busy; made by whoever owns the process. */
  readonly watchdog?: Watchdog;
  /** Report what an agent must not do between two deliveries, and remember the lines of its waits. On unless NODE_ENV is `production`. */
  readonly development?: boolean;
}

export interface ScheduleOptions {
  /**
   * Find an agent that is not known here, for what a schedule started or sent a signal to. May reject, which is told as a
   * warning of the session; may be called for several at once.
   */
  readonly findAgent?: (agent: AgentRef) => Promise<Agent | undefined>;
  /** Told of each firing of this runtime, after it is stored. Must not throw. */
  readonly onFired?: (firing: Firing) => void;
}

/** A schedule has done what it says for one of its times. */
export interface Firing {
  readonly scheduleId: string;
  /** What was started or sent to. */
  readonly sessionId: string;
  readonly type: "start" | "signal";
  /** The first of its times that had not fired. */
  readonly dueAt: number;
  readonly nextAt: number;
}

/** What is to be done again and again. */
export type ScheduleRequest<Input = unknown, Output = unknown> = {
  /** Your own id: putting the same id again replaces it. */
  readonly id?: string;
  /** Five or six fields: [second] minute hour day month weekday. */
  readonly cron: string;
  /** IANA name of the zone whose clock is meant. */
  readonly timeZone: string;
} & (
  | {
      readonly start: {
        readonly agent: Agent<Input, Output>;
        readonly input?: Input;
        /** Of each session. */
        readonly budget?: Budget;
        /** Where the agent's code came from, to be found again. */
        readonly file?: string;
      };
      readonly signal?: never;
    }
  | {
      readonly signal: { readonly sessionId: string; readonly name: string; readonly payload?: unknown };
      readonly start?: never;
    }
);

export interface StartOptions {
  /** Your own id: starting the same id again finds the session instead of making another. */
  readonly sessionId?: string;
  /** Where the agent's code came from, to be found again. */
  readonly file?: string;
  /** What it and those below it may spend. */
  readonly budget?: Budget;
  /** How much of it survives its process: everything by default. */
  readonly persistence?: Persistence;
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

export interface ResultOptions {
  /** The process may end although the promise is pending. Otherwise the promise keeps the process alive. */
  readonly unref?: boolean;
}

/** A session, from any process: everything it says is asked of storage. */
export interface SessionHandle<Output = unknown> {
  readonly sessionId: string;
  /** False when `start` found a session of this id. */
  readonly created: boolean;
  /** The output. Keeps the process alive meanwhile. @throws HoldfastError when it failed, was cancelled, or is paused. */
  result(options?: ResultOptions): Promise<Output>;
  /** How it ends in this process, whatever the end. Keeps the process alive meanwhile. */
  settled(options?: ResultOptions): Promise<Settled<Output>>;
  session(): Promise<Session>;
  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  answer(answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  cancel(options?: CancelOptions): Promise<CancelReceipt>;
  pause(): Promise<SessionStatus>;
  unpause(): Promise<SessionStatus>;
  setBudget(limits: Budget): Promise<SessionStatus>;
  releaseLost(): Promise<SessionStatus>;
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
  /** Let a paused session go on: here when its agent is known and no other process runs it. */
  unpause(sessionId: string): Promise<SessionStatus>;
  /**
   * Replace limits of its budget. Sessions paused for want of one go on. One that has ended still pays for those it left to go on.
   *
   * @throws ConflictError `session_ended` when there are none.
   */
  setBudget(sessionId: string, limits: Budget): Promise<SessionStatus>;
  /**
   * Take back what its budget was charged for attempts that were lost with their process (`account.lost`): it can be spent again.
   * Sessions paused for want of it are resumed. The second call changes nothing. Answers the status of the session.
   *
   * @throws ConflictError `session_ended` when it has ended and nothing that it paid for is still running.
   * @throws UsageError when the session was started without a budget; the error names the session that pays.
   */
  releaseLost(sessionId: string): Promise<SessionStatus>;
  /**
   * Start a session, or send a signal, whenever the clock of a zone shows a time; answers when it is stored. A time that does not
   * exist there is the first moment after the gap, one that exists twice the first of the two. Fired by runtimes with the option
   * `schedules`; times that pass while there is none fire once, together, as soon as there is.
   */
  schedule<Input, Output>(request: ScheduleRequest<Input, Output>): Promise<Schedule>;
  /** All that are stored, the next to fire first. */
  schedules(): Promise<readonly Schedule[]>;
  /** Remove a schedule; sessions it started stay. Answers whether there was one. */
  unschedule(scheduleId: string): Promise<boolean>;
  /** Stop driving one session: what runs of it is aborted, and it stays as its last commit left it. */
  abandon(sessionId: string): void;
  /** Let go of every session that only waits, without waiting for `warmMs`. */
  letGo(): void;
  /** Sessions driven now. */
  readonly live: number;
  /**
   * Stop: running tasks are aborted, sessions stay as their last commit left them. Does not close the storage. A handler that looks at
   * its abort signal and does not settle in time is abandoned: a warning names its task, and its session is not run again before it
   * settles, or this process or its storage ends.
   */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  /** How long handlers that look at their abort signal are waited for. Milliseconds, 10,000 when absent. */
  readonly graceMs?: number;
}
