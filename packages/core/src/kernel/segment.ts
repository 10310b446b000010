// What one segment leaves behind: gathered while the agent goes on, taken out whole to be committed.
//
//   K3.  A task is handed over only with the segment that asked for it: nothing starts before its batch is committed.
//   K6.  A fault takes nothing back from the world: outcomes that were delivered are salvaged as notes, the rest is dropped.
//
// It knows no journal to compare with and no open items: what replay has recorded already is not given to it.

import { isNote, isOutcome, type JournalRecord, type NoteRecord } from "../journal/record.ts";
import type { JsonText } from "../json/json.ts";
import type { Effect, NewEntry } from "../session/changes.ts";
import type { OpenTask } from "./open-items.ts";

/** What one segment leaves behind. */
export interface SealedSegment {
  readonly firstSeq: number;
  readonly records: readonly JournalRecord[];
  readonly entries: readonly NewEntry[];
  readonly consumed: readonly string[];
  readonly effects: readonly Effect[];
  /** What was last said of the progress. */
  readonly progress: JsonText | undefined;
  /** Whether everything is to survive from here on. */
  readonly enablesPersistence: boolean;
  /** Tasks to start once this is committed, and positions whose attempts are to be aborted. */
  readonly newTasks: readonly OpenTask[];
  readonly withdrawnTasks: readonly number[];
}

const NONE: readonly never[] = [];

/** The sessions that effects make. */
export function createdBy(effects: readonly Effect[]): string[] {
  return effects.flatMap((effect) => (effect.type === "create_session" ? effect.sessionId : []));
}

/** The segment that goes on, and every one after it: `seal` closes one and begins the next. */
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

  /** How long all its texts are: of outcomes, commands, entries, effects, and the progress. */
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

  /** A signal that is gone once this is committed. */
  consume(signalId: string): void {
    this.#consumed.push(signalId);
  }

  /** Done to another session by the commit. */
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

  /** Its outcome is no longer wanted: one of this segment never starts, an older one is to be aborted. */
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

/** Of what could not be committed: the task outcomes in it, as notes, and its notes themselves, so that no effect is lost (K6). */
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
