// openPostgresStorage and openPostgresReader: check the address, bring the tables to our version, and open.

import { UnavailableError, UsageError, type StorageReader } from "@holdfast/core";
import type { VerifyReport } from "../verify-report.ts";
import { databaseClock } from "./database/database-clock.ts";
import { Database } from "./database/database.ts";
import { shownUrl, toStorageError } from "./database/pg-errors.ts";
import { PostgresStorage } from "./postgres-storage.ts";
import { PostgresReader } from "./read/postgres-reader.ts";
import { Reads } from "./read/reads.ts";
import { assertNotNewer, prepare, readMeta } from "./tables/migrations.ts";
import { LANES_DEFAULT, SCHEMA_VERSION } from "./tables/schema.ts";
import { verifyDatabase } from "./read/verify.ts";

export interface OpenPostgres {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full` */
  readonly url: string;
  /** The schema our tables are in, made when missing; `holdfast` when absent. */
  readonly schema?: string;
  /** Into how many lanes a schema that is made now divides its sessions; 8 when absent. */
  readonly lanes?: number;
  /** Connections at most; 8 when absent. */
  readonly connectionsMax?: number;
  /**
   * The time that callers pass: their machine's, or the database's, which `now()` then answers. Use the
   * database's with several machines whose clocks are not synchronised.
   */
  readonly clock?: "caller" | "database";
  /**
   * How often the storage polls for arrivals of other processes; 250 ms when absent. No arrival is lost in
   * between.
   */
  readonly pollMs?: number;
  /**
   * Whether processes notify each other of changes at once; true when absent. Costs a connection per storage
   * with listeners, which must not be pooled by transaction.
   */
  readonly notices?: boolean;
  readonly connectTimeoutMs?: number;
}

const HEADS_MAX = 16_384;

/**
 * Open a database, and make our tables in it if they are missing.
 *
 * @throws UsageError for what is no address of a PostgreSQL database.
 * @throws HoldfastError `storage_unavailable` when it cannot be reached, does not let us in or does not
 *   exist, `storage_readonly`, `version_unsupported` when a newer Holdfast made it. No message contains a
 *   password.
 */
export async function openPostgresStorage(options: OpenPostgres): Promise<PostgresStorage> {
  const { url, schema = "holdfast", lanes = LANES_DEFAULT, clock = "caller" } = options;
  const at = `${checkedUrl(url)} (schema ${schema})`;
  const db = new Database({
    url,
    schema,
    connectionsMax: options.connectionsMax ?? 8,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
  });
  try {
    const opened = await prepare(db, { schema, lanes, at });
    const stamp = stamper(opened.lastStamp);
    return new PostgresStorage({
      db,
      at,
      lanes: opened.lanes,
      headsMax: HEADS_MAX,
      pollMs: options.pollMs ?? 250,
      notices: options.notices === false ? undefined : { schema, warn: (text) => process.emitWarning(text) },
      now: clock === "database" ? await databaseClock(db) : undefined,
      stamp,
    });
  } catch (error) {
    await db.close();
    throw toStorageError(error, at, "opening it");
  }
}

/** A database that is only looked at. */
export interface PostgresDatabaseReader extends StorageReader {
  /** The database, without its password. */
  readonly at: string;
  /** Check every row (`verify.ts`). */
  verify(): Promise<VerifyReport>;
  close(): Promise<void>;
}

/**
 * Read an existing database beside the processes that write to it. Nothing is made or changed.
 *
 * @throws as `openPostgresStorage` does, and `storage_unavailable` when there is nothing of ours in it.
 */
export async function openPostgresReader({
  url,
  schema = "holdfast",
}: Pick<OpenPostgres, "url" | "schema">): Promise<PostgresDatabaseReader> {
  const at = `${checkedUrl(url)} (schema ${schema})`;
  const db = new Database({ url, schema, connectionsMax: 2, connectTimeoutMs: 10_000, isReader: true });
  const guard = async <T>(read: () => Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      throw toStorageError(error, at, "reading");
    }
  };
  try {
    const { version } = await readMeta(db);
    assertNotNewer(version, at);
    if (version === 0)
      throw new UnavailableError("storage_unavailable", `there are no tables of Holdfast in it: ${at}`, {
        got: "no tables of Holdfast",
        expected: `schema version ${SCHEMA_VERSION} or older`,
        fix: "check the URL; a process that opens the database to write, such as a coordinator, creates the tables",
      });
  } catch (error) {
    await db.close();
    throw toStorageError(error, at, "opening it");
  }
  // A reader holds no claims, so it has no instance.
  return Object.assign(new PostgresReader(db, new Reads(db, at, ""), guard), {
    at,
    verify: () => guard(() => verifyDatabase(db, at)),
    close: () => db.close(),
  });
}

function checkedUrl(url: string): string {
  const protocol = URL.canParse(url) ? new URL(url).protocol : undefined;
  if (protocol === "postgres:" || protocol === "postgresql:") return shownUrl(url);
  throw new UsageError(`the address of the database is no URL of PostgreSQL: ${shownUrl(url)}`, {
    expected: "postgres://user:password@host:5432/database",
    fix: "special characters in a password are written in percent form, for example %40 for @",
  });
}

/**
 * Microseconds of this machine's clock, but always above the one before: an order of what one process
 * makes, over restarts.
 */
function stamper(last: number): () => number {
  let stamp = last;
  // Not of `performance`, which follows no correction of the clock and no suspension of the machine.
  return () => (stamp = Math.max(stamp + 1, Date.now() * 1_000));
}
