// `SessionList`: the sessions that a table shows, newest first, as far as they were read.
//
//   - The rows are in the order of the server and have no gap. `refresh` reads rows again and puts them in
//     place of the ones that were there.
//   - Rows beyond the ones that were read again stay as they were. In a search only the first page is read
//     again, and the rows behind it stay.
//   - When a row that a page was to begin behind is gone, the list is read from its beginning. The session
//     was deleted, or the database was replaced.
//   session-list-4. No index serves a search, so the server answers for a part of the table at a time. One
//       call asks at most `PARTS_MAX` times, and a person asks for more.
//   - A change shows its sessions at once. A page that was asked for before the change may be older, so
//     sessions of the change replace its rows, too. A newer state comes with a later change.

import { ApiError } from "./client.ts";
import { isEnded, type Session, type SessionPage } from "./types.ts";

export interface ListQuery {
  readonly status?: string;
  readonly agent?: string;
  readonly owner?: string;
  readonly parentSessionId?: string;
  readonly text?: string;
  readonly label?: string;
  readonly endedFrom?: string;
  readonly endedBefore?: string;
  readonly costFromMicroUsd?: string;
}

/** Whether there is a filter that no index serves. */
export function isSearch({ text, label, endedFrom, endedBefore, costFromMicroUsd }: ListQuery): boolean {
  return [text, label, endedFrom, endedBefore, costFromMicroUsd].some((value) => value !== undefined);
}

/** @param query what is asked for, with a cursor and a limit. */
export type ReadPage = (
  query: ListQuery & { readonly limit: number; readonly cursor?: string },
) => Promise<SessionPage>;

const PAGE = 200;
const PARTS_MAX = 10;

export class SessionList {
  readonly #read: ReadPage;
  readonly #query: ListQuery;
  readonly #listeners = new Set<() => void>();
  #rows: readonly Session[] = [];
  #hasMore = true;
  #loading: Promise<void> | undefined;
  /** The begin of the next part of a search. */
  #next: string | undefined;
  #searched = 0;
  #isOnePage = true;
  /** Reads under way, and the sessions that were shown meanwhile. */
  #reads = 0;
  readonly #shown = new Map<string, Session>();

  constructor(read: ReadPage, query: ListQuery) {
    this.#read = read;
    this.#query = query;
  }

  /** The same array until something changes. */
  get rows(): readonly Session[] {
    return this.#rows;
  }

  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** How many sessions a search has read. */
  get searched(): number {
    return this.#searched;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Reads the next rows. Calls while it reads are the same call. */
  loadMore(): Promise<void> {
    if (!this.#hasMore) return Promise.resolve();
    return (this.#loading ??= this.#load().finally(() => (this.#loading = undefined)));
  }

  async #load(): Promise<void> {
    if (isSearch(this.#query)) return this.#searchOn();
    const cursor = this.#rows.at(-1)?.sessionId;
    const page = await this.#page(PAGE, cursor).catch((error: unknown) => {
      if (cursor === undefined || !isUnknownCursor(error)) throw error;
      return undefined;
    });
    // The row that the page begins behind is gone.
    if (page === undefined) return this.refresh(0, this.#rows.length);
    if (cursor !== this.#rows.at(-1)?.sessionId) return; // Another read came first.
    this.#hasMore = page.nextCursor !== undefined;
    this.#set([...this.#rows, ...page.sessions]);
  }

  /** session-list-4. */
  async #searchOn(): Promise<void> {
    let found: readonly Session[] = [];
    for (let part = 0; part < PARTS_MAX && found.length < PAGE && this.#hasMore; part++) {
      this.#isOnePage = this.#next === undefined;
      const page = await this.#page(PAGE, this.#next).catch((error: unknown) => {
        if (!isUnknownCursor(error)) throw error;
        return undefined;
      });
      if (page === undefined) return this.#searchFromBegin(); // The row that the page begins behind is gone.
      found = [...found, ...page.sessions];
      this.#searched += page.searched ?? 0;
      this.#next = page.nextCursor;
      this.#hasMore = page.nextCursor !== undefined;
    }
    const known = new Set(this.#rows.map(({ sessionId }) => sessionId));
    this.#set([...this.#rows, ...found.filter(({ sessionId }) => !known.has(sessionId))]);
    this.#notify(); // The number of sessions that were read has changed.
  }

  #searchFromBegin(): Promise<void> {
    this.#next = undefined;
    this.#searched = 0;
    this.#set([]);
    return this.#searchOn();
  }

  async #searchAgain(): Promise<void> {
    const page = await this.#page(PAGE, undefined);
    if (this.#isOnePage) {
      this.#next = page.nextCursor;
      this.#hasMore = page.nextCursor !== undefined;
      this.#searched = page.searched ?? 0;
      return this.#set(page.sessions);
    }
    const last = page.sessions.at(-1)?.sessionId;
    const end = this.#rows.findIndex(({ sessionId }) => sessionId === last);
    const first = new Set(page.sessions.map(({ sessionId }) => sessionId));
    const behind = this.#rows.slice(end + 1).filter(({ sessionId }) => !first.has(sessionId));
    this.#set([...page.sessions, ...behind]);
  }

