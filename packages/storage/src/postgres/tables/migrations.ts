// `prepare`: makes the tables of a database, or brings them to our version.
//
// Any number of processes may open, and make, the same schema at the same time. Each step is one transaction,
// and the process that comes second finds the step done.

import { HoldfastError, UnavailableError } from "@holdfast/core";
import type { Database } from "../database/database.ts";
import { SQLSTATE, sqlState } from "../database/pg-errors.ts";
import { LANES_DEFAULT, SCHEMA_VERSION, STEPS } from "./schema.ts";

const MIGRATIONS_MAX = 10;

export interface Prepared {
  readonly lanes: number;
  /** The largest `born` of a session. */
  readonly lastStamp: number;
}

/**
 * Make the tables, or bring them to our version.
 *
 * @param lanes of a schema that is made now.
 * @param steps all of them, from the first on.
 * @throws HoldfastError `version_unsupported` for tables of a later version.
 */
export async function prepare(
  db: Database,
  { schema, lanes, at }: { readonly schema: string; readonly lanes: number; readonly at: string },
  steps = STEPS,
): Promise<Prepared> {
  for (let round = 0; ; round++) {
    const found = await readMeta(db);
    assertNotNewer(found.version, at, steps.length);
    if (found.version === steps.length) {
      const [row] = await db.run({ text: "SELECT coalesce(max(born), 0) AS born FROM session" });
      return { lanes: found.lanes, lastStamp: row?.["born"] as number };
    }
    if (round === MIGRATIONS_MAX)
      throw new UnavailableError("storage_unavailable", `others keep changing the schema: ${at}`, {
        fix: "open it again",
      });
    await migrate(db, found.version, { schema, lanes, step: steps[found.version]! });
  }
}

/** schema-2. @throws HoldfastError `version_unsupported` */
export function assertNotNewer(version: number, at: string, ours = SCHEMA_VERSION): void {
  if (version <= ours) return;
  throw new HoldfastError("version_unsupported", `the database was written by a newer Holdfast: ${at}`, {
    at,
    got: `schema version ${version}`,
    expected: `schema version ${ours} or older`,
    fix: "use the newer Holdfast; the database was left as it is",
  });
}

/** The version of the tables, or 0 where there are none. */
export async function readMeta(db: Database): Promise<{ readonly version: number; readonly lanes: number }> {
  try {
    const rows = await db.run({ text: "SELECT key, value FROM meta" });
    const meta = new Map(rows.map((row) => [row["key"], Number(row["value"])]));
    return { version: meta.get("schema_version") ?? 0, lanes: meta.get("lanes") ?? LANES_DEFAULT };
  } catch (error) {
    if (sqlState(error) === SQLSTATE.undefinedTable) return { version: 0, lanes: LANES_DEFAULT };
    throw error;
  }
}

/** schema-1. The row of the version refuses the process that comes second, which then reads the version again. */
async function migrate(
  db: Database,
  from: number,
  { schema, lanes, step }: { readonly schema: string; readonly lanes: number; readonly step: string },
): Promise<void> {
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
      if (moved !== undefined) await run({ text: step });
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
