// `KernelOptions`: the part of a journal that a kernel replays, and the functions by which it knows its
// surroundings.

import type { CancelNotice, JournalRecord, Repeat } from "../journal/record.ts";
import type { Limits } from "../limits.ts";
import type { Hash } from "../hash.ts";
import type { StoredSignal } from "../session/changes.ts";
import type { TaskTraits } from "../ports/task-executor.ts";
import type { AgentRef, ParentRef, Persistence, SharedContext } from "../session/session.ts";
import type { RemainingBudget } from "../journal/amounts.ts";
import type { PendingSignals } from "./pending-signals.ts";
import type { SessionState } from "../state/session-state.ts";

export interface KernelOptions {
  readonly sessionId: string;
  /** `seq` of this kernel's first record: 0, or one past the checkpoint's. */
  readonly baseSeq: number;
  /** Number of this kernel's first command. */
  readonly baseId: number;
  /** The journal from `baseSeq` on. */
  readonly recorded: readonly JournalRecord[];
  /** Signals that are stored and not consumed; after a checkpoint, `pending` of the kernel before. */
  readonly signals: readonly StoredSignal[] | PendingSignals;
  readonly seed: number;
  readonly turn: number;
  readonly entryCount: number;
  readonly leaf: number | undefined;
  readonly cancel: CancelNotice | undefined;
  /** Time of the last checkpoint. New deliveries are never earlier, whatever the wall clock says. */
  readonly notBefore?: number;
  /** As the last checkpoint left it. */
  readonly state: SessionState;
  readonly relations: Relations;
  /** As the last checkpoint left them. */
  readonly repeats: readonly Repeat[];
  /** Ids of the sessions that this one was forked from, nearest first: their entries are its own. */
  readonly origins?: readonly string[];
  /**
   * Whether the session is still to be told that it is a fork. The end of `recorded` is then its origin's.
   */
  readonly forkPending?: boolean;
  readonly hash: Hash;
  readonly limits: Limits;
  /** Traits of a task kind; `undefined` when no process here can perform it. */
  readonly describeTask: (kind: string) => Omit<TaskTraits, "cost"> | undefined;
  readonly taskKinds: () => readonly string[];
  /** The closure of a task, bound to the asynchronous context of the agent's code that gives it now. */
  readonly bindClosure: (kind: string, closure: (task: unknown) => unknown) => (task: unknown) => unknown;
  readonly describeAgent: DescribeAgent;
  readonly agentNames: () => readonly string[];
  /**
   * The input of a child after the schema of its agent; as it is given where the agent or a schema is not
   * known here. It may throw an error with the code `invalid_input`, which the agent sees at its ask.
   */
  readonly acceptInput?: (agent: string, version: string | undefined, input: unknown) => unknown;
  /**
   * The label of this machine's runners, where there are several machines. Children that are asked for as
   * `local` run there.
   */
  readonly machine?: string | undefined;
  /** The kind of task that handles this request of a child; `undefined` when there is none. */
  readonly handlerOf: (request: string) => string | undefined;
  /** The amount left to spend, if an account pays for the session. */
  readonly remaining: () => RemainingBudget | undefined;
  /** Whether a wait remembers its line. A stack for each wait costs a tenth of a round trip of signals. */
  readonly development: boolean;
  /** Use recorded results for changed inputs of the same kind (K5). */
  readonly acceptDrift: boolean;
  /** Called once when a fault arises outside a slice, where no caller would see it. Must not throw. */
  readonly onStrayFault: () => void;
  /** Facts about the code that is running at this moment, for the message of a fault outside a slice. */
  readonly whereabouts?: () => Whereabouts;
}

export interface Whereabouts {
  /** The task whose handler is running. */
  readonly task: string | undefined;
  /** The place where the agent last called something outside, such as `fetch`. */
  readonly outsideCall: string | undefined;
}

export interface Relations {
  readonly parent: ParentRef | undefined;
  readonly depth: number;
  /** The number of children that were asked for before this turn. */
  readonly children: number;
  /**
   * Children of an earlier turn whose end the session's own end waits for, and which have not ended so far.
   */
  readonly awaited: readonly number[];
  /**
   * The incarnation of a session without a journal: the token of the claim under which it began. Each
   * incarnation asks a person under the same numbers.
   */
  readonly life?: number;
  readonly shared: SharedContext | undefined;
  /**
   * How much of this session survives its process. Children of an ephemeral session are ephemeral by default.
   */
  readonly persistence: Persistence;
  /** Behaviour flags and format of the children. */
  readonly flags: number;
  readonly format: number;
}

/** A session without a parent and without children. */
export const NO_RELATIONS: Relations = {
  parent: undefined,
  depth: 0,
  children: 0,
  awaited: [],
  shared: undefined,
  persistence: "full",
  flags: 0,
  format: 1,
};

/** Describes an agent that a child is to run; `undefined` when the agent is unknown here. */
type DescribeAgent = (name: string) => AgentRef | undefined;
