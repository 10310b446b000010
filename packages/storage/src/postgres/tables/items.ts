// `Item`: a schedule, a document or the end of the audit, each a row of the table `item`. The rows of the
// audit are here as well.

import type { AuditRow, Schedule } from "@holdfast/core";
import type { Row } from "../database/database.ts";
import { assertChecksum, checksum } from "./rows.ts";

/** A value under a kind and a key. `nextAt` is when it is due, epoch milliseconds. */
export interface Item {
  readonly version: number;
  readonly body: string;
  readonly nextAt: number | null;
}

export function itemChecksum(kind: string, key: string, { body, nextAt }: Omit<Item, "version">): number {
  return checksum([kind, key, nextAt, body]);
}

export function readItem(row: Row, at: string): Item & { readonly kind: string; readonly key: string } {
  const [kind, key] = [row["kind"] as string, row["key"] as string];
  const item = { body: row["body"] as string, nextAt: row["next_at"] as number | null };
  assertChecksum(at, "item", `${kind}/${key}`, row["checksum"], itemChecksum(kind, key, item));
  return { kind, key, version: row["version"] as number, ...item };
}

/** The kind of items that are schedules. */
export const SCHEDULE = "schedule";

export function readSchedule(body: string): Schedule {
  const schedule = JSON.parse(body) as Schedule;
  const { action } = schedule;
  // JSON leaves out an undefined field, and the port has it.
  return {
    ...schedule,
    action:
      action.type === "start" ? { ...action, input: action.input } : { ...action, payload: action.payload },
  };
}

/** The end of the audit's chain is an item. The rows of the audit have their own table. */
export const AUDIT = { kind: "audit", key: "last" } as const;

export function documentKind(collection: string): string {
  return `document:${collection}`;
}

export function auditChecksum(seq: number, body: string): number {
  return checksum([seq, body]);
}

export function readAudit(row: Row, at: string): AuditRow {
  const [seq, body] = [row["seq"] as number, row["body"] as string];
  assertChecksum(at, "audit", String(seq), row["checksum"], auditChecksum(seq, body));
  return JSON.parse(body) as AuditRow;
}
