// The rules of a storage are core's, and storage in memory runs all parts of the suite in `npm test`. SQLite
// runs the parts there that depend on its rows and statements, and in the tests campaign all parts, with more
// random sequences.

import { DatabaseSync } from "node:sqlite";
import { dueAt, NO_CLAIM, overdueAt } from "@holdfast/core";
import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { expect, test } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import { openForWriting } from "../file/database.ts";
import { openSqliteReader, ownSqliteStorage } from "../index.ts";
import { SqliteStorage } from "./sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

const PARTS = [
  "batches",
  "creation",
  "groups",
  "claims",
  "signals",
  "cancelling and ending",
  "parents and children",
  "imports and states",
  "schedules",
  "deletion",
  "removal of the ended",
  "documents and audit",
  "what is due",
  "what is kept",
  "reading",
  "any sequence",
] as const;

const subject: StorageSubject = {
  name: "sqlite",
  follows: true,
  sequences: isCampaign ? 300 : 40,
  open: () => open(`${newFolder()}/test.db`),
  reopen: async (storage) => {
    const { path } = storage as SqliteStorage;
    await storage.close();
    return open(path);
  },
};
storageConformance(subject, isCampaign ? undefined : PARTS);

/** sqlite-heads-1: each read of a session compares the cached head with the file, its indexed times included. */
async function open(path: string): Promise<SqliteStorage> {
  const storage = await ownSqliteStorage({ path });
  const { reader } = storage;
  const session = reader.session.bind(reader);
  const close = storage.close.bind(storage);
  let beside: ReturnType<typeof openSqliteReader> | undefined;
  const times = new DatabaseSync(path, { readOnly: true });
  const selectTimes = times.prepare(
    "SELECT due_at, overdue_at FROM state JOIN session USING (session) WHERE session_id = ?",
  );
  storage.close = async () => {
    beside?.close();
    times.close();
    await close();
  };
  reader.session = async (sessionId) => {
    const found = await session(sessionId);
    const filed = await (beside ??= openSqliteReader({ path })).session(sessionId);
    // After a clock was set back, the file keeps the latest time.
    const updatedAt = expect.toSatisfy((at: number) => at <= (filed?.updatedAt ?? 0)) as number;
    expect(found).toEqual(filed && { ...filed, updatedAt });
    const [due, overdue] = found === undefined ? [] : [dueAt(found, NO_CLAIM, false), overdueAt(found)];
    expect(selectTimes.get(sessionId)).toEqual(found && { due_at: finite(due), overdue_at: finite(overdue) });
    return found;
  };
  return storage;
}

/** As the file has it: 0 for a session that is due now. */
function finite(time = Infinity): number | null {
  return time === Infinity ? null : Math.max(time, 0);
}

test("sqlite-heads-3: a cached session is read from the file only when its input is large", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = new SqliteStorage({ driver: openForWriting(path, true), path });
  for (const [sessionId, chars, statements] of [
    ["ses-small", 1_000, 0],
    ["ses-large", 2_000, 1],
  ] as const) {
    const input = JSON.stringify("x".repeat(chars));
    const agent = { name: "agent", version: "1" };
    await storage.commit(
      [{ type: "create_session", sessionId, agent, input, seed: 1, flags: 0, format: 1 }],
      1,
    );
    const before = storage.statementCount;
    expect(await storage.reader.session(sessionId)).toMatchObject({ sessionId, input });
    expect(storage.statementCount - before).toBe(statements);
  }
  await storage.close();
});
