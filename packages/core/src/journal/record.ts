// The journal: a session's commands and events in the order they happened, each at its `seq`.
//
//   record-1. `seq` is a record's position; commands, events and notes stand in one line. So the place of an event says
//       how many commands stood before it, and the journal's length how many stood before the commit: fewer or more is
//       seen (K5). Commands have a number of their own besides, `id`, which is what everything refers to:
//       `{session}-{id}` (K1).
//   record-2. A command is what the agent asked for (imperative); an event is a fact that was delivered to it (past
//       tense); a note is a fact that was not delivered (an attempt that was lost, a warning) and is passed over by
//       replay.
//   record-3. `payload` is recorded JSON text of the user's; it is never looked into here.
//   record-4. Format: see `codec.ts`; a field's meaning never changes, new meanings get new types.

import type { JsonText } from "../json/json.ts";
import type { AnswerShape } from "./approval.ts";
import type { CancelCause, Remaining } from "./amounts.ts";

/** Version of the journal's format, stored with each session. */
export const JOURNAL_FORMAT = 1;

interface At {
  readonly seq: number;
  readonly payload?: JsonText | undefined;
}

// ---- commands ----------------------------------------------------------------------------------------------------

interface Command extends At {
  /** Number of the command: 0, 1, 2, … over the whole session. */
  readonly id: number;
}

export interface ScheduleTask extends Command {
  readonly type: "schedule_task";
  readonly kind: string;
  /** Hash of the input; the input itself (`payload`) is kept only when it is small. */
  readonly hash: string;
  readonly key?: string;
  readonly timeoutMs?: number;
  /** When the task must have ended, over all attempts. Epoch milliseconds. */
  readonly deadlineAt?: number;
  readonly retry?: RetryPolicy;
  /** Its repeats are counted; of sessions with the behaviour flag `recordsGuards`. */
  readonly guarded?: true;
}

export interface StartTimer extends Command {
  readonly type: "start_timer";
  /** Epoch milliseconds. */
  readonly fireAt: number;
}

export interface WaitSignal extends Command, Persisting {
  readonly type: "wait_signal";
  readonly name: string;
  /** `consume` takes the signal when it is delivered; `ready` only says that one is pending. */
  readonly mode: "consume" | "ready";
  readonly timeoutAt?: number;
}

/** A question to a person. `payload` is the `Question`. Answered by a signal named `answerSignalName(id)`. */
export interface RequestInput extends Command {
  readonly type: "request_input";
  readonly hash: string;
  readonly expiresAt?: number;
  /** Without an answer by then the session is cancelled (`input_timeout`). */
  readonly cancelAt?: number;
}

/** Signals taken without waiting. `payload` is the list of their payloads, in the order of `signalIds`. */
export interface TakeSignals extends Command, Persisting {
  readonly type: "take_signals";
  readonly pattern: string;
  readonly signalIds: readonly string[];
  readonly names: readonly string[];
}

/** The changed answer of a conditional probe (H11). */
export interface RecordProbe extends Command {
  readonly type: "record_probe";
  readonly probe: string;
  readonly answer: boolean | Remaining;
}

/** Another session is to be run for this one, as its child or, with `handOff`, in its place. Named by `{session}-{id}`. */
export interface SpawnChild extends Command, Persisting {
  readonly type: "spawn_child";
  readonly agent: string;
  /** Of the input and the options. */
  readonly hash: string;
  readonly handOff?: true;
}

/** A command by which a minimal session becomes persistent. */
export interface Persisting {
  /** The session was minimal until this command; of sessions with the behaviour flags `persistsFamilies`, `persistsListeners`. */
  readonly persists?: true;
}

/** Something for a child's inbox (its number), or for the parent's. `payload` is what it is told. */
export interface TellSession extends Command {
  readonly type: "tell_session";
  readonly to: number | "parent";
  readonly name: string;
  readonly hash: string;
}

/** A question to the handler of the parent. Answered by a signal named `replyName(id)`. */
export interface RequestParent extends Command, Persisting {
  readonly type: "request_parent";
  readonly name: string;
  readonly hash: string;
}

/** The answer to a child's request, once its task has one. */
export interface ReplyChild extends Command {
  readonly type: "reply_child";
  readonly request: number;
  readonly hash: string;
}

export interface CancelChild extends Command {
  readonly type: "cancel_child";
  readonly child: number;
  readonly mode: "graceful" | "hard";
}

/** From here on everything survives the process. */
export interface EnablePersistence extends Command {
  readonly type: "enable_persistence";
}

/** The entry itself is stored beside the journal, under the command's `id`. */
export interface AppendEntry extends Command {
  readonly type: "append_entry";
  readonly role: string;
  readonly hash: string;
}

