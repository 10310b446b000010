// What a kernel is made of: the part of a journal it lives on, and the world as it may know it.

import type { CancelNotice, JournalRecord, Repeat } from "../journal/record.ts";
import type { Limits } from "../limits.ts";
import type { Hash } from "../hash.ts";
import type { StoredSignal } from "../session/changes.ts";
import type { TaskTraits } from "../ports/task-executor.ts";
import type { Remaining } from "../journal/amounts.ts";
import type { PendingSignals } from "./pending-signals.ts";
import type { DescribeAgent, Relations } from "./relations.ts";
import type { SessionState } from "./session-state.ts";

export interface KernelOptions {
  readonly sessionId: string;
  /** `seq` of the first record of this kernel's life: 0, or one past the checkpoint's. */
  readonly baseSeq: number;
  /** Number of the first command of this kernel's life. */
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
  /** When the last checkpoint was: nothing new is told to have been before it, whatever the wall clock says since. */
  readonly notBefore?: number;
  /** As the last checkpoint left it. */
  readonly state: SessionState;
  readonly relations: Relations;
  /** As the last checkpoint left them. */
  readonly repeats: readonly Repeat[];
  /** Ids of the sessions this one was forked from, nearest first: their entries are its own. */
  readonly origins?: readonly string[];
  /** Whether it has yet to hear that it is a fork: then the end of `recorded` is its origin's. */
  readonly forkPending?: boolean;
  readonly hash: Hash;
  readonly limits: Limits;
  /** Traits of a task kind; `undefined` when nobody here can do it. */
  readonly describeTask: (kind: string) => Omit<TaskTraits, "cost"> | undefined;
  readonly taskKinds: () => readonly string[];
  readonly describeAgent: DescribeAgent;
  readonly agentNames: () => readonly string[];
  /** What runners of this machine are labelled with, where there are several: children asked for as `local` run there. */
  readonly machine?: string | undefined;
  /** The kind of task that handles this request of a child; `undefined` when none does. */
  readonly handlerOf: (request: string) => string | undefined;
  /** What is left to spend, when anybody pays. */
  readonly remaining: () => Remaining | undefined;
  /** Whether a wait remembers its line: taking a stack for each costs a tenth of a round trip of signals. */
  readonly development: boolean;
  /** Let recorded results stand for changed inputs of the same kind (K5). */
  readonly acceptDrift: boolean;
  /** Called once when a fault arises outside a slice, where nobody is looking. Must not throw. */
  readonly onStrayFault: () => void;
  /** What is known of the code that runs this very moment, for the words of a fault outside a slice. */
  readonly whereabouts?: () => Whereabouts;
}

export interface Whereabouts {
  /** The task whose handler it is. */
  readonly task: string | undefined;
  /** Where the agent last called something outside, such as `fetch`. */
  readonly outsideCall: string | undefined;
}