  /** Reads `count` rows again from a position on. */
  async refresh(from: number, count: number): Promise<void> {
    if (isSearch(this.#query)) return this.#searchAgain();
    const before = this.#rows[from - 1]?.sessionId;
    const page = await this.#page(Math.max(1, Math.min(1_000, count)), before).catch((error: unknown) => {
      if (before === undefined || !isUnknownCursor(error)) throw error;
      return undefined;
    });
    // The row that the page begins behind is gone.
    if (page === undefined) return this.refresh(0, from + count);
    const start =
      before === undefined ? 0 : this.#rows.findIndex(({ sessionId }) => sessionId === before) + 1;
    const last = page.sessions.at(-1)?.sessionId;
    const end = this.#rows.findIndex(({ sessionId }) => sessionId === last);
    if (page.nextCursor === undefined) {
      this.#hasMore = false;
      this.#set([...this.#rows.slice(0, start), ...page.sessions]);
    } else if (end >= start) {
      this.#set([...this.#rows.slice(0, start), ...page.sessions, ...this.#rows.slice(end + 1)]);
    } else {
      this.#hasMore = true; // There are so many new ones that there would be a gap.
      this.#set([...this.#rows.slice(0, start), ...page.sessions]);
    }
  }

  /** Shows the newest states of sessions. @returns whether the list is as after a read. */
  show(sessions: readonly Session[]): boolean {
    const changed = new Map(sessions.map((session) => [session.sessionId, session]));
    if (this.#reads > 0) for (const session of sessions) this.#shown.set(session.sessionId, session);
    const known = new Set(this.#rows.map(({ sessionId }) => sessionId));
    this.#set(this.#rows.map((row) => changed.get(row.sessionId) ?? row));
    const { status } = this.#query;
    return (
      !isSearch(this.#query) &&
      sessions.every(
        (session) =>
          known.has(session.sessionId) &&
          (status === undefined || session.status === status) &&
          // Such a session may just have been deleted.
          !isEnded(session) &&
          session.movedTo === undefined,
      )
    );
  }

  async #page(limit: number, cursor: string | undefined): Promise<SessionPage> {
    this.#reads++;
    try {
      const page = await this.#read({ ...this.#query, limit, ...(cursor === undefined ? {} : { cursor }) });
      const sessions = page.sessions.map((session) => this.#shown.get(session.sessionId) ?? session);
      return { ...page, sessions };
    } finally {
      this.#reads--;
      if (this.#reads === 0) this.#shown.clear();
    }
  }

  #set(rows: readonly Session[]): void {
    const known = new Map(this.#rows.map((row) => [row.sessionId, row]));
    const kept = rows.map((row) => {
      const old = known.get(row.sessionId);
      return old !== undefined && JSON.stringify(old) === JSON.stringify(row) ? old : row;
    });
    if (kept.length === this.#rows.length && kept.every((row, at) => row === this.#rows[at])) return;
    this.#rows = kept;
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function isUnknownCursor(error: unknown): boolean {
  return error instanceof ApiError && error.fields.some(({ pointer }) => pointer === "/cursor");
}

export function listPath(query: ListQuery & { readonly limit: number; readonly cursor?: string }): string {
  const fields = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)]],
  );
  return `/v1/sessions?${new URLSearchParams(fields).toString()}`;
}
