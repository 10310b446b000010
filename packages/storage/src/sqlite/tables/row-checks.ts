// Helpers for reading rows of any table: lists of columns, and detection of rows that are not as written.

import { CorruptRecordError } from "@holdfast/core";
import type { SqlRow, SqlValue } from "../file/driver.ts";

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
