// `EventReader`: a session's journal as numbered events. An event is a record with what earlier records say about it.
//
// A record refers to other records by number. An event names them: the kind of task, the signal, the question.
//
//   journal-event-1. An event's number is its position in the journal: the same in every command and on the page, today
//       and tomorrow.

import type { AnswerKind, AskedQuestion } from "./question.ts";

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

interface OpenTask {
  readonly kind: string;
  readonly askedAt: number | undefined;
}

/** Reads the records of one session in their order, from the beginning of the journal or from a checkpoint. */
export class EventReader {
  readonly #sessionId: string;
  readonly #tasks = new Map<number, OpenTask>();
  readonly #waits = new Map<number, { readonly name?: string; readonly prompt?: string }>();
  #lastAt: number | undefined;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /**
   * The event of the next record.
   *
   * @param payload the record's payload, decoded.
   * @param contents the contents of entries by the positions of their records.
   */
  event(
    record: PlainRecord,
    payload: unknown,
    contents: ReadonlyMap<number, unknown> = new Map(),
  ): JournalEvent {
    const { seq, type, at, id = seq } = record;
    if (at !== undefined) this.#lastAt = at;
    const base = { seq, type, ...given(record, "id", "at") };
    switch (record.type) {
      case "schedule_task": {
        this.#tasks.set(id, { kind: record.kind, askedAt: this.#lastAt });
        return {
          ...base,
          ...this.#task(id),
          input: payload,
          ...given(record, "key", "timeoutMs", "deadlineAt"),
        };
      }
      case "task_completed":
        return { ...base, ...this.#ended(record), ...given(record, "usage"), output: payload };
      case "task_failed":
        return {
          ...base,
          ...this.#ended(record),
          ...given(record, "usage"),
          error: payload as PlainError,
        };
      case "attempt_failed":
        return {
          ...base,
          ...this.#task(record.task),
          attempt: record.attempt,
          retryAt: record.retryAt,
          ...given(record, "paused", "handedOver"),
          ...given(record, "usage"),
          error: payload as PlainError,
        };
      case "attempt_lost":
        return { ...base, ...this.#task(record.task), attempt: record.attempt };
      case "outcome_kept":
        return {
          ...base,
          ...this.#task(record.task),
          attempt: record.attempt,
          outcome: record.outcome,
          kept: payload,
        };
      case "start_timer":
        return { ...base, fireAt: record.fireAt };
      case "wait_signal":
        this.#waits.set(id, { name: record.name });
        return { ...base, name: record.name, mode: record.mode, ...given(record, "timeoutAt", "persists") };
      case "request_input": {
        const { prompt, details, answer } = payload as AskedQuestion & {
          readonly answer?: Exclude<AnswerKind, undefined>;
        };
        this.#waits.set(id, { prompt });
        return {
          ...base,
          prompt,
          details,
          ...(answer === undefined ? {} : { takes: answer }),
          ...given(record, "expiresAt", "cancelAt"),
        };
      }
      case "take_signals":
        return {
          ...base,
          pattern: record.pattern,
          names: record.names,
          payloads: payload,
          ...given(record, "persists"),
        };
      case "signal_received":
        return { ...base, wait: record.wait, ...this.#waits.get(record.wait), payload };
      case "signal_ready":
      case "wait_timed_out":
      case "wait_cancelled":
        return { ...base, wait: record.wait, ...this.#waits.get(record.wait) };
      case "timer_fired":
        return { ...base, timer: record.timer };
      case "record_probe":
        return { ...base, probe: record.probe, answer: record.answer };
      case "append_entry":
        return {
          ...base,
          entryId: this.#idAt(id),
          role: record.role,
          content: contents.get(id),
        };
      case "spawn_child":
        return {
          ...base,
          childId: this.#idAt(id),
          agent: record.agent,
          ...given(record, "handOff", "persists"),
        };
      case "tell_session":
        return { ...base, to: record.to, name: record.name };
      case "request_parent":
        return { ...base, name: record.name, ...given(record, "persists") };
      case "reply_child":
        return { ...base, request: record.request };
      case "cancel_child":
        return { ...base, childId: this.#idAt(record.child), mode: record.mode };
      case "enable_persistence":
        return base;
      case "request_received":
        return { ...base, childId: this.#idAt(record.child), ...(payload as object) };
      case "forked":
        return { ...base, from: record.from, tasks: record.tasks };
      case "withdraw": {
        const tasks = record.targets
          .filter((target) => this.#tasks.has(target))
          .map((target) => this.#task(target));
        for (const target of record.targets) this.#tasks.delete(target);
        return { ...base, targets: record.targets, ...(tasks.length === 0 ? {} : { withdrawn: tasks }) };
      }
      case "checkpoint":
        this.#tasks.clear();
        this.#waits.clear();
        return { ...base, turn: record.turn, state: payload };
      case "cancel_requested":
        return { ...base, deadlineAt: record.deadlineAt, ...given(record, "reason", "cause") };
      case "drift_accepted":
        return { ...base, positions: record.positions };
      case "complete":
        return { ...base, output: payload };
      case "fail":
        return { ...base, error: payload as PlainError };
      case "warned":
        return { ...base, message: payload };
      case "started":
      default:
        return base;
    }
  }

  #idAt(seq: number): string {
    return `${this.#sessionId}-${seq}`;
  }

  #task(id: number): NamedTask {
    const kind = this.#tasks.get(id)?.kind;
    return { task: id, taskId: this.#idAt(id), ...(kind === undefined ? {} : { kind }) };
  }

  #ended(record: PlainRecord): Partial<JournalEvent> {
    const askedAt = this.#tasks.get(record.task)?.askedAt;
    const named = this.#task(record.task);
    this.#tasks.delete(record.task);
    return {
      ...named,
      attempt: record.attempt,
      ...(askedAt === undefined ? {} : { durationMs: (record.at ?? askedAt) - askedAt }),
    };
  }
}

function given<F extends keyof PlainRecord>(
  record: PlainRecord,
  ...fields: readonly F[]
): Partial<Pick<PlainRecord, F>> {
  return Object.fromEntries(
    fields.filter((field) => record[field] !== undefined).map((field) => [field, record[field]]),
  ) as Partial<Pick<PlainRecord, F>>;
}
