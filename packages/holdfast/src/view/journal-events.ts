// A session's journal as numbered events: each record, with what earlier ones say about it.
//
// A record refers to other records by number. An event names them: the kind of task, the signal, the
// question.
//
//   journal-events-1. An event's number is its position in the journal: the same in `run`, `resume` and `logs`, today
//       and tomorrow.
//   journal-events-2. Only what is committed is an event.

import {
  decodeJson,
  positionId,
  type AnswerShape,
  type RecordedError,
  type ChildRequest,
  type TokenUsage,
  type JournalRecord,
  type Question,
  type Session,
  type StorageReader,
} from "@holdfast/core";

/** One record of the journal, readable without the others. `type` is the record's. */
export interface JournalEvent {
  readonly seq: number;
  readonly type: JournalRecord["type"];
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
  readonly usage?: TokenUsage;
  /** The name of a signal or of a wait for a signal. */
  readonly name?: string;
  readonly prompt?: string;
  readonly details?: unknown;
  /** The form of answer that a question takes. */
  readonly takes?: AnswerShape;
  readonly expiresAt?: number;
  /** The id of an entry of the conversation. */
  readonly entryId?: string;
  readonly role?: string;
  readonly content?: unknown;
  /** The values that went in and came out. */
  readonly input?: unknown;
  readonly output?: unknown;
  readonly error?: RecordedError;
  readonly payload?: unknown;
  readonly payloads?: unknown;
  readonly state?: unknown;
  readonly retryAt?: number;
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

const PAGE_RECORDS = 500;

/** Reads a journal from its beginning, or from its last checkpoint, as far as it goes, again and again. */
export class JournalTail {
  readonly #reader: StorageReader;
  readonly #sessionId: string;
  readonly #tasks = new Map<number, OpenTask>();
  readonly #waits = new Map<number, { readonly name?: string; readonly prompt?: string }>();
  #nextSeq: number;
  #nextEntry = 0;
  #lastAt: number | undefined;

  /** @param fromSeq the position to begin at: the beginning of the journal, or a checkpoint. */
  constructor(reader: StorageReader, sessionId: string, fromSeq = 0) {
    this.#reader = reader;
    this.#sessionId = sessionId;
    this.#nextSeq = fromSeq;
  }

  /** Read to the present end, so that later events can name the records that they refer to. */
  async skip(session: Session): Promise<void> {
    if (session.checkpointSeq !== undefined) this.#nextSeq = session.checkpointSeq;
    await this.advance(() => {});
  }

  /** Hand over every event that was committed since, as fast as they are taken. */
  async advance(onEvent: (event: JournalEvent) => void | Promise<void>): Promise<void> {
    for (;;) {
      const records = await this.#reader.journal(this.#sessionId, this.#nextSeq, PAGE_RECORDS);
      const contents = await this.#contents(records);
      for (const record of records) {
        const taken = onEvent(this.#event(record, contents));
        if (taken !== undefined) await taken;
      }
      this.#nextSeq = (records.at(-1)?.seq ?? this.#nextSeq - 1) + 1;
      if (records.length < PAGE_RECORDS) return;
    }
  }

  /** The contents of the entries among these records: they stand beside the journal. */
  async #contents(records: readonly JournalRecord[]): Promise<Map<number, unknown>> {
    const contents = new Map<number, unknown>();
    const [first] = records;
    if (first?.type === "checkpoint") this.#nextEntry = first.entryCount;
    const wanted = records.filter((record) => record.type === "append_entry").length;
    if (wanted === 0) return contents;
    const entries = await this.#reader.entries(this.#sessionId, this.#nextEntry, wanted);
    for (const { id, content } of entries) contents.set(id, decodeJson(content));
    this.#nextEntry += wanted;
    return contents;
  }

  #event(record: JournalRecord, contents: ReadonlyMap<number, unknown>): JournalEvent {
    const { seq, type } = record;
    if ("at" in record) this.#lastAt = record.at;
    const payload = decodeJson(record.payload);
    const base = {
      seq,
      type,
      ...("id" in record ? { id: record.id } : {}),
      ...("at" in record ? { at: record.at } : {}),
    };
    switch (record.type) {
      case "schedule_task": {
        this.#tasks.set(record.id, { kind: record.kind, askedAt: this.#lastAt });
        return {
          ...base,
          ...this.#task(record.id),
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
          error: payload as RecordedError,
        };
      case "attempt_failed":
        return {
          ...base,
          ...this.#task(record.task),
          attempt: record.attempt,
          retryAt: record.retryAt,
          ...given(record, "usage"),
          error: payload as RecordedError,
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
        this.#waits.set(record.id, { name: record.name });
        return { ...base, name: record.name, mode: record.mode, ...given(record, "timeoutAt", "persists") };
      case "request_input": {
        const { prompt, details, answer } = payload as Question;
        this.#waits.set(record.id, { prompt });
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
          entryId: positionId(this.#sessionId, record.id),
          role: record.role,
          content: contents.get(record.id),
        };
      case "spawn_child":
        return {
          ...base,
          childId: positionId(this.#sessionId, record.id),
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
        return { ...base, childId: positionId(this.#sessionId, record.child), mode: record.mode };
      case "enable_persistence":
        return base;
      case "request_received":
        return { ...base, childId: positionId(this.#sessionId, record.child), ...(payload as ChildRequest) };
      case "forked":
        return { ...base, from: record.from, tasks: record.tasks };
      case "withdraw": {
        const tasks = record.targets.filter((id) => this.#tasks.has(id)).map((id) => this.#task(id));
        for (const id of record.targets) this.#tasks.delete(id);
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
        return { ...base, error: payload as RecordedError };
      case "warned":
        return { ...base, message: payload };
      case "started":
        return base;
    }
  }

  #task(id: number): NamedTask {
    const kind = this.#tasks.get(id)?.kind;
    return { task: id, taskId: positionId(this.#sessionId, id), ...(kind === undefined ? {} : { kind }) };
  }

  #ended(record: {
    readonly task: number;
    readonly attempt: number;
    readonly at: number;
  }): Partial<JournalEvent> {
    const askedAt = this.#tasks.get(record.task)?.askedAt;
    const named = this.#task(record.task);
    this.#tasks.delete(record.task);
    return {
      ...named,
      attempt: record.attempt,
      ...(askedAt === undefined ? {} : { durationMs: record.at - askedAt }),
    };
  }
}

function given<R extends object>(record: R, ...fields: (keyof R)[]): Partial<R> {
  return Object.fromEntries(
    fields.filter((field) => record[field] !== undefined).map((field) => [field, record[field]]),
  ) as Partial<R>;
}
