// `MemoryLedger`: schedules, documents and the audit of a storage in memory.

import { hash } from "node:crypto";
import {
  type AuditRow,
  type LedgerPort,
  type Schedule,
  type StorageReader,
  type StoredDocument,
  type Queued,
  WakeQueue,
} from "@holdfast/core";

export class MemoryLedger implements LedgerPort {
  readonly schedules = new MemorySchedules();
  readonly audit: AuditRow[] = [];
  readonly #collections = new Map<string, Map<string, StoredDocument>>();

  hash(text: string): string {
    return hash("sha256", text, "base64url");
  }

  schedule(scheduleId: string): Schedule | undefined {
    return this.schedules.get(scheduleId);
  }

  putSchedule(schedule: Schedule): void {
    this.schedules.put(schedule);
  }

  removeSchedule(scheduleId: string): void {
    this.schedules.remove(scheduleId);
  }

  document(collection: string, id: string): StoredDocument | undefined {
    return this.#collections.get(collection)?.get(id);
  }

  /** The documents, sorted on each call: they are few, and people read them. */
  documents({ collection, after, limit }: Parameters<StorageReader["documents"]>[0]): StoredDocument[] {
    const documents = [...(this.#collections.get(collection)?.values() ?? [])];
    return documents
      .filter(({ id }) => after === undefined || id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  putDocument(collection: string, document: StoredDocument): void {
    const documents = this.#collections.get(collection);
    if (documents === undefined) this.#collections.set(collection, new Map([[document.id, document]]));
    else documents.set(document.id, document);
  }

  removeDocument(collection: string, id: string): void {
    this.#collections.get(collection)?.delete(id);
  }

  lastAudit(): AuditRow | undefined {
    return this.audit.at(-1);
  }

  appendAudit(row: AuditRow): void {
    this.audit.push(row);
  }

  oldestAudit(limit: number): readonly AuditRow[] {
    return this.audit.slice(0, limit);
  }

  removeAudit(through: number): void {
    this.audit.splice(0, through - this.#trimmed);
  }

  /** The rows behind a number. */
  auditAfter(after: number, limit: number): readonly AuditRow[] {
    const from = Math.max(0, after - this.#trimmed);
    return this.audit.slice(from, from + limit);
  }

  /** The number of the last row that was removed. */
  get #trimmed(): number {
    return (this.audit[0]?.seq ?? 1) - 1;
  }
}

interface Placed extends Queued {
  readonly schedule: Schedule;
}

/** Schedules by id and by when they fire next. The cost of a search depends only on how many are due. */
class MemorySchedules {
  readonly #byId = new Map<string, Placed>();
  readonly #byTime = new WakeQueue<Placed>();

  get(scheduleId: string): Schedule | undefined {
    return this.#byId.get(scheduleId)?.schedule;
  }

  put(schedule: Schedule): void {
    this.remove(schedule.scheduleId);
    const placed: Placed = { schedule, queuedFor: Infinity, queueIndex: -1 };
    this.#byId.set(schedule.scheduleId, placed);
    this.#byTime.set(placed, schedule.nextAt);
  }

  remove(scheduleId: string): void {
    const placed = this.#byId.get(scheduleId);
    if (placed === undefined) return;
    this.#byId.delete(scheduleId);
    this.#byTime.set(placed, Infinity);
  }

  /** All schedules, in the order in which they fire next. */
  all(): Schedule[] {
    return Array.from(this.#byId.values(), ({ schedule }) => schedule).sort(byNextAt);
  }

  /**
   * The schedules to fire by `now`, the earliest first, and the next time after that; `Infinity` when there
   * is none.
   */
  due(now: number): { readonly schedules: readonly Schedule[]; readonly nextAt: number } {
    const { items, nextAt } = this.#byTime.upTo(now);
    return { schedules: items.map(({ schedule }) => schedule).sort(byNextAt), nextAt };
  }
}

function byNextAt(a: Schedule, b: Schedule): number {
  return a.nextAt - b.nextAt || (a.scheduleId < b.scheduleId ? -1 : 1);
}
