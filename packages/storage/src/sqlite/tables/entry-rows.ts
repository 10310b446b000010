// Rows of entries in SQLite as values of the port, and back.
//
// An entry is checked against its checksum before anything is made of it (sqlite-rows-1).

import type { Entry, NewEntry } from "@holdfast/core";
import type { Blobs } from "./blobs.ts";
import { rowChecksum } from "./checksum.ts";
import type { SqlRow, SqlValue } from "../file/driver.ts";
import { assertChecksum, corruptRow, list, marks, valuesOf, type RowSource } from "./row-checks.ts";

export const ENTRY_COLUMNS = [
  "session",
  "seq",
  "idx",
  "parent",
  "role",
  "turn",
  "content",
  "blob",
  "record",
  "created_at",
];
export const INSERT_ENTRY = `INSERT INTO entry (${list(ENTRY_COLUMNS)}, checksum) VALUES (${marks(ENTRY_COLUMNS)}, ?)`;
export const SELECT_ENTRY = `SELECT ${list(ENTRY_COLUMNS)}, checksum FROM entry`;

/**
 * @param record position of the record of the session's journal whose payload the content is, if there is
 * one.
 */
export function entryValues(
  number: number,
  entry: NewEntry,
  record: number | undefined,
  createdAt: number,
  blobs: Blobs,
): SqlValue[] {
  const { id, index, parent, role, turn, content } = entry;
  const values = [
    number,
    id,
    index,
    parent ?? null,
    role,
    turn,
    ...blobs.toColumns(record === undefined ? content : undefined, number),
    record ?? null,
    createdAt,
  ];
  values.push(rowChecksum(values));
  return values;
}

export function readEntry(row: SqlRow, { path, blobs, payloadAt }: RowSource): Entry {
  const key = `${String(row["session"])}/${String(row["seq"])}`;
  // mutant: entry-row-unchecked
  assertChecksum(path, "entry", key, row["checksum"], rowChecksum(valuesOf(row, ENTRY_COLUMNS)));
  const record = row["record"] as number | null;
  const content =
    record === null
      ? blobs.fromColumns(row["content"], row["blob"])
      : payloadAt(row["session"] as number, record);
  if (content === undefined) throw corruptRow(path, "entry", key, "the entry has no content");
  return {
    id: row["seq"] as number,
    index: row["idx"] as number,
    ...(row["parent"] === null ? {} : { parent: row["parent"] as number }),
    role: row["role"] as string,
    turn: row["turn"] as number,
    content,
    createdAt: row["created_at"] as number,
  };
}
