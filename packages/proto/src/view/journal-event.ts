// A session's journal as people read it. `PlainRecord` is a record as it is stored, and `JournalEvent` is
// what `journal/event-reader.ts` makes of it.

import type { AnswerKind } from "./question.ts";

/** The types of records. A journal of a newer version may have others, which are events without further fields. */
export type RecordType =
  | "append_entry"
  | "attempt_failed"
  | "attempt_lost"
  | "cancel_child"
  | "cancel_requested"
  | "checkpoint"
  | "complete"
  | "drift_accepted"
  | "enable_persistence"
  | "fail"
  | "forked"
  | "outcome_kept"
  | "record_probe"
  | "reply_child"
  | "request_input"
  | "request_parent"
  | "request_received"
  | "schedule_task"
  | "signal_ready"
  | "signal_received"
  | "spawn_child"
  | "start_timer"
  | "started"
  | "take_signals"
  | "task_completed"
  | "task_failed"
  | "tell_session"
  | "timer_fired"
  | "wait_cancelled"
  | "wait_signal"
  | "wait_timed_out"
  | "warned"
  | "withdraw";

/** An error as it was recorded. */
export interface PlainError {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly at?: string;
  readonly got?: string;
  readonly expected?: string;
  readonly fix?: string;
  readonly cause?: PlainError;
}

/** The usage that one call of a model reported. */
export interface PlainUsage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly costMicroUsd?: number;
}

/** A record of the journal. It is typed as if it had the fields of all types, and has only those of its own. */
export interface PlainRecord {
  readonly seq: number;
  readonly type: RecordType;
  readonly id?: number;
  readonly at?: number;
  readonly agent: string;
  readonly answer: unknown;
  readonly attempt: number;
  readonly cancelAt: number;
  readonly cause: unknown;
  readonly child: number;
  readonly deadlineAt: number;
  readonly expiresAt: number;
  readonly fireAt: number;
  readonly from: string;
  readonly handOff: boolean;
  readonly key: unknown;
  readonly kind: string;
  readonly mode: string;
  readonly name: string;
  readonly names: readonly string[];
  readonly outcome: string;
  readonly pattern: string;
  readonly persists: boolean;
  readonly positions: readonly number[];
  readonly probe: number;
  readonly reason: string;
  readonly request: number;
  readonly retryAt: number;
  readonly paused?: true;
  readonly handedOver?: "running" | "waiting";
  readonly begins?: true;
  readonly role: string;
  readonly targets: readonly number[];
  readonly task: number;
  readonly tasks: unknown;
  readonly timeoutAt: number;
  readonly timeoutMs: number;
  readonly timer: number;
  readonly to: unknown;
  readonly turn: number;
  readonly usage: PlainUsage;
  readonly wait: number;
}

/** One record of the journal, readable without the others. `type` is the record's. */
export interface JournalEvent {
  readonly seq: number;
  readonly type: RecordType;
  /** The number of a command, by which other records refer to it. */
  readonly id?: number;
  readonly at?: number;
  /** The number of a task. */
  readonly task?: number;
  readonly taskId?: string;
  readonly kind?: string;
  readonly attempt?: number;
  /** From the moment the task was asked for. */
  readonly durationMs?: number;
  /** The usage that an attempt reported. */
  readonly usage?: PlainUsage;
  /** The name of a signal or of a wait for a signal. */
  readonly name?: string;
  readonly prompt?: string;
  readonly details?: unknown;
  /** The form of answer that a question takes. */
  readonly takes?: Exclude<AnswerKind, undefined>;
  readonly expiresAt?: number;
  /** The id of an entry of the conversation. */
  readonly entryId?: string;
  readonly role?: string;
  readonly content?: unknown;
  /** The values that went in and came out. */
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: PlainError;
  readonly payload?: unknown;
  readonly payloads?: unknown;
  readonly state?: unknown;
  readonly retryAt?: number;
  readonly paused?: true;
  /** An orderly stop of its process ended the attempt, while it ran or before it began. */
  readonly handedOver?: "running" | "waiting";
  /** The attempt was not lost: it was handed over, and begins now. */
  readonly begins?: true;
  readonly fireAt?: number;
  readonly deadlineAt?: number;
  readonly turn?: number;
  readonly names?: readonly string[];
  /** Ids of what is withdrawn, and which of it are tasks. */
  readonly targets?: readonly number[];
  readonly withdrawn?: readonly NamedTask[];
  readonly positions?: readonly number[];
  readonly reason?: string;
  readonly message?: unknown;
  /** Other fields of the record. */
  readonly [field: string]: unknown;
}

export interface NamedTask {
  /** Number of the command that asked for it. */
  readonly task: number;
  readonly taskId: string;
  readonly kind?: string;
}

/**
 * Whether an attempt has ended and another one follows. An attempt that is handed over before it begins, and
 * begins elsewhere, is the same one.
 */
export function endsAttempt({ type, handedOver, begins }: JournalEvent): boolean {
  return type === "attempt_lost" ? begins !== true : type === "attempt_failed" && handedOver !== "waiting";
}
