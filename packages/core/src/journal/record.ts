// `JournalRecord`: the commands, events and notes of a session in the order they happened, each at its `seq`.
//
//   - `seq` is a record's position. Commands, events and notes share one sequence, so a change in the number
//     of commands before an event, or before a commit, is found (K5). Commands also have a number of their
//     own, `id`, to which everything refers: `{session}-{id}` (K1).
//   - A command is a thing that the agent asked for, in the imperative. An event is a fact that was delivered
//     to the agent, in the past tense. A note is a fact that was not delivered, such as a lost attempt or a
//     warning; replay passes over it.
//   - `payload` is recorded JSON text of the user's. This file never reads it.
//   - `codec.ts` has the format. A field's meaning never changes, and new meanings get new types.

import type { JsonText } from "../json/json.ts";
import type { AnswerShape } from "./approval.ts";
import type { CancelCause, RemainingBudget } from "./amounts.ts";
import type { EffectClass, RetryPolicy } from "./task-policy.ts";

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
  /** Hash of the input. The input itself (`payload`) is kept only when it is small. */
  readonly hash: string;
  readonly key?: string;
  readonly timeoutMs?: number;
  /** When the task must have ended, over all attempts. Epoch milliseconds. */
  readonly deadlineAt?: number;
  readonly retry?: RetryPolicy;
  /** The class that the author declared, in sessions with the behaviour flag `declaresEffects`. */
  readonly effect?: EffectClass;
  /** Set when its repeats are counted, in sessions with the behaviour flag `recordsGuards`. */
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
  /** The time at which the session is cancelled without an answer (`input_timeout`). */
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
  readonly answer: boolean | RemainingBudget;
}

/** The creation of a child or, with `handOff`, of the successor. Its session id is `{session}-{id}`. */
export interface SpawnChild extends Command, Persisting {
  readonly type: "spawn_child";
  readonly agent: string;
  /** Hash of the input and the options. */
  readonly hash: string;
  readonly handOff?: true;
  /** The notices of the child that reach the session; all events when absent. */
  readonly notify?: "end" | "callback";
}

/** A command by which a minimal session becomes persistent. */
export interface Persisting {
  /** The session was minimal until this command (session-relations-2). */
  readonly persists?: true;
}

/** A signal for a child's inbox (its number), or for the parent's. `payload` is its content. */
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

/** The answer to a child's request, once the request's task has one. */
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

/** From here on everything of the session survives its process. */
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
 * Replay may start here: the agent is called again on `payload`, the state. With a `base`, `payload` patches
 * the state of the checkpoint before, and so on back to the checkpoint at `base`, whose state is whole.
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
  /** The graceful cancel that is under way, so that the agent still knows of it when it is called again. */
  readonly cancel?: CancelNotice;
  /** Children whose end the session's own end waits for, and which have not ended so far. */
  readonly awaited?: readonly number[];
  /** Calls of guarded tasks, and how often each has had the same result in a row. */
  readonly repeats?: readonly Repeat[];
}

/** A call of a guarded task, its last result, and how often in a row it had that result. */
export interface Repeat {
  /** The first 12 characters of hashes. */
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
  /** Epoch milliseconds, which `ctx.now()` returns until the next delivery. */
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

/** A wait that was asked for after a graceful cancel was answered with `CancelledError`. */
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

/** A child's request to a handler of this agent, scheduled at once. `payload` is the `ChildRequest`. */
export interface RequestReceived extends Event {
  readonly type: "request_received";
  readonly child: number;
  readonly signalId: string;
}

/** A request of a child to its parent. */
export interface ChildRequest {
  /** Number of the child's `request_parent` command. */
  readonly request: number;
  /** The session that asks and gets the answer. */
  readonly from: string;
  readonly name: string;
  readonly payload?: unknown;
}

/**
 * The journal before this event is the origin's, of which the session is a fork. Waits on the origin's
 * children reject, its open tasks run again or are cancelled, and the randomness is another.
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

/**
 * An attempt ended with an error and another follows, not before `retryAt`. `payload` is the `RecordedError`.
 */
export interface AttemptFailed extends Event {
  readonly type: "attempt_failed";
  readonly task: number;
  readonly attempt: number;
  readonly retryAt: number;
  /** The session was paused for it. The next attempt begins when it resumes, and this one does not count. */
  readonly paused?: true;
  /** Its process was stopped in order: it ran longer than the grace, or it had not begun and keeps its number. */
  readonly handedOver?: "running" | "waiting";
  readonly usage?: TokenUsage;
}

/** An attempt had no outcome when its process ended; the next follows. `begins`: it was handed over, and begins now. */
export interface AttemptLost extends Event {
  readonly type: "attempt_lost";
  readonly task: number;
  readonly attempt: number;
  readonly begins?: true;
}

/** An outcome that was kept although its segment could not be committed (K6). */
export interface OutcomeKept extends Event {
  readonly type: "outcome_kept";
  readonly outcome: "task_completed" | "task_failed";
  readonly task: number;
  readonly attempt: number;
  readonly usage?: TokenUsage;
}

/** A warning for people; `payload` is its text. */
export interface Warned extends Event {
  readonly type: "warned";
}

/** Positions whose recorded results were used although the code now asks with another input (K5). */
export interface DriftAccepted extends Event {
  readonly type: "drift_accepted";
  readonly positions: readonly number[];
}

export type NoteRecord = AttemptFailed | AttemptLost | OutcomeKept | Warned | DriftAccepted;

/** One record of a journal: a command of the agent, an event for it, or a note. */
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

function isEventType(type: JournalRecord["type"]): type is EventRecord["type"] {
  return EVENT_TYPES.has(type);
}

/** The part of a cancel that its agent sees. */
export function noticeOf({ deadlineAt, reason, cause }: CancelNotice): CancelNotice {
  return {
    deadlineAt,
    ...(reason === undefined ? {} : { reason }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** Whether an event is the outcome of a task, recorded or not. */
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

/** The question of `ctx.requestInput` to a person. */
export interface Question {
  readonly prompt: string;
  readonly details?: unknown;
  /** The shape of the answer. It is absent in questions from before shapes existed. */
  readonly answer?: AnswerShape;
}

/** The tokens that one model call used. Integers. */
export interface TokenUsage {
  readonly model: string;
  /** All tokens, also those that were read from and written to a cache. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  /** Millionths of a US dollar. Without it the cost is computed from prices. */
  readonly costMicroUsd?: number;
  /** It was charged, and shown, with signals of the task before its end. */
  readonly isCharged?: true;
}
