// `EventReader`: a session's journal as numbered events. An event is a record with what earlier records say
// about it.
//
// A record refers to other records by number. An event names them: the kind of task, the signal, the
// question. An event's number is its position in the journal: the same in every command and on the page,
// today and tomorrow.

import type { JournalEvent, NamedTask, PlainError, PlainRecord, RecordType } from "../journal-event.ts";
import type { AnswerKind, AskedQuestion } from "../question.ts";

type Fields = Partial<JournalEvent>;

/** Reads the records of one session in their order, from the beginning of the journal or from a checkpoint. */
export class EventReader {
  readonly #earlier: EarlierRecords;

  constructor(sessionId: string) {
    this.#earlier = new EarlierRecords(sessionId);
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
    if (at !== undefined) this.#earlier.lastAt = at;
    const base = { seq, type, ...given(record, "id", "at") };
    if (!Object.hasOwn(FIELDS, type)) return base; // A type of a newer version.
    return {
      ...base,
      ...FIELDS[type]({ record, id, payload, content: contents.get(id), earlier: this.#earlier }),
    };
  }
}

interface OpenTask {
  readonly kind: string;
  readonly askedAt: number | undefined;
}

interface OpenWait {
  readonly name?: string;
  readonly prompt?: string;
}

/** The open commands of earlier records, to which later records refer by number. */
class EarlierRecords {
  readonly #sessionId: string;
  readonly #tasks = new Map<number, OpenTask>();
  readonly #waits = new Map<number, OpenWait>();
  /** The time of the last record that has one. */
  lastAt: number | undefined;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  idAt(seq: number): string {
    return `${this.#sessionId}-${seq}`;
  }

  beginTask(id: number, kind: string): NamedTask {
    this.#tasks.set(id, { kind, askedAt: this.lastAt });
    return this.task(id);
  }

  task(id: number): NamedTask {
    const kind = this.#tasks.get(id)?.kind;
    return { task: id, taskId: this.idAt(id), ...(kind === undefined ? {} : { kind }) };
  }

  endTask(record: PlainRecord): Fields {
    const askedAt = this.#tasks.get(record.task)?.askedAt;
    const named = this.task(record.task);
    this.#tasks.delete(record.task);
    return {
      ...named,
      attempt: record.attempt,
      ...(askedAt === undefined ? {} : { durationMs: (record.at ?? askedAt) - askedAt }),
    };
  }

  /** @returns the tasks among what is withdrawn. */
  withdraw(ids: readonly number[]): readonly NamedTask[] {
    const tasks = ids.filter((id) => this.#tasks.has(id)).map((id) => this.task(id));
    for (const id of ids) this.#tasks.delete(id);
    return tasks;
  }

  beginWait(id: number, wait: OpenWait): void {
    this.#waits.set(id, wait);
  }

  /** The wait that a record ends, by its number and its name. */
  waitOf({ wait }: PlainRecord): Fields {
    return { wait, ...this.#waits.get(wait) };
  }

  /** No record behind a checkpoint refers to one before it. */
  forget(): void {
    this.#tasks.clear();
    this.#waits.clear();
  }
}

/** A record that becomes an event. */
interface Reading {
  readonly record: PlainRecord;
  /** The number by which later records refer to it. */
  readonly id: number;
  readonly payload: unknown;
  /** The content of its entry. */
  readonly content: unknown;
  readonly earlier: EarlierRecords;
}

/** The fields of an event beside those that all events have, by the type of its record. */
const FIELDS: Readonly<Record<RecordType, (reading: Reading) => Fields>> = {
  // Tasks.
  schedule_task: ({ record, id, payload, earlier }) => ({
    ...earlier.beginTask(id, record.kind),
    input: payload,
    ...given(record, "key", "timeoutMs", "deadlineAt"),
  }),
  task_completed: ({ record, payload, earlier }) => ({
    ...earlier.endTask(record),
    ...given(record, "usage"),
    output: payload,
  }),
  task_failed: ({ record, payload, earlier }) => ({
    ...earlier.endTask(record),
    ...given(record, "usage"),
    error: payload as PlainError,
  }),
  attempt_failed: ({ record, payload, earlier }) => ({
    ...earlier.task(record.task),
    attempt: record.attempt,
    retryAt: record.retryAt,
    ...given(record, "paused", "handedOver"),
    ...given(record, "usage"),
    error: payload as PlainError,
  }),
  attempt_lost: ({ record, earlier }) => ({
    ...earlier.task(record.task),
    attempt: record.attempt,
    ...given(record, "begins"),
  }),
  outcome_kept: ({ record, payload, earlier }) => ({
    ...earlier.task(record.task),
    attempt: record.attempt,
    outcome: record.outcome,
    kept: payload,
  }),
  withdraw: ({ record, earlier }) => {
    const withdrawn = earlier.withdraw(record.targets);
    return { targets: record.targets, ...(withdrawn.length === 0 ? {} : { withdrawn }) };
  },

  // Waits, and what ends them.
  start_timer: ({ record }) => ({ fireAt: record.fireAt }),
  timer_fired: ({ record }) => ({ timer: record.timer }),
  wait_signal: ({ record, id, earlier }) => {
    const { name, mode } = record;
    earlier.beginWait(id, { name });
    return { name, mode, ...given(record, "timeoutAt", "persists") };
  },
  request_input: ({ record, id, payload, earlier }) => {
    const { prompt, details, answer } = payload as AskedQuestion & {
      readonly answer?: Exclude<AnswerKind, undefined>;
    };
    earlier.beginWait(id, { prompt });
    return {
      prompt,
      details,
      ...(answer === undefined ? {} : { takes: answer }),
      ...given(record, "expiresAt", "cancelAt"),
    };
  },
  take_signals: ({ record, payload }) => ({
    pattern: record.pattern,
    names: record.names,
    payloads: payload,
    ...given(record, "persists"),
  }),
  signal_received: ({ record, payload, earlier }) => ({ ...earlier.waitOf(record), payload }),
  signal_ready: ({ record, earlier }) => earlier.waitOf(record),
  wait_timed_out: ({ record, earlier }) => earlier.waitOf(record),
  wait_cancelled: ({ record, earlier }) => earlier.waitOf(record),

  // Other sessions.
  spawn_child: ({ record, id, earlier }) => ({
    childId: earlier.idAt(id),
    agent: record.agent,
    ...given(record, "handOff", "persists"),
  }),
  cancel_child: ({ record, earlier }) => ({ childId: earlier.idAt(record.child), mode: record.mode }),
  request_received: ({ record, payload, earlier }) => ({
    childId: earlier.idAt(record.child),
    ...(payload as object),
  }),
  reply_child: ({ record }) => ({ request: record.request }),
  request_parent: ({ record }) => ({ name: record.name, ...given(record, "persists") }),
  tell_session: ({ record }) => ({ to: record.to, name: record.name }),

  // The session itself.
  started: () => ({}),
  forked: ({ record }) => ({ from: record.from, tasks: record.tasks }),
  enable_persistence: () => ({}),
  append_entry: ({ record, id, content, earlier }) => ({
    entryId: earlier.idAt(id),
    role: record.role,
    content,
  }),
  record_probe: ({ record }) => ({ probe: record.probe, answer: record.answer }),
  warned: ({ payload }) => ({ message: payload }),
  drift_accepted: ({ record }) => ({ positions: record.positions }),
  cancel_requested: ({ record }) => ({
    deadlineAt: record.deadlineAt,
    ...given(record, "reason", "cause"),
  }),
  checkpoint: ({ record, payload, earlier }) => {
    earlier.forget();
    return { turn: record.turn, state: payload };
  },
  complete: ({ payload }) => ({ output: payload }),
  fail: ({ payload }) => ({ error: payload as PlainError }),
};

function given<F extends keyof PlainRecord>(
  record: PlainRecord,
  ...fields: readonly F[]
): Partial<Pick<PlainRecord, F>> {
  return Object.fromEntries(
    fields.filter((field) => record[field] !== undefined).map((field) => [field, record[field]]),
  ) as Partial<Pick<PlainRecord, F>>;
}
