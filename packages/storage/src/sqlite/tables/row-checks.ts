// Shared parts of reading a row of any table: its place, lists of columns, and the detection of rows that are
// not as written.

import { CorruptRecordError, type JsonText } from "@holdfast/core";
import type { SqlRow, SqlValue } from "../file/driver.ts";
import type { Blobs } from "./blobs.ts";

/** The context for reading a row: the file's name for errors, and the large texts that rows refer to. */
export interface RowPlace {
  readonly path: string;
  readonly blobs: Blobs;
}

/** For a row that refers to others. */
export interface RowSource extends RowPlace {
  /** The payload of the record at this position of a session's journal. */
  payloadAt(session: number, seq: number): JsonText | undefined;
}

export function corruptRow(
  path: string,
  table: string,
  row: string,
  message: string,
  got?: string,
): CorruptRecordError {
  return new CorruptRecordError(`${path}, table ${table}, row ${row}`, message, {
    ...(got === undefined ? {} : { got }),
    fix: "`holdfast doctor` shows what else is damaged; restore the file from a backup",
  });
}

export function assertChecksum(
  path: string,
  table: string,
  row: string,
  stored: unknown,
  computed: number,
): void {
  // mutant: damaged-row-believed
  if (stored === computed) return;
  throw corruptRow(
    path,
    table,
    row,
    "the row is not what was written",
    `checksum ${String(stored)} for content with ${computed}`,
  );
}

export function valuesOf(row: SqlRow, columns: readonly string[]): SqlValue[] {
  return columns.map((column) => row[column] ?? null);
}

export const list = (columns: readonly string[], prefix = ""): string =>
  columns.map((column) => prefix + column).join(", ");
export const marks = (columns: readonly string[]): string => columns.map(() => "?").join(", ");
