// partsOf: an imported journal in rows, for every adapter that stores journals in rows.

import type { JournalRecord } from "@holdfast/core";

const ROW_RECORDS = 64;

/**
 * The rows in which an imported journal is stored: like rows of commits, each ends with its checkpoint, if it
 * has one.
 */
export function* partsOf(records: readonly JournalRecord[]): Iterable<readonly JournalRecord[]> {
  let from = 0;
  for (let i = 0; i < records.length; i++) {
    const isFull = i - from >= ROW_RECORDS || records[i]!.type === "checkpoint" || i === records.length - 1;
    if (!isFull) continue;
    yield records.slice(from, i + 1);
    from = i + 1;
  }
}
