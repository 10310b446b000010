// `Runtime`: the interface for programs that start sessions and talk to them. It takes options and returns
// handles and receipts.

import type {
  GivenEnvironment,
  AgentRef,
  AgentStorage,
  AgentTracer,
  Budget,
  Per,
  Clock,
  InputArguments,
  Limits,
  Persistence,
  Prices,
  Random,
  Schedule,
  Session,
  SessionSnapshot,
  SessionStatus,
  SignalReceipt,
  SignalSource,
  TaskExecutor,
} from "@holdfast/core";
import type { Agent, TaskDefinition } from "../agents/define.ts";
import type { Immediate } from "../loop/slice-loop.ts";
import type { Settled } from "../session/session-outcome.ts";
import type { SecretSource } from "@holdfast/system";
import type { Watchdog } from "../isolation/watchdog.ts";

/** Options of `createRuntime`. */
export interface RuntimeOptions {
  /** Where sessions are stored. The runtime does not close it. */
  readonly storage: AgentStorage;
  /** Agents whose sessions this process may run, besides those given to `start`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of agents of any input and output has no other type.
  readonly agents?: readonly Agent<any, any>[];
  /**
   * For development servers, which load edited files again. An agent that is given to `start` or `schedule`, its tasks and its
   * children then replace those of the same name and version. Sessions that wait continue with the new code at once, as after a
   * restart, and others when they wait next. Off by default: then two agents of one name and version are an error.
   */
  readonly replaceAgents?: boolean;
  /** Tasks for all agents, or an executor of your own. Agents bring their own tasks along. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of tasks of any input and output has no other type.
  readonly tasks?: readonly TaskDefinition<any, any>[] | TaskExecutor;
  /** Runs the tasks that have no handler here; without it such a task is an error. Closed with the runtime. */
  readonly queue?: TaskExecutor;
  /** Sources of signals, which are open as long as the runtime is. */
  readonly signals?: readonly SignalSource[];
  /**
   * Values of the secrets that agents and tasks declare, such as a map from their names. Environment variables
   * by default. Not used by an executor of your own in `tasks`.
   */
  readonly secrets?: SecretSource;
  /** An observer of all sessions of this runtime. */
  readonly tracer?: AgentTracer;
  /** Show what models are writing to other processes over this storage, such as the page. Off by default: it costs as much as a tracer. */
  readonly showsTexts?: boolean;
  /** The clock of this machine by default; a test gives its own. */
  readonly clock?: Clock;
  /** The random numbers of this machine by default; a test gives its own. */
  readonly random?: Random;
  /** Turns of the event loop, for simulation: `setImmediate` otherwise. */
  readonly immediate?: Immediate;
  /** Limits that take the place of the defaults, by name. */
  readonly limits?: Partial<Limits>;
  /**
   * Refuse to start an agent in the turn form without a time or budget limit, as nothing else ends it.
   * Otherwise such a session starts with a warning. Off by default.
   */
  readonly strictBounds?: boolean;
  /** The prices of models, for budgets and traces. */
  readonly prices?: Prices;
  /** Attempts of tasks running at once. */
  readonly concurrency?: number;
  /** How long a session that only waits is kept in memory, in milliseconds: 30,000 by default. */
  readonly warmMs?: number;
  /**
   * How many sessions that only wait are kept in memory: 200 by default. The least recently used one is
   * evicted first. An evicted session costs only its rows in storage, and the outcome it waits for loads it
   * again.
   */
  readonly warmSessions?: number;
  /** As `warmSessions`, but how many bytes they may take by the runtime's estimate: 16 MiB by default. */
  readonly warmBytes?: number;
  /** Run sessions of known agents whenever something they wait for arrives or is due, not only those started here. */
  readonly adopt?: boolean;
  /**
   * Set for a runner: its coordinator decides which sessions run here, and `drive` receives their claims. A
   * claim that is older than `claimAgeMs` is released. The runtime requests children but does not run them of
   * its own accord. `knowing` is called once, with a function that makes versions of further agents known later. The
   * coordinator chooses among them for a child that is asked for by its name.
   */
  readonly dispatched?: {
    readonly claimAgeMs: number;
    readonly knowing?: (know: (agents: readonly Agent[], current: readonly Agent[]) => void) => void;
  };
  /** The name of this machine among several: children started with `local` demand it. */
  readonly machine?: string;
  /**
   * Fire all schedules that are due while this runtime lives. Off by default. A process that runs one
   * session, or only sends a signal, must not begin the work of others and end in the middle of it.
   */
  readonly schedules?: boolean | ScheduleOptions;
  /** Names this process in claims. */
  readonly owner?: string;
  /**
   * How long a claim of this process outlives it before another process may take over. Claims are renewed
   * until they are released; a session whose claim cannot be renewed in time is stopped first. Without limit
   * by default, as under the one owner process of a file.
   */
  readonly leaseMs?: number;
  /** How often claims are renewed: a quarter of `leaseMs` by default, a third of it at most. */
  readonly renewMs?: number;
  /** Ends the process when an agent keeps it busy; made by the program that owns the process. */
  readonly watchdog?: Watchdog;
  /**
   * How often the process of a session may die while the session is tried alone, before the session is
   * `paused(poison)`: 5 by default. A session is tried alone after its process died twice without a commit of
   * the session between. Has no effect at a runner, whose coordinator counts.
   */
  readonly poisonLosses?: number;
  /**
   * Report calls that an agent must not make between two deliveries, and record the source lines of its
   * waits. On unless NODE_ENV is `production`.
   */
  readonly development?: boolean;
}

