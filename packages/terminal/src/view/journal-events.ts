// A session's journal as numbered events (`JournalTail`), read from storage as it grows.
//
// Only what is committed is an event. A tail in the process that commits does not read it back. Reading takes
// a tenth of the CPU time of a model's turn, and at a coordinator a request for each commit.

import {
  type AgentStorage,
  type Change,
  type CommitBatch,
  decodeJson,
  type Entry,
  type JournalRecord,
  type Session,
  storageWith,
  type StorageReader,
} from "@holdfast/core";
import { EventReader, type AskedQuestion, type JournalEvent, type PlainRecord } from "@holdfast/proto/view";

export type { JournalEvent } from "@holdfast/proto/view";

const PAGE_RECORDS = 500;

/** Takes the events before those that are followed. */
export interface Past {
  readonly fromSeq: number;
  event(event: JournalEvent): void;
}

/** Reads a journal from its beginning, or from its last checkpoint, as far as it goes, again and again. */
export class JournalTail {
  readonly #reader: StorageReader;
  readonly #sessionId: string;
  readonly #events: EventReader;
  readonly #principalOf: ((signalId: string) => Promise<string | undefined>) | undefined;
  #recent: RecentCommits | undefined;
  #nextSeq: number;
  #nextEntry = 0;

  /**
   * @param fromSeq the position to begin at: the beginning of the journal, or a checkpoint.
   * @param principalOf the person who gave an answer, by the id of its signal. Without it events do not say
   *   that.
   */
  constructor(
    reader: StorageReader,
    sessionId: string,
    fromSeq = 0,
    principalOf?: (signalId: string) => Promise<string | undefined>,
  ) {
    this.#reader = reader;
    this.#sessionId = sessionId;
    this.#events = new EventReader(sessionId);
    this.#principalOf = principalOf;
    this.#nextSeq = fromSeq;
  }

  /** The storage of a process that commits to this session itself: what it commits is not read back. */
  watch(storage: AgentStorage): AgentStorage {
    this.#recent = new RecentCommits(this.#sessionId);
    return this.#recent.watch(storage);
  }

  /** The next reading is from storage, which has what other processes have committed as well. */
  unwatch(): void {
    this.#recent = undefined;
  }

  /**
   * Read to the present end, so that later events can name the records that they refer to.
   *
   * @param past is given the events on the way. It may begin earlier than at the last checkpoint.
   * @returns the questions since the last checkpoint, by their numbers.
   */
  async skip(session: Session, past?: Past): Promise<ReadonlyMap<number, AskedQuestion>> {
    this.#nextSeq = past?.fromSeq ?? session.checkpointSeq ?? this.#nextSeq;
    const asked = new Map<number, AskedQuestion>();
    await this.advance((event) => {
      past?.event(event);
      const { type, id, prompt = "", details } = event;
      if (type === "checkpoint") asked.clear();
      if (type === "request_input" && id !== undefined) asked.set(id, { prompt, details });
    });
    return asked;
  }

  /** Hand over every event that was committed since, as fast as they are taken. */
  async advance(onEvent: (event: JournalEvent) => void | Promise<void>): Promise<void> {
    for (;;) {
      const recent = this.#recent?.take(this.#nextSeq);
      const records =
        recent?.records ?? (await this.#reader.journal(this.#sessionId, this.#nextSeq, PAGE_RECORDS));
      const contents = await this.#contents(records, recent?.entries);
      for (const record of records) {
        const event = this.#events.event(record as PlainRecord, decodeJson(record.payload), contents);
        const by = await this.#by(record, event);
        const taken = onEvent(by === undefined ? event : { ...event, by });
        if (taken !== undefined) await taken;
      }
      this.#nextSeq = (records.at(-1)?.seq ?? this.#nextSeq - 1) + 1;
      if (recent !== undefined || records.length < PAGE_RECORDS) return;
    }
  }

  /** The person who gave an answer to a question. */
  async #by(record: JournalRecord, { prompt }: JournalEvent): Promise<string | undefined> {
    if (record.type !== "signal_received" || prompt === undefined) return undefined;
    return this.#principalOf?.(record.signalId);
  }

  /** The contents of the entries among these records: they stand beside the journal. */
  async #contents(
    records: readonly JournalRecord[],
    known: RecordsWithEntries["entries"] | undefined,
  ): Promise<Map<number, unknown>> {
    const contents = new Map<number, unknown>();
    const [first] = records;
    if (first?.type === "checkpoint") this.#nextEntry = first.entryCount;
    const wanted = records.filter((record) => record.type === "append_entry").length;
    if (wanted === 0) return contents;
    const entries = known ?? (await this.#reader.entries(this.#sessionId, this.#nextEntry, wanted));
    for (const { id, content } of entries) contents.set(id, decodeJson(content));
    this.#nextEntry += wanted;
    return contents;
  }
}

/** A view that is further behind reads from storage. */
const RECORDS_MAX = 500;
const CHARS_MAX = 1_000_000;

/** Records that follow each other, and the entries that stand beside them. */
interface RecordsWithEntries {
  readonly records: readonly JournalRecord[];
  readonly entries: readonly Pick<Entry, "id" | "content">[];
}

/** The records of a session that this process has just committed. */
class RecentCommits {
  readonly #sessionId: string;
  #batches: CommitBatch[] = [];
  #records = 0;
  #chars = 0;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** The storage through which this process commits. */
  watch(storage: AgentStorage): AgentStorage {
    return storageWith(storage, {
      commit: async (changes, now) => {
        const results = await storage.commit(changes, now);
        for (const [index, change] of changes.entries())
          if (results[index]?.status === "committed") this.#keep(change);
        return results;
      },
    });
  }

  /** The records from `fromSeq` on, once. `undefined` where storage has to be read. */
  take(fromSeq: number): RecordsWithEntries | undefined {
    const batches = this.#batches;
    this.#clear();
    const first = batches.findIndex(({ firstSeq }) => firstSeq === fromSeq);
    if (first === -1) return undefined;
    const taken = batches.slice(first);
    return {
      records: taken.flatMap(({ records }) => records),
      entries: taken.flatMap(({ entries }) => entries),
    };
  }

  #clear(): void {
    this.#batches = [];
    this.#records = 0;
    this.#chars = 0;
  }

  #keep(change: Change): void {
    if (change.type !== "commit_batch" || change.sessionId !== this.#sessionId) return;
    if (change.records.length === 0) return;
    const last = this.#batches.at(-1);
    // The process may commit a batch again whose answer was lost, or after another process has committed.
    if (last !== undefined && change.firstSeq !== last.firstSeq + last.records.length) this.#clear();
    this.#batches.push(change);
    this.#records += change.records.length;
    this.#chars += charsOf(change);
    if (this.#records > RECORDS_MAX || this.#chars > CHARS_MAX) this.#clear();
  }
}

function charsOf({ records, entries }: CommitBatch): number {
  const ofRecords = records.reduce((sum, { payload = "" }) => sum + payload.length, 0);
  return entries.reduce((sum, { content }) => sum + content.length, ofRecords);
}
