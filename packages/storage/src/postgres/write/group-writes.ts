// Writes: the result of a group, to be turned into rows.

import type { Amount, AuditRow, JournalRecord, NewEntry, Session, StoredSignal } from "@holdfast/core";
import type { Head } from "../tables/heads.ts";
import type { Item } from "../tables/items.ts";

/** The results of a group, each with the session that it belongs to. */
export interface Writes {
  readonly created: Map<string, Created>;
  /** Created sessions that were imported. A session that comes back may have left ended children here. */
  readonly imported: Set<Head>;
  readonly changed: Set<Head>;
  readonly released: Set<Head>;
  /** Released sessions whose holder was lost. */
  readonly lost: Set<Head>;
  /** Sessions with a claim under which a commit succeeded. */
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
  /** The last rows of the audit to remove, with all before them. */
  readonly auditEnds: number[];
  readonly texts: Map<string, { readonly head: Head; readonly address: string; readonly text: string }>;
  readonly items: Map<
    string,
    { readonly kind: string; readonly key: string; readonly item: Item | undefined }
  >;
}

export interface Created {
  readonly head: Head;
  /** The session with its content, as it was created. */
  readonly session: Session;
  readonly born: number;
  /** The lease of its claim, if it has one. */
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
    lost: new Set(),
    proven: new Set(),
    removed: new Set(),
    journal: [],
    entries: [],
    signals: new Map(),
    consumed: [],
    seen: new Map(),
    holds: new Map(),
    audit: [],
    auditEnds: [],
    texts: new Map(),
    items: new Map(),
  };
}
