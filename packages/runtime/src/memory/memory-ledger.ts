// `MemoryLedger`: schedules, documents and the audit of a storage in memory.

import { hash } from "node:crypto";
import type { AuditRow, LedgerPort, Schedule, StorageReader, StoredDocument } from "@holdfast/core";
import { MemorySchedules } from "./memory-schedules.ts";

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
}
