// `StateRows` writes the rows of `state`, each with all or some of its columns.
//
//   - SQLite writes every index with a column that an UPDATE names, even with the same value again. Most changes
//     are those of a session that goes on as before, and name only columns that are in no index.

import { invariant, type Session } from "@holdfast/core";
import type { SqlDriver, SqlStatement } from "../file/driver.ts";
import type { Blobs } from "../tables/blobs.ts";
import { list, marks } from "../tables/row-checks.ts";
import { STATE_COLUMNS, stateValues, steadyValues } from "../tables/rows.ts";

const COLUMNS = [...STATE_COLUMNS, "checksum"];
/** All but those of `steadyValues` and the output. */
const PROGRESS_COLUMNS = [
  "waits",
  "checkpoint_seq",
  "next_seq",
  "entry_count",
  "turn",
  "inbox",
  "rest",
  "updated_at",
  "checksum",
];
const PROGRESS_PLACES = PROGRESS_COLUMNS.map((column) => COLUMNS.indexOf(column));

export class StateRows {
  readonly #blobs: Blobs;
  readonly #insert: SqlStatement;
  readonly #update: SqlStatement;
  readonly #updateProgress: SqlStatement;

  constructor(driver: SqlDriver, blobs: Blobs) {
    this.#blobs = blobs;
    this.#insert = driver.prepare(`INSERT INTO state (${list(COLUMNS)}) VALUES (${marks(COLUMNS)})`);
    this.#update = driver.prepare(updateOf(COLUMNS.slice(1)));
    this.#updateProgress = driver.prepare(updateOf(PROGRESS_COLUMNS));
  }

  insert(number: number, session: Session): void {
    this.#insert.run(...stateValues(number, session, this.#blobs));
  }

  /** @param before as the row has it, where the columns of `PROGRESS_COLUMNS` may be older. */
  update(number: number, before: Session, after: Session): void {
    const values = stateValues(number, after, this.#blobs);
    const updated = isProgress(before, after)
      ? this.#updateProgress.run(number, ...PROGRESS_PLACES.map((place) => values[place]!))
      : this.#update.run(...values);
    invariant(updated === 1, `session ${after.sessionId} has no row to update`);
  }
}

function isProgress(before: Session, after: Session): boolean {
  const values = steadyValues(after);
  return before.output === after.output && steadyValues(before).every((value, i) => value === values[i]);
}

function updateOf(columns: readonly string[]): string {
  return `UPDATE state SET ${columns.map((column, i) => `${column} = ?${i + 2}`).join(", ")} WHERE session = ?1`;
}