/** How a runtime finds the agents of its schedules, and the function that it calls for each firing. */
export interface ScheduleOptions {
  /**
   * Find an agent that is not known here, for a session that a schedule started or signalled. A rejection
   * becomes a warning of the session. May be called for several agents at once.
   */
  readonly findAgent?: (agent: AgentRef) => Promise<Agent | undefined>;
  /** Called for each firing of this runtime, after it is stored. Must not throw. */
  readonly onFired?: (firing: Firing) => void;
}

/** A schedule has fired for one of its times. */
export interface Firing {
  /** The schedule. */
  readonly scheduleId: string;
  /** The session that was started or signalled. */
  readonly sessionId: string;
  /** Whether it started the session, or sent it a signal. */
  readonly type: "start" | "signal";
  /** The first of its times that had not fired. */
  readonly dueAt: number;
  /** The next time at which the schedule fires. */
  readonly nextAt: number;
}

/** A schedule to store: the times, and the session to start or the signal to send at each of them. */
export type ScheduleRequest<Input = unknown, Output = unknown, Given = Input> = {
  /** Your own id: putting the same id again replaces it. */
  readonly id?: string;
  /** Five or six fields: [second] minute hour day month weekday. */
  readonly cron: string;
  /** IANA name of the zone whose clock is meant. */
  readonly timeZone: string;
} & (
  | {
      readonly start: {
        readonly agent: Agent<Input, Output, Given>;
        readonly input?: NoInfer<Given>;
      } & Pick<StartOptions, "budget" | "environment" | "file">;
      readonly signal?: never;
    }
  | {
      readonly signal: { readonly sessionId: string; readonly name: string; readonly payload?: unknown };
      readonly start?: never;
    }
);

/** Options of the start of a session. */
export interface StartOptions {
  /** Your own id: the same agent and input under the same id find the session instead of making another. */
  readonly sessionId?: string;
  /** One line about the session for people, made of the input by default. */
  readonly title?: string;
  /** Where the agent's code came from, to be found again. */
  readonly file?: string;
  /** Limits for the session and all sessions below it. */
  readonly budget?: Budget;
  /** How much of the session survives its process: everything by default. */
  readonly persistence?: Persistence;
  /** The session is cancelled this long after it was started. */
  readonly timeoutMs?: number;
  /** Environments and variables for the commands and servers of an agent file, and of the agents below it. */
  readonly environment?: GivenEnvironment;
  /** W3C trace context (`traceparent`) to be part of: the session's spans hang under it, in every process. */
  readonly traceparent?: string;
}

/** Options of a fork: a new session with the beginning of another one. */
export interface ForkOptions {
  /**
   * The point of the fork: how many records of its origin's journal it begins with, or the `seq` of a
   * checkpoint. By default the last checkpoint; without one, the last point before the origin's end.
   */
  readonly at?: number;
  /** Another input, at a checkpoint or at position 0. */
  readonly input?: unknown;
  /** How tasks that had no outcome at the point are treated: `rerun` by default. */
  readonly tasks?: "rerun" | "cancel";
  /** Your own id: the same fork with the same id finds the existing session instead of making another. */
  readonly sessionId?: string;
  /** Whether to run the fork here, if its agent is known; true by default. */
  readonly run?: boolean;
}

/** Options of the export of a session as a file. */
export interface ExportOptions {
  /** Also write all sessions below the session. One import stores them all. */
  readonly tree?: boolean;
}

/** Options of the import of a session from a file. */
export interface ImportOptions {
  /** Names the file in errors. */
  readonly name?: string;
  /** An id to store it under instead of its own. The sessions of a tree keep their ids. */
  readonly sessionId?: string;
}

/** Options of the continuation of a paused session. */
export interface ResumeOptions {
  /** Accept recorded results although the code now asks with other inputs (K5). */
  readonly acceptDrift?: boolean;
}

