// What a group comes to: rows to be written, before they are rows.

import type { Amount, AuditRow, JournalRecord, NewEntry, Session, StoredSignal } from "@holdfast/core";
import type { Head } from "../tables/heads.ts";
import type { Item } from "../tables/items.ts";

/** Rows to be written, each with the session it belongs to. */
export interface Writes {
  readonly created: Map<string, Created>;
  /** Of those that are created: some below them may have stayed here while they were elsewhere. */
  readonly imported: Set<Head>;
  readonly changed: Set<Head>;
  readonly released: Set<Head>;
  /** Whose claim has shown that it can commit. */
  readonly proven: Set<Head>;
  readonly removed: Set<Head>;
  readonly journal: JournalRow[];
  readonly entries: { readonly head: Head; readonly entry: NewEntry; readonly createdAt: number }[];
  readonly signals: Map<string, { readonly head: Head; readonly signal: StoredSignal }>;
  readonly consumed: { readonly head: Head; readonly order: number }[];
  readonly seen: Map<string, { readonly head: Head; readonly mark: string }>;
  readonly holds: Map<
    string,
    { readonly head: Head; readonly task: number; readonly amount: Amount | undefined }
  >;
  readonly audit: AuditRow[];
  readonly texts: Map<string, { readonly head: Head; readonly address: string; readonly text: string }>;
  readonly items: Map<
    string,
    { readonly kind: string; readonly key: string; readonly item: Item | undefined }
  >;
}

export interface Created {
  readonly head: Head;
  /** With its content, as it was made. */
  readonly session: Session;
  readonly born: number;
  /** Of its claim, when it has one. */
  readonly leaseMs: number;
}

export interface JournalRow {
  readonly head: Head;
  readonly records: readonly JournalRecord[];
  readonly body: string;
  readonly committedAt: number;
}

export function noWrites(): Writes {
  return {
    created: new Map(),
    imported: new Set(),
    changed: new Set(),
    released: new Set(),
    proven: new Set(),
    removed: new Set(),
    journal: [],
    entries: [],
    signals: new Map(),
    consumed: [],
    seen: new Map(),
    holds: new Map(),
    audit: [],
    texts: new Map(),
    items: new Map(),
  };
}