/** Open waits, timers and tasks whose answer is no longer wanted. */
export interface Withdraw extends Command {
  readonly type: "withdraw";
  readonly targets: readonly number[];
}

/**
 * Replay starts behind it, with the agent called anew on `payload`, the state. With a `base` the payload is a list of patches to
 * the state of the checkpoint before it, and so on back to the one at `base`, which holds its state whole.
 */
export interface Checkpoint extends Command {
  readonly type: "checkpoint";
  /** `seq` of a checkpoint's record. */
  readonly base?: number;
  readonly at: number;
  readonly turn: number;
  readonly entryCount: number;
  /** `id` of the entry that new entries hang under; absent while there is none. */
  readonly leaf?: number;
  readonly schemaVersion?: number;
  /** The graceful cancel that is under way, so that the re-entered agent still knows of it. */
  readonly cancel?: CancelNotice;
  /** Children whose end the session's own waits for, unheard so far. */
  readonly awaited?: readonly number[];
  /** Calls of guarded tasks, and how often each has had the same result. */
  readonly repeats?: readonly Repeat[];
}

/** A call, and the result it had so many times, the last time included. */
export interface Repeat {
  /** Hashes. */
  readonly call: string;
  readonly result: string;
  readonly count: number;
}

/** The agent returned; `payload` is its output. */
export interface Complete extends Command {
  readonly type: "complete";
}

/** The agent threw; `payload` is the `RecordedError`. */
export interface Fail extends Command {
  readonly type: "fail";
}

export type CommandRecord =
  | ScheduleTask
  | StartTimer
  | WaitSignal
  | RequestInput
  | TakeSignals
  | RecordProbe
  | AppendEntry
  | SpawnChild
  | TellSession
  | RequestParent
  | ReplyChild
  | CancelChild
  | EnablePersistence
  | Withdraw
  | Checkpoint
  | Complete
  | Fail;

// ---- events ------------------------------------------------------------------------------------------------------

interface Event extends At {
  /** Epoch milliseconds; what `ctx.now()` answers until the next delivery. */
  readonly at: number;
}

/** The first delivery of a session, and the first after each checkpoint: the agent function is called. */
export interface Started extends Event {
  readonly type: "started";
}

export interface TaskCompleted extends Event {
  readonly type: "task_completed";
  readonly task: number;
  readonly attempt: number;
  readonly usage?: TokenUsage;
}

/** `payload` is the `RecordedError` of the last attempt. */
export interface TaskFailed extends Event {
  readonly type: "task_failed";
  readonly task: number;
  readonly attempt: number;
  readonly usage?: TokenUsage;
}

export interface TimerFired extends Event {
  readonly type: "timer_fired";
  readonly timer: number;
}

export interface SignalReceived extends Event {
  readonly type: "signal_received";
  readonly wait: number;
  readonly signalId: string;
}

export interface SignalReady extends Event {
  readonly type: "signal_ready";
  readonly wait: number;
}

export interface WaitTimedOut extends Event {
  readonly type: "wait_timed_out";
  readonly wait: number;
}

/** A wait asked after a graceful cancel was answered with `CancelledError`. */
export interface WaitCancelled extends Event {
  readonly type: "wait_cancelled";
  readonly wait: number;
}

export interface CancelNotice {
  readonly deadlineAt: number;
  readonly reason?: string;
  readonly cause?: CancelCause;
}

/** A graceful cancel. Every open wait and timer rejects with it. */
export interface CancelRequested extends Event, CancelNotice {
  readonly type: "cancel_requested";
}

/** A child asks a handler of this agent: its task is scheduled at once, by the kernel. `payload` is the `ChildRequest`. */
export interface RequestReceived extends Event {
  readonly type: "request_received";
  readonly child: number;
  readonly signalId: string;
}

/** What a child asks of its parent. */
export interface ChildRequest {
  /** Number of the child's `request_parent` command. */
  readonly request: number;
  /** The session that asks and is answered. */
  readonly from: string;
  readonly name: string;
  /** The life it asks in, of a session that keeps no journal: the answer says the same. */
  readonly life?: number;
  readonly payload?: unknown;
}

/**
 * The journal up to here is another session's, this one goes on by itself: open waits on that one's children reject, its tasks
 * are done again or cancelled, and chance is another.
 */
export interface Forked extends Event {
  readonly type: "forked";
  readonly from: string;
  readonly seed: number;
  readonly tasks: "rerun" | "cancel";
}

