// `Observed`: the observations of a nemesis run. Clients record their requests, tasks their attempts, the
// database its claims and commits, and the harness the processes. The checkers read nothing else.
//
// All times are the machine's monotonic time in milliseconds, which is the same in all processes and which no
// clock step changes.

/** The variable in a runner's environment with the folder in which tasks record their effects. */
export const EFFECTS_FOLDER = "HOLDFAST_NEMESIS_EFFECTS";
/** The variable in a runner's environment with its name. */
export const RUNNER_NAME = "HOLDFAST_NEMESIS_RUNNER";
/** The variable in the environment of a process that a task started: `RUNNER PID SESSION`. */
export const MARK = "HOLDFAST_NEMESIS_MARK";
/** The variable in all environments with the harness's pid, by which the next run ends the processes of a killed one. */
export const HARNESS = "HOLDFAST_NEMESIS";

/** The machine's monotonic time: `performance.now()` begins at zero in each process. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** A task's record of one attempt. */
export interface Effect {
  readonly at: number;
  readonly phase: "begin" | "beat" | "end";
  readonly name: string;
  readonly runner: string;
  readonly pid: number;
  readonly sessionId: string;
  readonly taskId: string;
  readonly attempt: number;
}

/** One request of a client, with its outcome: `ok` acknowledged, `fail` certainly not performed, `info` unknown. */
export interface Request {
  readonly op: "start" | "signal" | "cancel" | "read" | "list" | "unpause";
  /** The subject of the request: an idempotency key, or a session's id. */
  readonly about: string;
  readonly invokedAt: number;
  readonly answeredAt: number;
  readonly outcome: "ok" | "fail" | "info";
  /** The HTTP status; absent when there was no answer. */
  readonly status?: number;
  readonly code?: string;
  /** The beginning of an error's body. */
  readonly said?: string;
  /** The session that a start created. */
  readonly sessionId?: string;
  readonly agent?: string;
  /** The name of a signal; its number follows. */
  readonly name?: string;
  readonly number?: number;
  /** The session's status, in the answer to a read or a cancel. */
  readonly seen?: string;
}

/** A change of a session's claim, in the order of the database. */
export interface ClaimChange {
  readonly at: number;
  readonly sessionId: string;
  readonly token: number;
  readonly holder: string | undefined;
  readonly before: { readonly token: number; readonly holder: string | undefined; readonly until: number };
  readonly isEnded: boolean;
}

/** A committed batch of a session's journal. */
export interface Batch {
  readonly at: number;
  readonly sessionId: string;
  readonly seq: number;
  readonly count: number;
  /** The token of the claim under which the batch was committed. */
  readonly token: number;
  /** Tasks that are asked for in it, by their number. */
  readonly asked: readonly number[];
  /** Tasks whose outcome is in it. */
  readonly done: readonly number[];
}

/** A process that a task had started, seen alive. */
export interface Sighting {
  readonly at: number;
  readonly pid: number;
  readonly runner: string;
  readonly runnerPid: number;
  readonly sessionId: string;
}

/** A time during which a runner was stopped, like a suspended machine. */
export interface Freeze {
  readonly runner: string;
  readonly from: number;
  readonly to: number;
}

/** The events that a watcher of a session received, over all its connections. */
export interface Watched {
  readonly sessionId: string;
  readonly seqs: readonly number[];
  readonly isOver: boolean;
}

/** A session, as it is read when all is healed. */
export interface FinalSession {
  readonly sessionId: string;
  readonly agent: string;
  /** The key of the request that started it. */
  readonly key: string | undefined;
  readonly isChild: boolean;
  readonly status: string;
  readonly pauseReason: string | undefined;
  /** The message of its error. */
  readonly error: string | undefined;
  readonly waits: readonly string[];
  readonly output: unknown;
  readonly input: unknown;
  /** Whether its journal is 0..n-1. */
  readonly isJournalWhole: boolean;
  /** Tasks, once for each running attempt that a process handed over when it stopped in order. */
  readonly handedOver: readonly number[];
}

export interface Observed {
  readonly requests: readonly Request[];
  readonly effects: readonly Effect[];
  readonly claims: readonly ClaimChange[];
  readonly batches: readonly Batch[];
  readonly sightings: readonly Sighting[];
  readonly freezes: readonly Freeze[];
  readonly watched: readonly Watched[];
  readonly sessions: readonly FinalSession[];
  /** The times at which each member was started, by its name. */
  readonly starts: Readonly<Record<string, readonly number[]>>;
  /**
   * The ids at the coordinators, by the names of runners. A runner's process for trials has its name and its
   * pid: `r1 4711`.
   */
  readonly runnerIds: Readonly<Record<string, string>>;
  /** The output of each process, by its name. */
  readonly outputs: Readonly<Record<string, string>>;
}
