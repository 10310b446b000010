// `Floor` is the cost of the same durability without Holdfast: one row per step, without kernel, replay,
// claims or checks.
//
//   - All rows of one turn of the event loop are one group, and a row is kept when its group is.
//   - SQLite: WAL, `synchronous=FULL`, one transaction per group, prepared statements. A row has the
//     session's public id. The table has only the index that finds the rows of a session.
//   - Memory: a push onto an array per step.
//   - PostgreSQL: one prepared INSERT of all rows of a group, with its columns as arrays. One connection
//     writes one group at a time. The table is as SQLite's.

import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { Client } from "pg";
import { newPlace, readPlace } from "./postgres.ts";
import { withFolder, type StorageKind } from "./storages.ts";

export interface Row {
  readonly session: number;
  readonly seq: number;
  readonly text: string;
}

export class Floor {
  readonly #writeGroup: (rows: readonly Row[]) => void | Promise<void>;
  #isWriting = false;
  #waiting: { readonly row: Row; readonly kept: () => void }[] = [];
  /** Rows kept. */
  count = 0;

  constructor(writeGroup: (rows: readonly Row[]) => void | Promise<void>) {
    this.#writeGroup = writeGroup;
  }

  keep(session: number, seq: number, text: string): Promise<void> {
    return new Promise((kept) => {
      const isFirst = this.#waiting.push({ row: { session, seq, text }, kept }) === 1;
      if (isFirst && !this.#isWriting) setImmediate(() => void this.#flush());
    });
  }

  async #flush(): Promise<void> {
    const group = this.#waiting;
    this.#waiting = [];
    const written = this.#writeGroup(group.map(({ row }) => row));
    if (written !== undefined) {
      this.#isWriting = true;
      await written;
      this.#isWriting = false;
    }
    this.count += group.length;
    for (const { kept } of group) kept();
    // Rows that came during the write form the next group, with the rows that these answers cause.
    if (this.#waiting.length > 0) setImmediate(() => void this.#flush());
  }
}

/** A new, empty floor, gone afterwards. */
export async function withFloor<T>(
  kind: StorageKind,
  parent: string,
  work: (floor: Floor, file: string) => Promise<T>,
): Promise<T> {
  return withFolder(parent, async (folder) => {
    const file = join(folder, "floor.db");
    if (kind === "memory") {
      const rows: Row[] = [];
      return work(new Floor((group) => void rows.push(...group)), file);
    }
    if (kind === "postgres") {
      const { floor, close } = await openPostgresFloor(newPlace());
      try {
        return await work(floor, file);
      } finally {
        await close();
      }
    }
    const { floor, close } = openSqliteFloor(file);
    try {
      return await work(floor, file);
    } finally {
      close();
    }
  });
}

export interface SqliteFloor {
  readonly floor: Floor;
  /** Rows of a session, in order. */
  read(session: number): readonly unknown[];
  close(): void;
}

export function openSqliteFloor(file: string): SqliteFloor {
  mkdirSync(dirname(file), { recursive: true });
  const database = new DatabaseSync(file);
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
     CREATE TABLE IF NOT EXISTS step (session TEXT NOT NULL, seq INTEGER NOT NULL, text TEXT NOT NULL, UNIQUE (session, seq))`,
  );
  if (process.platform === "darwin") database.exec("PRAGMA fullfsync = ON");
  const begin = database.prepare("BEGIN");
  const insert = database.prepare("INSERT INTO step (session, seq, text) VALUES (?, ?, ?)");
  const commit = database.prepare("COMMIT");
  const select = database.prepare("SELECT seq, text FROM step WHERE session = ? ORDER BY seq");
  const floor = new Floor((rows) => {
    begin.run();
    for (const { session, seq, text } of rows) insert.run(idOf(session), seq, text);
    commit.run();
  });
  return { floor, read: (session) => select.all(idOf(session)), close: () => database.close() };
}

export interface PostgresFloor {
  readonly floor: Floor;
  read(session: number): Promise<readonly unknown[]>;
  close(): Promise<void>;
}

async function openPostgresFloor(place: string): Promise<PostgresFloor> {
  const { url, schema } = readPlace(place)!;
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(
    `CREATE SCHEMA IF NOT EXISTS ${schema}; SET search_path = ${schema};
     CREATE TABLE IF NOT EXISTS step (session text NOT NULL, seq int4 NOT NULL, text text NOT NULL, UNIQUE (session, seq))`,
  );
  const text =
    "INSERT INTO step (session, seq, text) SELECT * FROM unnest($1::text[], $2::int4[], $3::text[])";
  const floor = new Floor(async (rows) => {
    const values = [
      rows.map(({ session }) => idOf(session)),
      rows.map(({ seq }) => seq),
      rows.map((row) => row.text),
    ];
    await client.query({ name: "insert", text, values });
  });
  const read = async (session: number): Promise<readonly unknown[]> =>
    (await client.query("SELECT seq, text FROM step WHERE session = $1 ORDER BY seq", [idOf(session)])).rows;
  return { floor, read, close: () => client.end() };
}

/** The floor of a file, or of a schema of a server. */
export async function openFloor(place: string): Promise<SqliteFloor | PostgresFloor> {
  return readPlace(place) === undefined ? openSqliteFloor(place) : openPostgresFloor(place);
}

/** As long as ours. */
function idOf(session: number): string {
  return `ses_019aa5c0-0000-7000-8000-${String(session).padStart(12, "0")}`;
}

/** The sequential loop: each step after the one before is kept. Answers when each was. */
export async function keepInOrder(
  floor: Floor,
  session: number,
  steps: number,
  mark?: () => void,
): Promise<void> {
  for (let seq = 0; seq < steps; seq++) {
    await floor.keep(session, seq, `{"output":${seq}}`);
    mark?.();
  }
}

/** A session: its start is kept, then each step after the one before, and its end with its last step. */
export async function keepSession(floor: Floor, session: number, steps: number): Promise<void> {
  await floor.keep(session, 0, '{"input":null}');
  for (let seq = 1; seq < steps; seq++) await floor.keep(session, seq, `{"output":${seq}}`);
  const last = floor.keep(session, steps, `{"output":${steps}}`);
  await Promise.all([last, floor.keep(session, steps + 1, '{"status":"completed"}')]);
}
