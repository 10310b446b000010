// What is seen while the nemesis is about, by whoever sees it: clients of their requests, tasks of themselves, the database of
// claims and commits, the harness of processes. The checkers read nothing else.
//
// All times are the machine's monotonic ones, in milliseconds: the same in every process of it, and no clock step moves them.

/** Where tasks tell what they do, in the environment of a runner. */
export const EFFECTS_FOLDER = "HOLDFAST_NEMESIS_EFFECTS";
/** Which runner it is, there. */
export const RUNNER_NAME = "HOLDFAST_NEMESIS_RUNNER";
/** On what a task starts: `RUNNER PID SESSION`. */
export const MARK = "HOLDFAST_NEMESIS_MARK";
/** On every process of the harness, with the harness's own pid: the next run ends what a killed one left. */
export const HARNESS = "HOLDFAST_NEMESIS";

/** The machine's, not this process's: `performance.now()` begins anew in each. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

/** What a task says of one attempt. */
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

/** One request of a client, as it was answered: `ok` acknowledged, `fail` surely not done, `info` who knows. */
export interface Request {
  readonly op: "start" | "signal" | "cancel" | "read" | "list" | "unpause";
  /** What is asked for: an idempotency key, or a session's id. */
  readonly about: string;
  readonly invokedAt: number;
  readonly answeredAt: number;
  readonly outcome: "ok" | "fail" | "info";
  /** Of HTTP; absent when there was no answer. */
  readonly status?: number;
  readonly code?: string;
  /** As it came, cut. */
  readonly said?: string;
  /** Of a start. */
  readonly sessionId?: string;
  readonly agent?: string;
  /** Of a signal. */
  readonly name?: string;
  readonly number?: number;
  /** Of a read or a cancel: the session's status. */
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
  /** Of the claim it was committed under. */
  readonly token: number;
  /** Tasks whose outcome is in it, by their number. */
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

/** A runner that stood still, as a machine that is suspended. */
export interface Freeze {
  readonly runner: string;
  readonly from: number;
  readonly to: number;
}

/** What a watcher of a session was told, over all its connections. */
export interface Watched {
  readonly sessionId: string;
  readonly seqs: readonly number[];
  readonly isOver: boolean;
}

/** A session, as it is read when all is healed. */
export interface FinalSession {
  readonly sessionId: string;
  readonly agent: string;
  /** Of the request that asked for it. */
  readonly key: string | undefined;
  readonly isChild: boolean;
  readonly status: string;
  readonly pauseReason: string | undefined;
  readonly waits: readonly string[];
  readonly output: unknown;
  readonly input: unknown;
  /** Whether its journal is 0..n-1. */
  readonly isJournalWhole: boolean;
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
  /** Runner's name to the id it has at the coordinators. */
  readonly runnerIds: Readonly<Record<string, string>>;
  /** What processes wrote, by their name. */
  readonly outputs: Readonly<Record<string, string>>;
}
