// `Ledger`: schedules, documents and the audit in the file.

import {
  type AuditRow,
  type JsonText,
  type LedgerPort,
  type Schedule,
  type StorageReader,
  type StoredDocument,
  unlessCorrupt,
} from "@holdfast/core";
import { rowChecksum, sha256 } from "./checksum.ts";
import type { SqlDriver, SqlRow, SqlValue } from "../file/driver.ts";
import { assertChecksum, list, marks, valuesOf } from "./row-checks.ts";
import type { Schedules } from "./schedules.ts";

const DOCUMENT_COLUMNS = ["collection", "id", "body", "version", "updated_at"];
const AUDIT_COLUMNS = ["seq", "at", "actor", "action", "object", "request_id", "details", "outcome", "hash"];

export const SELECT_DOCUMENT = `SELECT ${list(DOCUMENT_COLUMNS)}, checksum FROM document`;
export const SELECT_AUDIT = `SELECT ${list(AUDIT_COLUMNS)}, checksum FROM audit`;

export class Ledger implements LedgerPort {
  readonly hash = sha256;
  readonly schedules: Schedules;
  readonly #driver: SqlDriver;
  readonly #path: string;

  constructor(driver: SqlDriver, path: string, schedules: Schedules) {
    this.schedules = schedules;
    this.#driver = driver;
    this.#path = path;
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
    const row = this.#driver
      .prepare(`${SELECT_DOCUMENT} WHERE collection = ? AND id = ?`)
      .get(collection, id);
    return row === undefined ? undefined : readDocument(row, this.#path);
  }

  documents({ collection, after, limit }: Parameters<StorageReader["documents"]>[0]): StoredDocument[] {
    if (limit <= 0) return [];
    const page = this.#driver.prepare(
      `${SELECT_DOCUMENT} WHERE collection = ? AND id > ? ORDER BY id LIMIT ?`,
    );
    const found: StoredDocument[] = [];
    for (let behind = after ?? ""; found.length < limit;) {
      const asked = limit - found.length;
      const rows = page.all(collection, behind, asked);
      found.push(...rows.flatMap((row) => unlessCorrupt(() => readDocument(row, this.#path)) ?? []));
      if (rows.length < asked) break;
      behind = rows.at(-1)!["id"] as string;
    }
    return found;
  }

  putDocument(collection: string, { id, body, version, updatedAt }: StoredDocument): void {
    const values: SqlValue[] = [collection, id, body, version, updatedAt];
    this.#driver
      .prepare(
        `INSERT OR REPLACE INTO document (${list(DOCUMENT_COLUMNS)}, checksum) VALUES (${marks(DOCUMENT_COLUMNS)}, ?)`,
      )
      .run(...values, rowChecksum(values));
  }

  removeDocument(collection: string, id: string): void {
    this.#driver.prepare("DELETE FROM document WHERE collection = ? AND id = ?").run(collection, id);
  }

  audit({ after = 0, limit }: Parameters<StorageReader["audit"]>[0]): AuditRow[] {
    if (limit <= 0) return [];
    const page = this.#driver.prepare(`${SELECT_AUDIT} WHERE seq > ? ORDER BY seq LIMIT ?`);
    return page.all(after, limit).map((row) => readAuditRow(row, this.#path));
  }

  lastAudit(): AuditRow | undefined {
    const row = this.#driver.prepare(`${SELECT_AUDIT} ORDER BY seq DESC LIMIT 1`).get();
    return row === undefined ? undefined : readAuditRow(row, this.#path);
  }

  oldestAudit(limit: number): AuditRow[] {
    return this.audit({ limit });
  }

  removeAudit(through: number): void {
    this.#driver.prepare("DELETE FROM audit WHERE seq <= ?").run(through);
  }

  appendAudit({ seq, at, actor, action, object, requestId, details, outcome, hash }: AuditRow): void {
    const optional = [requestId ?? null, details ?? null];
    const values: SqlValue[] = [seq, at, actor, action, object, ...optional, outcome, hash];
    this.#driver
      .prepare(`INSERT INTO audit (${list(AUDIT_COLUMNS)}, checksum) VALUES (${marks(AUDIT_COLUMNS)}, ?)`)
      .run(...values, rowChecksum(values));
  }
}

export function readDocument(row: SqlRow, path: string): StoredDocument {
  const key = `${String(row["collection"])}/${String(row["id"])}`;
  assertChecksum(path, "document", key, row["checksum"], rowChecksum(valuesOf(row, DOCUMENT_COLUMNS)));
  return {
    id: row["id"] as string,
    body: row["body"] as JsonText,
    version: row["version"] as number,
    updatedAt: row["updated_at"] as number,
  };
}

export function readAuditRow(row: SqlRow, path: string): AuditRow {
  const seq = row["seq"] as number;
  assertChecksum(path, "audit", String(seq), row["checksum"], rowChecksum(valuesOf(row, AUDIT_COLUMNS)));
  const details = row["details"] as JsonText | null;
  const requestId = row["request_id"] as string | null;
  return {
    seq,
    at: row["at"] as number,
    actor: row["actor"] as string,
    action: row["action"] as string,
    object: row["object"] as string,
    ...(requestId === null ? {} : { requestId }),
    ...(details === null ? {} : { details }),
    outcome: row["outcome"] as string,
    hash: row["hash"] as string,
  };
}
