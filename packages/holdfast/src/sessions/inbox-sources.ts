// `InboxSources`: the sessions that may need a person, page by page, over the indexes of the storage.
//
//   inbox-sources-1. Each source is one status of one storage, and an index finds its pages. However many
//       sessions there are, a page of the inbox reads about as many rows as it shows.
//   inbox-sources-2. A cursor has one part for each source: the last session that was taken from it. It stays
//       valid while sessions come, go on and end. Deleting the session of a part makes it invalid.

import {
  DAY_MS,
  defined,
  UsageError,
  type Session,
  type SessionStatus,
  type StorageReader,
} from "@holdfast/core";

/** A session of a failed task whose effect is uncertain is in the inbox for this long after its end. */
const FAILED_DAYS = 7;
/** The most failed sessions that one page looks through. */
const FAILED_LOOKED_AT = 2_000;
const PAGE_SESSIONS = 200;
const STATUSES: readonly SessionStatus[] = ["input_required", "paused", "failed"];
const NONE = "-";

export interface Found<Place> {
  readonly session: Session;
  readonly place: Place;
}

interface Source<Place> {
  readonly place: Place;
  readonly reader: StorageReader;
  readonly status: SessionStatus;
  /** The last session that was taken. */
  after: string | undefined;
  page: Session[];
  /** The last session that was read. */
  read: string | undefined;
  isOver: boolean;
  looked: number;
}

export class InboxSources<Place> {
  readonly #sources: readonly Source<Place>[];
  readonly #now: number;

  /** @throws UsageError for a cursor that is none. */
  constructor(
    places: readonly { readonly place: Place; readonly reader: StorageReader }[],
    { cursor, now }: { readonly cursor: string | undefined; readonly now: number },
  ) {
    const parts = partsOf(cursor, places.length * STATUSES.length);
    this.#now = now;
    this.#sources = places
      .flatMap(({ place, reader }) => STATUSES.map((status) => ({ place, reader, status })))
      .map((source, at) => {
        const after = parts[at] === NONE ? undefined : parts[at];
        return { ...source, after, read: after, page: [], isOver: false, looked: 0 };
      });
  }

  /** The cursor behind everything that was taken. */
  get cursor(): string {
    return this.#sources.map(({ after }) => after ?? NONE).join(",");
  }

  /** The next session, the newest first; `undefined` when there is none left. */
  async take(): Promise<Found<Place> | undefined> {
    let newest: Source<Place> | undefined;
    for (const source of this.#sources) {
      const head = await this.#head(source);
      if (head === undefined) continue;
      if (newest === undefined || head.createdAt > newest.page[0]!.createdAt) newest = source;
    }
    const session = newest?.page.shift();
    if (newest === undefined || session === undefined) return undefined;
    newest.after = session.sessionId;
    return { session, place: newest.place };
  }

  async #head(source: Source<Place>): Promise<Session | undefined> {
    while (source.page.length === 0 && !source.isOver) {
      const { status, read } = source;
      const page = await source.reader.sessions({
        status,
        limit: PAGE_SESSIONS,
        ...defined({ before: read }),
      });
      source.read = page.at(-1)?.sessionId ?? read;
      source.looked += page.length;
      source.isOver =
        page.length < PAGE_SESSIONS || (status === "failed" && source.looked >= FAILED_LOOKED_AT);
      source.page = page.filter((session) => this.#needsSomebody(session));
    }
    return source.page[0];
  }

  #needsSomebody({ status, error, endedAt, move }: Session): boolean {
    if (move !== undefined) return false; // Its new place has it.
    if (status !== "failed") return true;
    const isRecent = endedAt !== undefined && endedAt > this.#now - FAILED_DAYS * DAY_MS;
    return isRecent && error?.name === "UncertainEffectError";
  }
}

/** inbox-sources-2. */
function partsOf(cursor: string | undefined, count: number): readonly string[] {
  if (cursor === undefined) return Array.from({ length: count }, () => NONE);
  const parts = cursor.split(",");
  if (parts.length === count && parts.every((part) => part === NONE || /^[\w.-]{1,100}$/.test(part)))
    return parts;
  throw new UsageError(`"${cursor.slice(0, 200)}" does not say where a page of the inbox ends`, {
    at: "--after",
    expected: "the text that the page before has shown",
    fix: "leave --after out to begin with the first page",
  });
}
