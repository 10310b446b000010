// openPostgresStorage and openPostgresReader: check the address, bring the tables to our version, and open.
//
//   open-1. A schema of a later version is refused before anything is written to it.
//   open-2. Any number of processes may open, and make, the same schema at the same time. Each step is one
//       transaction, and the process that comes second finds the step done.

import { HoldfastError, UnavailableError, UsageError, type StorageReader } from "@holdfast/core";
import type { VerifyReport } from "../verify-report.ts";
import { databaseClock } from "./database/database-clock.ts";
import { Database } from "./database/database.ts";
import { shownUrl, SQLSTATE, sqlState, toStorageError } from "./database/pg-errors.ts";
import { PostgresStorage } from "./postgres-storage.ts";
import { PostgresReader, Reads } from "./read/reads.ts";
import { LANES_DEFAULT, SCHEMA_VERSION, stepsFrom } from "./tables/schema.ts";
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
const MIGRATIONS_MAX = 10;

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
 * Read an existing database beside the processes that write to it. Nothing is made or changed. Tables of
 * older versions are read as they are, also while another process migrates them.
 *
 * @throws as `openPostgresStorage` does, and `storage_unavailable` when there is nothing of ours in it.
 */
export async function openPostgresReader({
  url,
  schema = "holdfast",
}: Pick<OpenPostgres, "url" | "schema">): Promise<PostgresDatabaseReader> {
  const at = `${checkedUrl(url)} (schema ${schema})`;
  const db = new Database({ url, schema, connectionsMax: 2, connectTimeoutMs: 10_000 });
  const guard = async <T>(read: () => Promise<T>): Promise<T> => {
    try {
      return await read();
    } catch (error) {
      throw toStorageError(error, at, "reading");
    }
  };
  let version: number;
  try {
    ({ version } = await readMeta(db));
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
  return Object.assign(new PostgresReader(new Reads(db, at, "", version), guard), {
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

interface Opened {
  readonly lanes: number;
  readonly lastStamp: number;
}

async function prepare(
  db: Database,
  { schema, lanes, at }: { schema: string; lanes: number; at: string },
): Promise<Opened> {
  for (let round = 0; ; round++) {
    const found = await readMeta(db);
    assertNotNewer(found.version, at);
    if (found.version === SCHEMA_VERSION) {
      const [row] = await db.run({ text: "SELECT coalesce(max(born), 0) AS born FROM session" });
      return { lanes: found.lanes, lastStamp: row?.["born"] as number };
    }
    if (round === MIGRATIONS_MAX)
      throw new UnavailableError("storage_unavailable", `others keep changing the schema: ${at}`, {
        fix: "open it again",
      });
    await migrate(db, found.version, { schema, lanes });
  }
}

/** open-1. */
function assertNotNewer(version: number, at: string): void {
  if (version <= SCHEMA_VERSION) return;
  throw new HoldfastError("version_unsupported", `the database was written by a newer Holdfast: ${at}`, {
    at,
    got: `schema version ${version}`,
    expected: `schema version ${SCHEMA_VERSION} or older`,
    fix: "use the newer Holdfast; the database was left as it is",
  });
}

async function readMeta(db: Database): Promise<{ readonly version: number; readonly lanes: number }> {
  try {
    const rows = await db.run({ text: "SELECT key, value FROM meta" });
    const meta = new Map(rows.map((row) => [row["key"], Number(row["value"])]));
    return { version: meta.get("schema_version") ?? 0, lanes: meta.get("lanes") ?? LANES_DEFAULT };
  } catch (error) {
    if (sqlState(error) === SQLSTATE.undefinedTable) return { version: 0, lanes: LANES_DEFAULT };
    throw error;
  }
}

/**
 * schema-1. The row of the version refuses the process that comes second, which then reads the version again
 * (open-2).
 */
async function migrate(
  db: Database,
  from: number,
  { schema, lanes }: { schema: string; lanes: number },
): Promise<void> {
  const [step] = stepsFrom(from);
  try {
    await db.transact(async (run) => {
      if (from === 0) {
        const there = { text: "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1" };
        // A user who may only use an existing schema is refused even `CREATE SCHEMA IF NOT EXISTS`.
        if ((await run(there, [schema])).length === 0)
          await run({ text: `CREATE SCHEMA IF NOT EXISTS ${quoted(schema)}` });
        await run({
          text: `CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);
                 INSERT INTO meta VALUES ('schema_version', '0'), ('lanes', '${lanes}')`,
        });
      }
      const [moved] = await run(
        {
          text: "UPDATE meta SET value = $1 WHERE key = 'schema_version' AND value = $2 RETURNING value",
        },
        [String(from + 1), String(from)],
      );
      if (moved !== undefined) await run({ text: step! });
    });
  } catch (error) {
    if (!TAKEN.has(sqlState(error) ?? "")) throw error;
  }
}

/** Two processes made the same row, table or schema, or were in a deadlock. */
const TAKEN: ReadonlySet<string> = new Set(["23505", "42P07", "42P06", "40001", "40P01", "42710"]);

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Microseconds of this machine's clock, but always above the one before: an order of what one process
 * makes, over restarts.
 */
function stamper(last: number): () => number {
  let stamp = last;
  return () =>
    (stamp = Math.max(stamp + 1, Math.trunc((performance.timeOrigin + performance.now()) * 1_000)));
}
