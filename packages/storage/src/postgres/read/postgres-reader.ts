// `PostgresReader`: the reads of people and tools, as the port has them.

import type {
  AuditRow,
  Entry,
  JournalRecord,
  Schedule,
  SeenSignals,
  Session,
  SessionCounts,
  StorageReader,
  StoredDocument,
  StoredSignal,
} from "@holdfast/core";
import type { Database } from "../database/database.ts";
import type { Reads } from "./reads.ts";
import { countsOf } from "./session-page.ts";

/** The port's reader over `Reads`. */
export class PostgresReader implements StorageReader {
  readonly #db: Database;
  readonly #reads: Reads;
  readonly #guard: <T>(read: () => Promise<T>) => Promise<T>;

  /** @param guard turns what PostgreSQL throws into errors of ours. */
  constructor(db: Database, reads: Reads, guard: <T>(read: () => Promise<T>) => Promise<T>) {
    this.#db = db;
    this.#reads = reads;
    this.#guard = guard;
  }

  sessions(query: Parameters<StorageReader["sessions"]>[0]): Promise<readonly Session[]> {
    return this.#guard(() => this.#reads.sessions({ ...query, limit: Math.max(query.limit, 0) }));
  }

  counts(query: Parameters<StorageReader["counts"]>[0]): Promise<SessionCounts> {
    return this.#guard(async () => {
      const rows = await this.#db.run(...countsOf({ ...query, limit: Math.max(query.limit, 0) }));
      const counts = rows.map((row) => [row["status"] as string, row["sessions"] as number] as const);
      return Object.fromEntries(counts.filter(([, sessions]) => sessions > 0));
    });
  }

  session(sessionId: string): Promise<Session | undefined> {
    return this.#guard(() => this.#reads.session(sessionId));
  }

  journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]> {
    return this.#guard(async () => (limit <= 0 ? [] : this.#reads.journal(sessionId, fromSeq, limit)));
  }

  entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]> {
    return this.#guard(async () => (limit <= 0 ? [] : this.#reads.entries(sessionId, from, limit)));
  }

  pendingSignals(sessionId: string): Promise<readonly StoredSignal[]> {
    return this.#guard(() => this.#reads.signals(sessionId, 0));
  }

  seenSignals(sessionId: string): Promise<SeenSignals> {
    return this.#guard(() => this.#reads.seenSignals(sessionId));
  }

  schedules(): Promise<readonly Schedule[]> {
    return this.#guard(() => this.#reads.schedules());
  }

  document(collection: string, id: string): Promise<StoredDocument | undefined> {
    return this.#guard(() => this.#reads.document(collection, id));
  }

  documents({
    collection,
    after = "",
    limit,
  }: Parameters<StorageReader["documents"]>[0]): Promise<readonly StoredDocument[]> {
    return this.#guard(() => this.#reads.documents(collection, after, Math.max(limit, 0)));
  }

  audit({ after = 0, limit }: Parameters<StorageReader["audit"]>[0]): Promise<readonly AuditRow[]> {
    return this.#guard(() => this.#reads.audit(after, Math.max(limit, 0)));
  }
}
