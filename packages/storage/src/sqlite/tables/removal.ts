// Removal: deletes a session's rows from the file.
//
//   - The transaction of a deletion removes all rows of the session except those in `seen`. Those rows are
//     led by their keys, so finding the rows of one session means reading all of them. The next opening does
//     that once, for all deleted sessions.
//   removal-2. The number of a session whose rows in `seen` are left is not given to another.

import type { SqlDriver } from "../file/driver.ts";
import type { Blobs } from "./blobs.ts";
import { isEnvironmental } from "../file/sql-errors.ts";

/** Each has a column `session`. */
const TABLES = ["session", "state", "account", "hold", "journal", "entry", "signal"];

export class Removal {
  readonly #driver: SqlDriver;
  readonly #blobs: Blobs;

  constructor(driver: SqlDriver, blobs: Blobs) {
    this.#driver = driver;
    this.#blobs = blobs;
  }

  remove(number: number): void {
    this.#blobs.removeOf(number);
    for (const table of TABLES) this.#driver.prepare(`DELETE FROM ${table} WHERE session = ?`).run(number);
    // Not only for an inbox above 0: marks of an import, and of a creation under the claim, are in `seen`
    // too.
    this.#driver.prepare("INSERT INTO removed (session) VALUES (?)").run(number);
  }

  /** A disk without room is no reason not to open. */
  sweep(): void {
    if (this.#driver.value("SELECT count(*) FROM removed") === 0) return;
    try {
      this.#driver.exec("BEGIN");
      this.#driver.exec("DELETE FROM seen WHERE session IN (SELECT session FROM removed)");
      this.#driver.exec("DELETE FROM removed");
      this.#driver.exec("COMMIT");
    } catch (error) {
      if (this.#driver.inTransaction) this.#driver.exec("ROLLBACK");
      if (!isEnvironmental(error)) throw error;
    }
  }

  /** removal-2. */
  nextNumber(): number {
    return Number(
      this.#driver.value(
        "SELECT max((SELECT coalesce(max(session), 0) FROM session), (SELECT coalesce(max(session), 0) FROM removed)) + 1",
      ),
    );
  }
}
