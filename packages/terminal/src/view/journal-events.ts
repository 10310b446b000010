// A session's journal as numbered events (`JournalTail`), read from storage as it grows.
//
// Only what is committed is an event.

import { decodeJson, type JournalRecord, type Session, type StorageReader } from "@holdfast/core";
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
      const records = await this.#reader.journal(this.#sessionId, this.#nextSeq, PAGE_RECORDS);
      const contents = await this.#contents(records);
      for (const record of records) {
        const event = this.#events.event(record as PlainRecord, decodeJson(record.payload), contents);
        const by = await this.#by(record, event);
        const taken = onEvent(by === undefined ? event : { ...event, by });
        if (taken !== undefined) await taken;
      }
      this.#nextSeq = (records.at(-1)?.seq ?? this.#nextSeq - 1) + 1;
      if (records.length < PAGE_RECORDS) return;
    }
  }

  /** The person who gave an answer to a question. */
  async #by(record: JournalRecord, { prompt }: JournalEvent): Promise<string | undefined> {
    if (record.type !== "signal_received" || prompt === undefined) return undefined;
    return this.#principalOf?.(record.signalId);
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
}