export type EventRecord =
  | RequestReceived
  | Forked
  | Started
  | TaskCompleted
  | TaskFailed
  | TimerFired
  | SignalReceived
  | SignalReady
  | WaitTimedOut
  | WaitCancelled
  | CancelRequested;

// ---- notes -------------------------------------------------------------------------------------------------------

/** An attempt ended with an error and another follows, not before `retryAt`. `payload` is the `RecordedError`. */
export interface AttemptFailed extends Event {
  readonly type: "attempt_failed";
  readonly task: number;
  readonly attempt: number;
  readonly retryAt: number;
  readonly usage?: TokenUsage;
}

/** An attempt had no outcome when its process ended; the next one follows. */
export interface AttemptLost extends Event {
  readonly type: "attempt_lost";
  readonly task: number;
  readonly attempt: number;
}

/** An outcome kept although the segment it was delivered into could not be committed (K6). */
export interface OutcomeKept extends Event {
  readonly type: "outcome_kept";
  readonly outcome: "task_completed" | "task_failed";
  readonly task: number;
  readonly attempt: number;
  readonly usage?: TokenUsage;
}

/** Something a person should know of; `payload` is its text. */
export interface Warned extends Event {
  readonly type: "warned";
}

/** Positions whose recorded results stand although the code now asks with another input (K5). */
export interface DriftAccepted extends Event {
  readonly type: "drift_accepted";
  readonly positions: readonly number[];
}

export type NoteRecord = AttemptFailed | AttemptLost | OutcomeKept | Warned | DriftAccepted;

export type JournalRecord = CommandRecord | EventRecord | NoteRecord;

const EVENT_TYPES: ReadonlySet<string> = new Set([
  "started",
  "task_completed",
  "task_failed",
  "timer_fired",
  "signal_received",
  "signal_ready",
  "wait_timed_out",
  "wait_cancelled",
  "cancel_requested",
  "request_received",
  "forked",
] satisfies EventRecord["type"][]);

const NOTE_TYPES: ReadonlySet<string> = new Set([
  "attempt_failed",
  "attempt_lost",
  "outcome_kept",
  "warned",
  "drift_accepted",
] satisfies NoteRecord["type"][]);

const COMMAND_TYPES: ReadonlySet<string> = new Set([
  "schedule_task",
  "start_timer",
  "wait_signal",
  "request_input",
  "take_signals",
  "record_probe",
  "append_entry",
  "spawn_child",
  "tell_session",
  "request_parent",
  "reply_child",
  "cancel_child",
  "enable_persistence",
  "withdraw",
  "checkpoint",
  "complete",
  "fail",
] satisfies CommandRecord["type"][]);

/** Whether this version knows records of this type. */
export function isRecordType(type: unknown): type is JournalRecord["type"] {
  return (
    typeof type === "string" && (COMMAND_TYPES.has(type) || EVENT_TYPES.has(type) || NOTE_TYPES.has(type))
  );
}

export function isEvent(record: JournalRecord): record is EventRecord {
  return isEventType(record.type);
}

export function isEventType(type: JournalRecord["type"]): type is EventRecord["type"] {
  return EVENT_TYPES.has(type);
}

/** What of a cancel its agent is told. */
export function noticeOf({ deadlineAt, reason, cause }: CancelNotice): CancelNotice {
  return {
    deadlineAt,
    ...(reason === undefined ? {} : { reason }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** Whether it is the outcome of a task, recorded or not. */
export function isOutcome<E extends { readonly type: string }>(
  event: E,
): event is Extract<E, { readonly type: "task_completed" | "task_failed" }> {
  return event.type === "task_completed" || event.type === "task_failed";
}

export function isNote(record: JournalRecord): record is NoteRecord {
  return NOTE_TYPES.has(record.type);
}

export function isCommand(record: JournalRecord): record is CommandRecord {
  return COMMAND_TYPES.has(record.type);
}

/** How often and when a task is tried again. Delays in milliseconds. */
export interface RetryPolicy {
  /** All attempts, the first included, over all processes. */
  readonly maxAttempts?: number;
  readonly initialDelayMs?: number;
  readonly factor?: number;
  readonly maxDelayMs?: number;
  /** Errors with one of these names or codes are not tried again. */
  readonly nonRetryable?: readonly string[];
}

/** What is asked of a person by `ctx.requestInput`. */
export interface Question {
  readonly prompt: string;
  readonly details?: unknown;
  /** What it takes for an answer; not recorded of questions that were asked before there was a difference. */
  readonly answer?: AnswerShape;
}

/** What one model call used. Integers. */
export interface TokenUsage {
  readonly model: string;
  /** All of them, those read from and written to a cache included. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly costMicroUsd?: number;
}
