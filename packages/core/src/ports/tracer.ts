// `AgentTracer`: the port to observers of running sessions. It is called at every turn, task, token report,
// wait, error and commit, in every mode.

import type { RecordedError } from "../errors/recorded-error.ts";
import type { JsonText } from "../json/json.ts";
import type { SessionStatus, Wait } from "../session/session.ts";
import type { TaskDelta } from "./task-executor.ts";

/**
 * An observer of sessions. A tracer can neither throw into a session nor delay it. It is called
 * synchronously, its exceptions are dropped, and no caller waits for its work on an event.
 *
 * Sessions, turns and attempts are spans. Each has a start, and exactly one end in every process that lives
 * to see the end. A session's span is `session_started` to `session_ended` or `session_released`, once per
 * process that drove it. Its turns lie within that span, and a turn's attempts within the turn, distinguished
 * by `taskId` and `attempt`. Where a process died there is no end, and the next process says `recovered`.
 */
export interface AgentTracer {
  trace(event: TraceEvent): void;
  /**
   * The W3C trace context of a session that was started, or of one attempt, for a process that continues the
   * trace. It is called after the start was traced; an exception counts as no context.
   */
  traceparent?(
    sessionId: string,
    attempt?: { readonly taskId: string; readonly attempt: number },
  ): string | undefined;
  /**
   * The W3C trace context of the code that calls this function. It is called within `runtime.start`, and the
   * new session records it as the trace that it belongs to. An exception counts as no context.
   */
  callersTraceparent?(): string | undefined;
  /** Write out buffered events. Resolves soon, even if they cannot be written; never rejects. */
  flush?(): Promise<void>;
}

/** Values are recorded text, so a tracer that does not read them pays nothing. */
interface Traced {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** An event of a session, for tracers. */
export type TraceEvent = Traced &
  (
    | {
        readonly type: "session_started";
        readonly agent: string;
        readonly version: string;
        readonly recovered: boolean;
        /** The trace that the session belongs to: its starter's, or the trace of its first tracing. */
        readonly traceparent?: string;
      }
    /** `recovered`: the turn began before, in another process or before the session left memory. */
    | { readonly type: "turn_started"; readonly turn: number; readonly recovered: boolean }
    /** `interrupted`: the session was paused or released during the turn, or ended from outside. */
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
    /** The process of the attempt ended first; another attempt follows. */
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
    /** The waits of a commit, on which the session is blocked. */
    | { readonly type: "waiting"; readonly waits: readonly Wait[] }
    /** The signal arrived while the session was live. */
    | { readonly type: "signal_received"; readonly name: string }
    | { readonly type: "committed"; readonly records: number; readonly nextSeq: number }
    | { readonly type: "warned"; readonly message: string }
    /** The session ended for good, or was paused until a person fixes the cause. */
    | { readonly type: "session_ended"; readonly status: SessionStatus; readonly error?: RecordedError }
    /** This process no longer drives the session, whose state is that of its last commit. */
    | { readonly type: "session_released"; readonly error?: RecordedError }
  );

/** A trace event without what every event has. */
export type TraceBody = TraceEvent extends infer E
  ? E extends unknown
    ? Omit<E, "sessionId" | "at">
    : never
  : never;
