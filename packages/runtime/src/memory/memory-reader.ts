// `MemoryReader`: the sessions in memory as people and tools read them.

import {
  type AuditRow,
  type Entry,
  type JournalRecord,
  readDedupMark,
  type Schedule,
  type SeenSignals,
  type Session,
  type SessionCounts,
  type StorageReader,
  type StoredDocument,
  type StoredSignal,
} from "@holdfast/core";
import type { MemoryLedger } from "./memory-ledger.ts";
import type { Rows } from "./memory-rows.ts";

export class MemoryReader implements StorageReader {
  readonly #rows: Rows;
  readonly #ledger: MemoryLedger;

  constructor(rows: Rows, ledger: MemoryLedger) {
    this.#rows = rows;
    this.#ledger = ledger;
  }

  async sessions(query: SessionQuery): Promise<readonly Session[]> {
    const { limit, before, oldestFirst } = query;
    const last = before === undefined ? undefined : this.#rows.find(before).position;
    const page: Session[] = [];
    if (limit <= 0) return page;
    const list = this.#rows.shortestFor(query);
    for (const { session } of oldestFirst === true ? list.above(last ?? -1) : list.below(last ?? Infinity)) {
      if (isAskedFor(session, query) && page.push(session) === limit) break;
    }
    return page;
  }

  async counts({ limit, ...query }: CountsQuery): Promise<SessionCounts> {
    if (Object.values(query).every((value) => value === undefined)) return this.#rows.counts(limit);
    const counts: { -readonly [status in keyof SessionCounts]: number } = {};
    for (const { status } of await this.sessions({ ...query, limit }))
      counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  async session(sessionId: string): Promise<Session | undefined> {
    return this.#rows.sessions.get(sessionId)?.session;
  }

  async journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]> {
    return this.#rows.sessions.get(sessionId)?.records.slice(fromSeq, fromSeq + limit) ?? [];
  }

  async entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]> {
    return this.#rows.sessions.get(sessionId)?.entries.slice(from, from + limit) ?? [];
  }

  async pendingSignals(sessionId: string): Promise<readonly StoredSignal[]> {
    return this.#rows.sessions.get(sessionId)?.pending.after(0) ?? [];
  }

  async seenSignals(sessionId: string): Promise<SeenSignals> {
    const seen = this.#rows.sessions.get(sessionId)?.seen;
    if (seen === undefined) return { ids: [], dedupKeys: [] };
    return { ids: [...seen.ids], dedupKeys: [...seen.dedupMarks].map(readDedupMark) };
  }

  async schedules(): Promise<readonly Schedule[]> {
    return this.#ledger.schedules.all();
  }

  async document(collection: string, id: string): Promise<StoredDocument | undefined> {
    return this.#ledger.document(collection, id);
  }

  async documents(query: Parameters<StorageReader["documents"]>[0]): Promise<readonly StoredDocument[]> {
    return this.#ledger.documents(query);
  }

  async audit({ after = 0, limit }: Parameters<StorageReader["audit"]>[0]): Promise<readonly AuditRow[]> {
    return this.#ledger.auditAfter(after, limit);
  }
}

type SessionQuery = Parameters<StorageReader["sessions"]>[0];
type CountsQuery = Parameters<StorageReader["counts"]>[0];

function isAskedFor({ status, agent, parent, placement }: Session, query: SessionQuery): boolean {
  return (
    (query.parent === undefined || parent?.sessionId === query.parent) &&
    (query.status === undefined || status === query.status) &&
    (query.agent === undefined || agent.name === query.agent) &&
    (query.owner === undefined || placement?.owner === query.owner)
  );
}
