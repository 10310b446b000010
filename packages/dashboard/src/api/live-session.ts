// `LiveSession`: the row, the timeline and the conversation of one session as it runs, from its stream.
//
// Many events of one turn of the browser are one change, so that a fast session does not stall the page.

import {
  EventReader,
  JournalRows,
  TimelineBuilder,
  WorkItems,
  WorkProgress,
  type PlainRecord,
} from "@holdfast/proto/view";
import { call, toError, watchSession } from "./client.ts";
import type { Entry, JournalRecord, Session } from "./types.ts";

export interface LiveState {
  readonly session: Session | undefined;
  readonly timeline: TimelineBuilder;
  readonly journal: JournalRows;
  readonly entries: readonly Entry[];
  /** The entries as the work that was done. */
  readonly work: WorkItems;
  readonly progress: WorkProgress;
  /** Texts that models are writing, by the numbers of their tasks. They are not recorded. */
  readonly writing: ReadonlyMap<number, string>;
  /** Ids of the signals that the agent has taken. */
  readonly taken: ReadonlySet<string>;
  /** Why there is nothing new: the server is away, or has refused. */
  readonly error: Error | undefined;
}

/** From a change to what is shown. A screen of many records takes longer to make, and is made more rarely. */
const CHANGE_MS = 16;
const CHANGE_MS_EACH = 0.02;
const MAX_CHANGE_MS = 1_000;
const PAGE = 500;

export class LiveSession {
  readonly #sessionId: string;
  readonly #listeners = new Set<() => void>();
  readonly #abort = new AbortController();
  readonly #events: EventReader;
  readonly #taken = new Set<string>();
  readonly #writing = new Map<number, string>();
  #entries: Entry[] = [];
  #records = 0;
  #wanted = 0;
  #isReading = false;
  #isChanged = false;
  state: LiveState;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
    this.#events = new EventReader(sessionId);
    this.state = {
      session: undefined,
      timeline: new TimelineBuilder(),
      journal: new JournalRows(sessionId),
      entries: [],
      work: new WorkItems(),
      progress: new WorkProgress(),
      writing: this.#writing,
      taken: this.#taken,
      error: undefined,
    };
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  begin(): void {
    watchSession(this.#sessionId, {
      signal: this.#abort.signal,
      onBreak: (error) => this.#change({ error }),
      onEvent: ({ record, session, draft }) => {
        if (draft !== undefined) this.#draft(draft.task, draft.text);
        if (record !== undefined) this.#record(record as JournalRecord);
        if (session !== undefined) this.#change({ session: session as Session });
        this.#endTimeline();
      },
    }).catch((error: unknown) => this.#change({ error: toError(error) }));
  }

  #draft(task: number, text: string): void {
    if (text !== "" && this.state.progress.isRunning(task)) this.#writing.set(task, text);
    else this.#writing.delete(task);
    this.#change({});
  }

  end(): void {
    this.#abort.abort();
  }

  /** The journal of a session that was cancelled need not say that its waits have ended. */
  #endTimeline(): void {
    const { session } = this.state;
    if (session?.endedAt !== undefined && session.nextSeq <= this.#records)
      this.state.timeline.end(session.endedAt);
  }

  #record(record: JournalRecord): void {
    this.#records++;
    const payload = record.payload === undefined ? undefined : (JSON.parse(record.payload) as unknown);
    const event = this.#events.event(record as unknown as PlainRecord, payload);
    this.state.timeline.add(event);
    this.state.progress.event(event);
    // The record takes the place of the text.
    for (const task of this.#writing.keys())
      if (event.type === "append_entry" || !this.state.progress.isRunning(task)) this.#writing.delete(task);
    for (const id of record.signalIds ?? []) this.#taken.add(id);
    if (record.signalId !== undefined) this.#taken.add(record.signalId);
    this.state.journal.add(event);
    if (event.type === "append_entry") {
      this.#wanted++;
      void this.#readEntries();
    }
    this.#change({});
  }

  /** The contents of entries stand beside the journal. */
  async #readEntries(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      await Promise.resolve(); // The records that came together are read together.
      while (this.#entries.length < this.#wanted && !this.#abort.signal.aborted) {
        const path = `/v1/sessions/${encodeURIComponent(this.#sessionId)}/entries?from=${this.#entries.length}&limit=${PAGE}`;
        const { entries } = await call<{ readonly entries: readonly Entry[] }>("GET", path);
        if (entries.length === 0) break;
        this.#entries = [...this.#entries, ...entries];
        for (const entry of entries) this.state.work.add(entry);
        this.#change({});
      }
    } catch (error) {
      this.#change({ error: toError(error) });
    } finally {
      this.#isReading = false;
    }
  }

  #change(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change, entries: this.#entries };
    if (this.#isChanged) return;
    this.#isChanged = true;
    setTimeout(
      () => {
        this.#isChanged = false;
        for (const listener of this.#listeners) listener();
      },
      CHANGE_MS + Math.min(MAX_CHANGE_MS, this.#records * CHANGE_MS_EACH),
    ); // Many events of one turn of the browser are one change.
  }
}
