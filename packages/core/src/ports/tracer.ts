// Who watches. Called at every turn, task, token report, wait, error and commit, in every mode.

import type { RecordedError } from "../errors.ts";
import type { JsonText } from "../json.ts";
import type { SessionStatus, Wait } from "../session/session.ts";
import type { TaskDelta } from "./task-executor.ts";

/** A tracer can neither throw into nor delay what it watches: it is called synchronously and its exceptions are dropped. */
export interface AgentTracer {
  trace(event: TraceEvent): void;
}

/** Values come as recorded text: who watches and does not look at them pays nothing. */
interface Traced {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

export type TraceEvent = Traced &
  (
    | { readonly type: "session_started"; readonly agent: string; readonly recovered: boolean }
    | { readonly type: "turn_started"; readonly turn: number }
    | { readonly type: "turn_ended"; readonly turn: number }
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
    | {
        readonly type: "entry_appended";
        readonly entryId: string;
        readonly role: string;
        readonly content: JsonText;
      }
    | { readonly type: "waiting"; readonly waits: readonly Wait[] }
    | { readonly type: "signal_received"; readonly name: string }
    | { readonly type: "committed"; readonly records: number; readonly nextSeq: number }
    | { readonly type: "warned"; readonly message: string }
    | { readonly type: "session_ended"; readonly status: SessionStatus; readonly error?: RecordedError }
  );

/** A trace event without what every event has. */
export type TraceBody = TraceEvent extends infer E
  ? E extends unknown
    ? Omit<E, "sessionId" | "at">
    : never
  : never;
