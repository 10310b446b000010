// What the same durability costs without us: one row per step and nothing else. No kernel, replay, claims or checks.
//
//   F1. A row is kept when the group it is in is: all that was asked for in one turn of the event loop is one group.
//   F2. SQLite: WAL, `synchronous=FULL`, one transaction per group, prepared statements. A row has the session's id as
//       the outside knows it, and the table the one index without which a session's rows could not be found again.
//   F3. Memory: a push onto an array per step.

import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { withFolder, type StorageKind } from "./storages.ts";

interface Row {
  readonly session: number;
  readonly seq: number;
  readonly text: string;
}

export class Floor {
  readonly #writeGroup: (rows: readonly Row[]) => void;
  #waiting: { readonly row: Row; readonly kept: () => void }[] = [];
  /** Rows kept. */
  count = 0;

  constructor(writeGroup: (rows: readonly Row[]) => void) {
    this.#writeGroup = writeGroup;
  }

  keep(session: number, seq: number, text: string): Promise<void> {
    return new Promise((kept) => {
      if (this.#waiting.push({ row: { session, seq, text }, kept }) === 1) setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const group = this.#waiting;
    this.#waiting = [];
    this.#writeGroup(group.map(({ row }) => row));
    this.count += group.length;
    for (const { kept } of group) kept();
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
