// Entries whose content the journal holds already: stored once, and read as if they were stored twice.

import { readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Change, Entry, JournalRecord } from "@holdfast/core";
import { expect, test } from "vitest";
import { ownSqliteStorage, type SqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

const TEXT = JSON.stringify(`needle ${"x".repeat(2_000)}`);
const OTHER = JSON.stringify(`needle ${"y".repeat(2_000)}`);

/** One batch: the outcome of a task, an entry with its very text, and one with another text. */
async function storeTaken(storage: SqliteStorage): Promise<void> {
  const sessionId = "ses-1";
  const claimFor = { owner: "me", leaseMs: Infinity };
  const creating: Change = {
    type: "create_session",
    sessionId,
    agent: { name: "agent", version: "1" },
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
    claimFor,
  };
  const [created] = await storage.commit([creating], 1);
  const { token } = created as { token: number };
  const batch: Change = {
    type: "commit_batch",
    sessionId,
    token,
    firstSeq: 0,
    records: [
      { type: "started", seq: 0, at: 1 },
      { type: "task_completed", seq: 1, at: 1, task: 0, attempt: 1, payload: TEXT },
      { type: "append_entry", seq: 2, id: 0, role: "assistant", hash: "h" },
      { type: "append_entry", seq: 3, id: 1, role: "user", hash: "h" },
    ],
    entries: [
      { id: 0, index: 0, role: "assistant", turn: 0, content: TEXT },
      { id: 1, index: 1, parent: 0, role: "user", turn: 0, content: OTHER },
    ],
    consumed: [],
  };
  expect(await storage.commit([batch], 2)).toMatchObject([{ status: "committed" }]);
}

function placesOf(text: string, path: string): number[] {
  const bytes = readFileSync(path);
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) places.push(at);
  return places;
}

test("ST19: an entry with the unchanged text of an outcome is in the file once, and reads back to the byte", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storeTaken(storage);
  await storage.close();
  expect(placesOf(TEXT.slice(0, 500), path)).toHaveLength(1);
  expect(placesOf(OTHER.slice(0, 500), path)).toHaveLength(1);

  const again = await ownSqliteStorage({ path });
  const contents = [TEXT, OTHER];
  expect((await again.reader.entries("ses-1", 0, 10)).map(({ content }) => content)).toEqual(contents);
  expect((await again.conversation("ses-1", 1)).map(({ content }) => content)).toEqual(contents);
  expect(await again.verify()).toMatchObject({ problemCount: 0, rows: { entry: 2 } });
  await again.close();
});

test("D2: when the record is damaged that holds an entry's text, the entry is refused as well, by name", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storeTaken(storage);
  await storage.close();
  const bytes = readFileSync(path);
  bytes[placesOf(TEXT.slice(0, 500), path)[0]! + 100]! ^= 1;
  writeFileSync(path, bytes);

  const again = await ownSqliteStorage({ path });
  const error = { code: "corrupt_record", message: expect.stringContaining("table journal, row 1/0") };
  await expect(again.reader.entries("ses-1", 0, 1)).rejects.toMatchObject(error);
  await expect(again.conversation("ses-1", 0)).rejects.toMatchObject(error);
  expect((await again.reader.entries("ses-1", 1, 1)).map(({ content }) => content)).toEqual([OTHER]);
  expect((await again.verify()).problems.map(({ table }) => table)).toContain("entry");
  await again.close();
});

test.each([0, 7])(
  "D2: a session whose newest entry has a damaged position (%i in place of 1) is refused by name",
  async (position) => {
    const path = `${newFolder()}/test.db`;
    const storage = await ownSqliteStorage({ path });
    await storeTaken(storage);
    await storage.close();
    const database = new DatabaseSync(path);
    database.prepare("UPDATE entry SET idx = ? WHERE seq = 1").run(position);
    database.close();

    const again = await ownSqliteStorage({ path });
    const error = { code: "corrupt_record", message: expect.stringContaining("table entry, row 1/1") };
    await expect(again.reader.session("ses-1")).rejects.toMatchObject(error);
    await again.close();
  },
);

// Decoded for each of its entries, a commit with some thousand keeps the owner busy for minutes.
test("the records of a commit are read once for all of its entries", async () => {
  const storage = await ownSqliteStorage({ path: `${newFolder()}/test.db` });
  await storeTaken(storage);
  const { token } = (await storage.claim({ sessionId: "ses-1", owner: "me", now: 3, leaseMs: 9 })) as {
    token: number;
  };
  const many = Array.from({ length: 100 }, (_, n) => n);
  const textOf = (n: number): string => JSON.stringify(`${n} ${"z".repeat(300)}`);
  const records = many.flatMap((n): JournalRecord[] => [
    { type: "task_completed", seq: 4 + 2 * n, at: 1, task: n, attempt: 1, payload: textOf(n) },
    { type: "append_entry", seq: 5 + 2 * n, id: 2 + n, role: "assistant", hash: "h" },
  ]);
  const entries = many.map((n) => ({
    id: 2 + n,
    index: 2 + n,
    parent: 1 + n,
    role: "assistant",
    turn: 0,
    content: textOf(n),
  }));
  const batch = { sessionId: "ses-1", token, firstSeq: 4, records, entries, consumed: [] };
  expect(await storage.commit([{ type: "commit_batch", ...batch }], 4)).toMatchObject([
    { status: "committed" },
  ]);
  const statementsOf = async (read: () => Promise<readonly Entry[]>): Promise<number> => {
    const before = storage.statementCount;
    expect((await read()).slice(-100).map(({ content }) => content)).toEqual(many.map(textOf));
    return storage.statementCount - before;
  };
  expect(await statementsOf(() => storage.reader.entries("ses-1", 2, 100))).toBeLessThan(10);
  expect(await statementsOf(() => storage.conversation("ses-1", 101))).toBeLessThan(10);
  await storage.close();
});
