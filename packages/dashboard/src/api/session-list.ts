// `SessionList`: the sessions that a table shows, newest first, as far as they were read.
//
//   session-list-1. The rows are in the order of the server and have no gap. `refresh` reads rows again and puts them in place of the
//       ones that were there.
//   session-list-2. Rows beyond the ones that were read again stay as they were.
//   session-list-3. When a row that a page was to begin behind is gone, the list is read from its beginning. The session was deleted, or the
//       database was replaced.

import { ApiError } from "./client.ts";
import type { Session, SessionPage } from "./types.ts";

export interface ListQuery {
  readonly status?: string;
  readonly agent?: string;
  readonly owner?: string;
  readonly parentSessionId?: string;
}

/** @param query what is asked for, with a cursor and a limit. */
export type ReadPage = (
  query: ListQuery & { readonly limit: number; readonly cursor?: string },
) => Promise<SessionPage>;

const PAGE = 200;

export class SessionList {
  readonly #read: ReadPage;
  readonly #query: ListQuery;
  readonly #listeners = new Set<() => void>();
  #rows: readonly Session[] = [];
  #hasMore = true;
  #loading: Promise<void> | undefined;

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
    const cursor = this.#rows.at(-1)?.sessionId;
    const page = await this.#page(PAGE, cursor).catch((error: unknown) => {
      if (cursor === undefined || !isUnknownCursor(error)) throw error;
      return undefined;
    });
    if (page === undefined) return this.refresh(0, this.#rows.length); // session-list-3.
    if (cursor !== this.#rows.at(-1)?.sessionId) return; // Another read came first.
    this.#hasMore = page.nextCursor !== undefined;
    this.#set([...this.#rows, ...page.sessions]);
  }

  /** Reads `count` rows again from a position on (session-list-1). */
  async refresh(from: number, count: number): Promise<void> {
    const before = this.#rows[from - 1]?.sessionId;
    const page = await this.#page(Math.max(1, Math.min(1_000, count)), before).catch((error: unknown) => {
      if (before === undefined || !isUnknownCursor(error)) throw error;
      return undefined;
    });
    if (page === undefined) return this.refresh(0, from + count); // session-list-3.
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

  #page(limit: number, cursor: string | undefined): Promise<SessionPage> {
    return this.#read({ ...this.#query, limit, ...(cursor === undefined ? {} : { cursor }) });
  }

  #set(rows: readonly Session[]): void {
    const known = new Map(this.#rows.map((row) => [row.sessionId, row]));
    const kept = rows.map((row) => {
      const old = known.get(row.sessionId);
      return old !== undefined && JSON.stringify(old) === JSON.stringify(row) ? old : row;
    });
    if (kept.length === this.#rows.length && kept.every((row, at) => row === this.#rows[at])) return;
    this.#rows = kept;
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
