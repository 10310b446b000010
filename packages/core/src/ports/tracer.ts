// Who watches. Called at every turn, task, token report, wait, error and commit, in every mode.

import type { RecordedError } from "../errors/errors.ts";
import type { JsonText } from "../json/json.ts";
import type { SessionStatus, Wait } from "../session/session.ts";
import type { TaskDelta } from "./task-executor.ts";

/**
 * A tracer can neither throw into nor delay what it watches: it is called synchronously, its exceptions are dropped, and
 * nobody waits for what it does with an event.
 *
 * Sessions, turns and attempts are spans: each has a start and exactly one end in every process it lived to see the end of. A
 * session's is `session_started` to `session_ended` or `session_released`, once per process that drove it; within it lie its
 * turns, within a turn its attempts, told apart by `taskId` and `attempt`. Where a process died there is no end, and the next
 * one says `recovered`.
 */
export interface AgentTracer {
  trace(event: TraceEvent): void;
  /**
   * The W3C trace context of a session that was started, or of one attempt, for whoever goes on with the trace elsewhere.
   * Asked after its start was traced; an exception is no context.
   */
  traceparent?(
    sessionId: string,
    attempt?: { readonly taskId: string; readonly attempt: number },
  ): string | undefined;
  /** Write out what is held back. Resolves soon, also when that cannot be done; never rejects. */
  flush?(): Promise<void>;
}

/** Values come as recorded text: who watches and does not look at them pays nothing. */
interface Traced {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

export type TraceEvent = Traced &
  (
    | {
        readonly type: "session_started";
        readonly agent: string;
        readonly version: string;
        readonly recovered: boolean;
        /** The trace it belongs to: its starter's, or the one it was first traced in. */
        readonly traceparent?: string;
      }
    /** `recovered`: it was begun before, in another process or before the session left memory. */
    | { readonly type: "turn_started"; readonly turn: number; readonly recovered: boolean }
    /** `interrupted`: the session was paused or released in the middle of it, or ended from outside. */
    | {
        readonly type: "turn_ended";
        readonly turn: number;
        readonly outcome: "checkpointed" | "completed" | "interrupted";
      }
    /** An attempt was handed to its executor, which may let it wait for a free slot. */
    | {
        readonly type: "task_started";
        readonly taskId: string;
        readonly kind: string;
        readonly attempt: number;
        readonly input: JsonText | undefined;
      }
    | {
        readonly type: "task_delta";
        readonly taskId: string;
        readonly kind: string;
        readonly attempt: number;
        readonly offset: number;
        readonly delta: TaskDelta;
      }
    | {
        readonly type: "task_ended";
        readonly taskId: string;
        readonly kind: string;
        readonly attempt: number;
        readonly outcome: "completed" | "failed" | "retrying" | "cancelled";
        readonly durationMs: number;
        readonly output?: JsonText | undefined;
        readonly error?: RecordedError;
      }
    /** Its process ended before it did; another attempt follows. */
    | {
        readonly type: "task_lost";
        readonly taskId: string;
        readonly kind: string;
        readonly attempt: number;
      }
    | {
        readonly type: "entry_appended";
        readonly entryId: string;
        readonly role: string;
        readonly content: JsonText;
      }
    /** Committed: this is what the session stands on. */
    | { readonly type: "waiting"; readonly waits: readonly Wait[] }
    /** It arrived while the session was live. */
    | { readonly type: "signal_received"; readonly name: string }
    | { readonly type: "committed"; readonly records: number; readonly nextSeq: number }
    | { readonly type: "warned"; readonly message: string }
    /** It ended for good, or was paused for a person to mend it. */
    | { readonly type: "session_ended"; readonly status: SessionStatus; readonly error?: RecordedError }
    /** It is driven here no longer, and stands as its last commit left it. */
    | { readonly type: "session_released"; readonly error?: RecordedError }
  );

/** A trace event without what every event has. */
export type TraceBody = TraceEvent extends infer E
  ? E extends unknown
    ? Omit<E, "sessionId" | "at">
    : never
  : never;
