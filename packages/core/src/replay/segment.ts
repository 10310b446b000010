// `Segment`: the records, effects and tasks of one segment, gathered while the agent runs, and taken out
// whole for the commit.
//
//   K3. A task is handed over only with the segment that asked for it: nothing starts before its batch is
//       committed.
//   K6. A fault cannot undo what was done outside. Outcomes that were delivered are salvaged as notes, and
//       the rest is dropped.
//
// This file has no journal to compare with and no open items. Callers do not pass it what replay found
// recorded.

import { isNote, isOutcome, type JournalRecord, type NoteRecord } from "../journal/record.ts";
import type { JsonText } from "../json/json.ts";
import type { Effect, NewEntry } from "../session/changes.ts";
import type { OpenTask } from "./open-items.ts";

/** The contents of one segment. */
export interface SealedSegment {
  readonly firstSeq: number;
  readonly records: readonly JournalRecord[];
  readonly entries: readonly NewEntry[];
  readonly consumed: readonly string[];
  readonly effects: readonly Effect[];
  /** The last reported progress. */
  readonly progress: JsonText | undefined;
  /** Whether everything of the session survives from here on. */
  readonly enablesPersistence: boolean;
  /** Tasks to start once the segment is committed, and positions whose attempts are to be aborted. */
  readonly newTasks: readonly OpenTask[];
  readonly withdrawnTasks: readonly number[];
}

const NONE: readonly never[] = [];

/** The ids of the sessions that effects create. */
export function createdBy(effects: readonly Effect[]): string[] {
  return effects.flatMap((effect) => (effect.type === "create_session" ? effect.sessionId : []));
}

/** The current segment, and every one after it: `seal` closes one and begins the next. */
export class Segment {
  #firstSeq: number;
  #records: JournalRecord[] = [];
  #entries: NewEntry[] = [];
  #consumed: string[] = [];
  #effects: Effect[] = [];
  #progress: JsonText | undefined;
  #enablesPersistence = false;
  #newTasks = new Set<OpenTask>();
  #withdrawnTasks: number[] = [];
  #chars = 0;

  constructor(firstSeq: number) {
    this.#firstSeq = firstSeq;
  }

  get isEmpty(): boolean {
    return this.#records.length === 0;
  }

  /** Whether its commit opens tasks. */
  get opensTasks(): boolean {
    return this.#newTasks.size > 0;
  }

  /** The length of all its texts: outcomes, commands, entries, effects and the progress. */
  get chars(): number {
    return this.#chars;
  }

  addRecord(record: JournalRecord): void {
    this.#records.push(record);
    this.#chars += record.payload?.length ?? 0;
  }

  addEntry(entry: NewEntry): void {
    this.#entries.push(entry);
    this.#chars += entry.content.length;
  }

  /** A signal that the commit consumes. */
  consume(signalId: string): void {
    this.#consumed.push(signalId);
  }

  /** An effect that the commit has on another session. */
  addEffect(effect: Effect): void {
    this.#effects.push(effect);
    this.#chars += charsOf(effect);
  }

  setProgress(text: JsonText): void {
    this.#chars += text.length - (this.#progress?.length ?? 0);
    this.#progress = text;
  }

  enablePersistence(): void {
    this.#enablesPersistence = true;
  }

  addTask(task: OpenTask): void {
    this.#newTasks.add(task);
  }

  /**
   * Drop a task whose outcome is no longer wanted. A task of this segment never starts; the attempt of an
   * older one is aborted.
   */
  withdrawTask(task: OpenTask): void {
    if (!this.#newTasks.delete(task)) this.#withdrawnTasks.push(task.id);
  }

  /** Everything since the last seal. The next segment begins at `nextSeq`. */
  seal(nextSeq: number): SealedSegment {
    const sealed: SealedSegment = {
      firstSeq: this.#firstSeq,
      records: this.#records,
      entries: this.#entries,
      consumed: this.#consumed,
      effects: this.#effects,
      progress: this.#progress,
      enablesPersistence: this.#enablesPersistence,
      newTasks: this.#newTasks.size === 0 ? NONE : [...this.#newTasks],
      withdrawnTasks: this.#withdrawnTasks,
    };
    this.#firstSeq = nextSeq;
    this.#records = [];
    this.#entries = [];
    this.#consumed = [];
    this.#effects = [];
    this.#progress = undefined;
    this.#enablesPersistence = false;
    if (this.#newTasks.size > 0) this.#newTasks = new Set();
    this.#withdrawnTasks = [];
    this.#chars = 0;
    return sealed;
  }

  /** After a fault. */
  salvage(at: number): SealedSegment {
    return salvaged(this.#firstSeq, this.#records, at);
  }
}

/**
 * The part of an uncommitted segment that is kept: its task outcomes, as notes, and its own notes. No effect
 * outside is lost then (K6).
 */
export function salvaged(firstSeq: number, records: readonly JournalRecord[], at: number): SealedSegment {
  const notes: NoteRecord[] = [];
  for (const record of records) {
    if (isNote(record) && record.type !== "drift_accepted")
      notes.push({ ...record, seq: firstSeq + notes.length });
    if (!isOutcome(record)) continue;
    notes.push({
      type: "outcome_kept",
      seq: firstSeq + notes.length,
      at,
      outcome: record.type,
      task: record.task,
      attempt: record.attempt,
      ...(record.usage === undefined ? {} : { usage: record.usage }),
      payload: record.payload,
    });
  }
  return {
    firstSeq,
    records: notes,
    entries: [],
    consumed: [],
    effects: [],
    progress: undefined,
    enablesPersistence: false,
    newTasks: [],
    withdrawnTasks: [],
  };
}

function charsOf(effect: Effect): number {
  if (effect.type === "send_signal") return effect.payload?.length ?? 0;
  if (effect.type !== "create_session") return 0;
  const { input, resumedFrom, shared } = effect;
  const value = shared?.kind === "custom" ? shared.value.length : 0;
  return (input?.length ?? 0) + (resumedFrom?.length ?? 0) + value;
}