/** Options of a signal to a session. */
export interface SignalOptions {
  /** A second signal with the same key is not stored. */
  readonly dedupKey?: string;
  /** Your own id, so that the signal can be sent again: storage stores an id once. Minted by default. */
  readonly signalId?: string;
}

/** Options of an answer to an open question of a session. */
export interface AnswerOptions {
  /** As in `SignalOptions`. */
  readonly signalId?: string;
  /** The question's position; the oldest open one by default. */
  readonly question?: number;
}

/** Options of a request to cancel a session. */
export interface CancelOptions {
  /** `hard` ends the session at once; otherwise its agent may clean up for `graceMs`. */
  readonly hard?: boolean;
  /** How long the agent may clean up: 10,000 milliseconds by default. */
  readonly graceMs?: number;
  /** A text that the session and its parent receive. */
  readonly reason?: string;
}

/** Options of a wait for the result of a session. */
export interface ResultOptions {
  /** The process may end although the promise is pending. Otherwise the promise keeps the process alive. */
  readonly unref?: boolean;
}

/** A handle of a session, in any process: each call asks storage. */
export interface SessionHandle<Output = unknown> {
  readonly sessionId: string;
  /** False when `start` or `import` found the session. */
  readonly created: boolean;
  /**
   * The output. Keeps the process alive meanwhile, also while the session is paused until a window of its budget has
   * rolled on.
   *
   * @throws HoldfastError when it failed, was cancelled, or is paused until a person resumes it.
   */
  result(options?: ResultOptions): Promise<Output>;
  /**
   * How the session ends in this process, without throwing for a bad end. Keeps the process alive meanwhile.
   */
  settled(options?: ResultOptions): Promise<Settled<Output>>;
  /** The stored row of the session. */
  session(): Promise<Session>;
  /** Send the session a signal; answers when it is stored. */
  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  /** Answer a question of `ctx.requestInput`. */
  answer(answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  /** Ask the session to end, or with `hard` end it. */
  cancel(options?: CancelOptions): Promise<CancelReceipt>;
  /** Pause the session; running tasks finish. Answers its status. */
  pause(): Promise<SessionStatus>;
  /** Resume the paused session. Answers its status. */
  unpause(): Promise<SessionStatus>;
  /** Replace its title, also after its end. An empty text makes the title of the input again. */
  setTitle(title: string): Promise<void>;
  /** Replace limits of its budget, as `runtime.setBudget` does. */
  setBudget(limits: Budget): Promise<SessionStatus>;
  /** Grant its budget one more window, as `runtime.grantWindow` does. */
  grantWindow(per: Per): Promise<SessionStatus>;
  /** Release what its budget was charged for lost attempts, as `runtime.releaseLost` does. */
  releaseLost(): Promise<SessionStatus>;
}

/** A claim of this process that a coordinator made. */
export interface GivenClaim extends HeldSession {
  /** When the claim was made, by the monotonic time of the runtime's clock. */
  readonly claimedAt: number;
}

/** A session under a claim. */
export interface HeldSession {
  readonly token: number;
  /** As in `ClaimResult`. */
  readonly before?: number;
  readonly snapshot: SessionSnapshot;
  /**
   * Whether a process with earlier code takes the session back if the code here diverges from its journal.
   * Such a session is then released with `diverged`, and not paused.
   */
  readonly mayReturn?: boolean;
}

/** The answer to a request to cancel: whether it was stored, or came too late. */
export type CancelReceipt = {
  readonly status: "requested" | "already_ended";
  readonly sessionStatus: string;
};

/** Drives sessions in this process, and takes requests about them. `createRuntime` makes one. */
export interface Runtime {
  /**
   * Start a session; answers when it is stored. If a session with this id exists, it is resumed unless it has
   * ended, is paused, or runs elsewhere.
   *
   * @throws ConflictError `session_exists` when the session with this id is of another agent, or has another input.
   */
  start<Input, Output, Given = Input>(
    agent: Agent<Input, Output, Given>,
    ...[input, options]: InputArguments<Given, StartOptions>
  ): Promise<SessionHandle<Output>>;
  /** Resume a session of a known agent that no process is running. */
  resume(sessionId: string, options?: ResumeOptions): Promise<SessionHandle>;
  /**
   * Start a new session with the history of this one up to a point. Answers when the new session is stored.
   */
  fork(sessionId: string, options?: ForkOptions): Promise<SessionHandle>;
  /**
   * One session as the lines of a file: its row, journal, entries and unread signals. The session may keep
   * running meanwhile. The sessions above it are not in the file, and those below it only with `tree`: then all
   * belong to one moment.
   *
   * @throws HoldfastError `too_large` when the tree has more text than the limit `batchChars`.
   * @throws ConflictError `conflict` when the sessions of the tree change all the time.
   */
  export(sessionId: string, options?: ExportOptions): AsyncIterable<string>;
  /**
   * Store the sessions of a file, all or none, and return a handle of the first one. They keep the status that
   * they had there until somebody resumes them. A file whose sessions are all there already changes nothing.
   *
   * @throws ConflictError `session_exists` when there is another session of such an id.
   * @throws CorruptRecordError when the file is damaged, HoldfastError `version_unsupported` when it is newer.
   */
  import(file: AsyncIterable<Uint8Array>, options?: ImportOptions): Promise<SessionHandle>;
  /** Resume every session of known agents that has something to do. Answers their ids. */
  recover(): Promise<readonly string[]>;
  /** The handle of a session of any process. This call reads nothing. */
  handle(sessionId: string): SessionHandle;
  /** Send a session a signal; answers when it is stored. */
  signal(sessionId: string, name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  /** Answer a question of `ctx.requestInput`. The first answer counts; later ones are duplicates. */
  answer(sessionId: string, answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  /** Ask a session and all sessions below it to end, or with `hard` end them. */
  cancel(sessionId: string, options?: CancelOptions): Promise<CancelReceipt>;
  /** Pause a session: running tasks finish and their outcomes are kept, nothing more starts. Answers its status. */
  pause(sessionId: string): Promise<SessionStatus>;
  /** Resume a paused session: here if its agent is known and no other process runs it. */
  unpause(sessionId: string): Promise<SessionStatus>;
  /**
   * Replace limits of a session's budget. Sessions that were paused at those limits resume. A session that
   * has ended still pays for the sessions it left running.
   *
   * @throws ConflictError `session_ended` when it has ended and left none running.
   */
  setBudget(sessionId: string, limits: Budget): Promise<SessionStatus>;
  /**
   * Grant a session's budget one more window: nothing is spent in this run, turn, hour, day or month yet. Limits
   * per lifetime and other windows do not change. Sessions that were paused for this window resume. Answers the
   * status of the session.
   *
   * @throws ConflictError `session_ended` when it has ended and nothing that it paid for is still running.
   * @throws UsageError when its budget has no such window.
   */
  grantWindow(sessionId: string, per: Per): Promise<SessionStatus>;
  /**
   * Release what a session's budget was charged for attempts lost with their process (`account.lost`), so
   * that it can be spent again. Sessions that were paused for want of it resume. A second call changes
   * nothing. Answers the status of the session.
   *
   * @throws ConflictError `session_ended` when it has ended and nothing that it paid for is still running.
   * @throws UsageError when the session was started without a budget; the error names the session that pays.
   */
  releaseLost(sessionId: string): Promise<SessionStatus>;
  /**
   * Start a session, or send a signal, whenever the clock of a zone shows a time; answers when it is stored.
   * A time that does not exist there is the first moment after the gap. A time that exists twice is the first
   * of the two, or both if the line takes every hour. Runtimes with the option `schedules` fire schedules.
   * Times that pass while no such runtime lives fire once, together, when the next one starts.
   */
  schedule<Input, Output>(request: ScheduleRequest<Input, Output>): Promise<Schedule>;
  /** All stored schedules, the next to fire first. */
  schedules(): Promise<readonly Schedule[]>;
  /** Remove a schedule; sessions it started stay. Answers whether there was one. */
  unschedule(scheduleId: string): Promise<boolean>;
  /**
   * Drive a session under a claim that the caller was given, without a request to storage. A claim that is too
   * old is released, and so is the claim of a session that cannot run here. A newer claim of a session that is
   * driven already replaces the older one.
   */
  drive(claim: GivenClaim): void;
  /**
   * Stop driving a session that a hard cancel has ended, as its coordinator says. Its running tasks are aborted, and
   * their processes get a moment to end.
   */
  abandon(sessionId: string): void;
  /**
   * Release every session that only waits, without waiting for `warmMs`. With `atCheckpoints`, each other
   * session is released once its next checkpoint is committed, so that a process with newer code continues it.
   * A session that stores no journal stays.
   */
  releaseWaiting(options?: { readonly atCheckpoints?: boolean }): void;
  /** Sessions driven now. */
  readonly live: number;
  /** Tasks of these sessions that have begun and have not ended. */
  readonly running: number;
  /**
   * Stop in order: nothing new begins, and running tasks may end within the grace. A task that has not ended
   * then is aborted and handed over, which counts toward no limit; one whose effect happens once is uncertain.
   * A second call may shorten the grace. Does not close the storage. A handler that has read its abort signal and does not settle in time is abandoned, and a warning
   * names its task. Its session does not run again until the handler settles, or this process or its storage
   * ends.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Options of the end of a runtime. */
export interface CloseOptions {
  /** How long running tasks may take. Milliseconds; none when absent. */
  readonly graceMs?: number;
}
