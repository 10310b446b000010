// `WorkingLedger`: schedules, documents and the audit in a group of changes.
//
// Every item is read before it is written, because what is stored decides between a new row and a change of a
// row.

import type { AuditLink, AuditRow, LedgerPort, Schedule, StoredDocument } from "@holdfast/core";
import { sha256 } from "../tables/rows.ts";
import { AUDIT, documentKind, readSchedule, SCHEDULE, type Item } from "../tables/items.ts";
import { nextVersion } from "../tables/heads.ts";
import { keyOf, Need, type Facts } from "./group-facts.ts";
import type { Writes } from "./group-writes.ts";

export class WorkingLedger implements LedgerPort {
  readonly hash = sha256;
  readonly #writes: Writes;
  readonly #facts: Facts;
  readonly #stamp: () => number;

  constructor(writes: Writes, { facts, stamp }: { readonly facts: Facts; readonly stamp: () => number }) {
    this.#writes = writes;
    this.#facts = facts;
    this.#stamp = stamp;
  }

  schedule(scheduleId: string): Schedule | undefined {
    const item = this.#item(SCHEDULE, scheduleId);
    return item === undefined ? undefined : readSchedule(item.body);
  }

  putSchedule(schedule: Schedule): void {
    this.#setItem(SCHEDULE, schedule.scheduleId, { body: JSON.stringify(schedule), nextAt: schedule.nextAt });
  }

  removeSchedule(scheduleId: string): void {
    this.#setItem(SCHEDULE, scheduleId, undefined);
  }

  document(collection: string, id: string): StoredDocument | undefined {
    const item = this.#item(documentKind(collection), id);
    return item === undefined ? undefined : (JSON.parse(item.body) as StoredDocument);
  }

  putDocument(collection: string, document: StoredDocument): void {
    this.#setItem(documentKind(collection), document.id, { body: JSON.stringify(document), nextAt: null });
  }

  removeDocument(collection: string, id: string): void {
    this.#setItem(documentKind(collection), id, undefined);
  }

  lastAudit(): AuditLink | undefined {
    const item = this.#item(AUDIT.kind, AUDIT.key);
    return item === undefined ? undefined : (JSON.parse(item.body) as AuditLink);
  }

  appendAudit(row: AuditRow): void {
    const { seq, hash } = row;
    this.#setItem(AUDIT.kind, AUDIT.key, { body: JSON.stringify({ seq, hash }), nextAt: null });
    this.#writes.audit.push(row);
  }

  oldestAudit(limit: number): readonly AuditRow[] {
    const rows = this.#facts.oldestAudit.get(limit);
    if (rows === undefined) throw new Need({ type: "oldest_audit", limit });
    const removed = this.#writes.auditEnds.at(-1) ?? 0;
    return rows.filter(({ seq }) => seq > removed);
  }

  removeAudit(through: number): void {
    this.#writes.auditEnds.push(through);
  }

  #item(kind: string, key: string): Pick<Item, "body" | "version"> | undefined {
    const written = this.#writes.items.get(keyOf(kind, key));
    if (written !== undefined) return written.item;
    const { items } = this.#facts;
    if (!items.has(keyOf(kind, key))) throw new Need({ type: "item", kind, key });
    return items.get(keyOf(kind, key));
  }

  #setItem(kind: string, key: string, item: Omit<Item, "version"> | undefined): void {
    const before = this.#item(kind, key) ?? { version: 0 };
    const stamped = item === undefined ? undefined : { ...item, version: nextVersion(before, this.#stamp()) };
    this.#writes.items.set(keyOf(kind, key), { kind, key, item: stamped });
  }
}
