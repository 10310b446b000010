// Storages for many tests, one after the other: tables are made once and emptied for each, which is ten times
// as fast.

import { openPostgresStorage } from "../index.ts";
import type { OpenPostgres } from "../open.ts";
import type { PostgresStorage } from "../postgres-storage.ts";
import { newSchema, runSql, sharedServerUrl } from "./shared-server.ts";

const TABLES = [
  "session",
  "state",
  "journal",
  "entry",
  "signal",
  "seen",
  "hold",
  "blob",
  "item",
  "audit",
  "instance",
];

export class EmptiedSchema {
  readonly schema = newSchema();
  #isMade = false;

  /** A storage with nothing in it. Those before it must be closed. */
  async open(more: Partial<OpenPostgres> = {}): Promise<PostgresStorage> {
    if (this.#isMade) {
      const deletes = TABLES.map((table) => `DELETE FROM ${this.schema}.${table}`);
      await runSql(await sharedServerUrl(), deletes.join("; "));
    }
    this.#isMade = true;
    return this.reopen(more);
  }

  /** With what is in it. */
  async reopen(more: Partial<OpenPostgres> = {}): Promise<PostgresStorage> {
    return openPostgresStorage({ url: await sharedServerUrl(), schema: this.schema, ...more });
  }
}
