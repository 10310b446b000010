// `TaskWorld`, `TaskSession`: the interfaces of the process and of a session for the session's tasks.

import type {
  Clock,
  ConversationEntry,
  OpenTask,
  Prices,
  Session,
  SessionPatch,
  TaskExecutor,
  TraceEvent,
} from "@holdfast/core";
import type { EventDraft, NoteDraft } from "./drafts.ts";
import type { UnbegunTasks } from "./unbegun-tasks.ts";

/** The session whose code runs. */
export interface RunningCode {
  readonly sessionId: string;
  /** The kind of task whose handler it is; absent for the agent's own. */
  readonly task?: string;
}

/** The interface of the process for the tasks of its sessions. */
export interface TaskWorld {
  readonly executor: TaskExecutor;
  readonly clock: Clock;
  /** Integers in [0, 2^32), for jitter. */
  readonly random: () => number;
  readonly prices: Prices | undefined;
  readonly unbegun: UnbegunTasks;
  /** Absent without a tracer: then no event is built. */
  readonly trace: ((event: TraceEvent) => void) | undefined;
  /** The trace context of the session, or of one of its attempts. */
  traceparent(
    sessionId: string,
    attempt?: { readonly taskId: string; readonly attempt: number },
  ): string | undefined;
  conversation(
    session: Session,
    leaf: number | null,
    isOver: () => boolean,
  ): Promise<readonly ConversationEntry[]>;
  /**
   * Call the agent or the handler of a registered task in an empty asynchronous context (neutral-context-1),
   * which attributes their stray rejections to the session.
   */
  enter<T>(whose: RunningCode, fn: () => T): T;
  /** The same for a closure of `ctx.run`, in the context of this call (neutral-context-2). */
  bound<A, T>(whose: RunningCode, closure: (argument: A) => T): (argument: A) => T;
}

/** A driven session, as its tasks know it. */
export interface TaskSession {
  readonly sessionId: string;
  /** The session as it was loaded. */
  readonly session: Session;
  /** The token of its claim, once there is one. */
  readonly token: number | undefined;
  /** Whether it has ended, is parked, or is no longer driven here. */
  readonly isOver: boolean;
  /** The task of this number, until its outcome is delivered or the session is over. */
  openTask(id: number): OpenTask | undefined;
  deliver(event: EventDraft): void;
  note(note: NoteDraft): void;
  /** Add a note, and pause the session once all that runs has ended. @returns false when it is being cancelled. */
  pause(note: NoteDraft, patch: SessionPatch): boolean;
  /** The next commit has an attempt to ask for. */
  wake(): void;
  /** Tasks were asked for. @param waits whether some of them wait until others have settled. */
  asked(waits: boolean): void;
}
