// The rows of a deleted session: nothing of it stays in the file, and everything of others does.

import { DatabaseSync } from "node:sqlite";
import { FORMAT_LIMITS, type Change, type CreateSession } from "@holdfast/core";
import { expect, test } from "vitest";
import { Blobs } from "./blobs.ts";
import { openForWriting } from "../file/database.ts";
import { ownSqliteStorage } from "../index.ts";
import { Removal } from "./removal.ts";
import type { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

const LARGE = JSON.stringify("x".repeat(FORMAT_LIMITS.blobChars));
const LARGER = JSON.stringify("y".repeat(FORMAT_LIMITS.blobChars));
const HUGE = JSON.stringify("z".repeat(FORMAT_LIMITS.blobChars));

/** A session that has all there is, and has ended. */
async function fill(
  storage: SqliteStorage,
  sessionId: string,
  input: string,
  content: string,
): Promise<void> {
  const creating: CreateSession = {
    type: "create_session",
    sessionId,
    agent: { name: "agent", version: "1" },
    input,
    seed: 1,
    flags: 0,
    format: 1,
    budget: { maxTokens: 10 },
    claimFor: { owner: "owner-1", leaseMs: 1_000 },
  };
  const [created] = await storage.commit([creating], 0);
  const token = (created as { readonly token: number }).token;
  const batch = { type: "commit_batch", sessionId, token, entries: [], consumed: [], records: [] } as const;
  const used = { tokens: 1, costMicroUsd: 0, steps: 0, turns: 0 };
  const changes: Change[] = [
    { type: "send_signal", sessionId, signalId: "sig-1", name: "go", payload: content, dedupKey: "key" },
    {
      ...batch,
      firstSeq: 0,
      records: [
        { type: "schedule_task", seq: 0, id: 0, kind: "a", hash: "h", payload: content },
        { type: "append_entry", seq: 1, id: 1, role: "user", hash: "h" },
      ],
      entries: [{ id: 1, index: 0, role: "user", turn: 0, content: HUGE }],
      charges: [{ type: "reserve", task: 0, amount: used }],
    },
    { ...batch, firstSeq: 2, session: { status: "completed", output: content } },
  ];
  expect((await storage.commit(changes, 1)).map(({ status }) => status)).toEqual([
    "stored",
    "committed",
    "committed",
  ]);
}

const remove = (sessionId: string): Change => ({ type: "delete_session", sessionId, subtree: "refuse" });

/** Rows of every table, but for those that say nothing of a session. */
function counts(path: string): Record<string, number> {
  const database = new DatabaseSync(path, { readOnly: true });
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const found = tables.map(({ name }) => {
    const row = database.prepare(`SELECT count(*) AS rows FROM ${String(name)}`).get();
    return [String(name), Number(row?.["rows"])] as const;
  });
  database.close();
  return Object.fromEntries(found.filter(([name, rows]) => rows > 0 && name !== "meta"));
}

test("a deletion leaves nothing of a session but the large content that others refer to", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await fill(storage, "ses-1", LARGER, LARGE);
  await fill(storage, "ses-2", LARGE, '"small"');
  expect(counts(path)).toMatchObject({ blob: 3, session: 2, account: 2, claim: 2, journal: 2, seen: 4 });
  await storage.commit([remove("ses-1")], 2);
  expect(counts(path)).toMatchObject({ blob: 2, session: 1, account: 1, claim: 1, journal: 1, entry: 1 });
  expect((await storage.reader.session("ses-2"))?.input).toBe(LARGE);
  expect((await storage.reader.entries("ses-2", 0, 1))[0]?.content).toBe(HUGE);
  expect((await storage.verify()).problems).toEqual([]);
  await storage.commit([remove("ses-2")], 2);
  await storage.close();
  // The next opening removes the marks of the signals that the session has seen.
  expect(counts(path)).toEqual({ seen: 4, removed: 2 });
  await (await ownSqliteStorage({ path })).close();
  expect(counts(path)).toEqual({});
});

test("the number of a deleted session is not given to another that would seem to have seen its signals", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await fill(storage, "ses-1", "1", "1");
  await storage.commit([remove("ses-1")], 2);
  await storage.close();
  const again = await ownSqliteStorage({ path });
  await fill(again, "ses-2", "1", "1");
  await again.commit([remove("ses-2")], 2);
  await fill(again, "ses-2", "1", "1");
  await again.close();
});

// An inbox of 0 does not say that it has seen nothing.
test("the marks of a deleted session go also when it was imported, or made under a claim", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const agent = { name: "agent", version: "1" };
  const creating = { type: "create_session", agent, input: "1", seed: 1, flags: 0, format: 1 } as const;
  const claimFor = { owner: "owner-1", leaseMs: 1_000 };
  const [made] = await storage.commit([{ ...creating, sessionId: "ses-1", claimFor }], 0);
  const under = { sessionId: "ses-1", token: (made as { readonly token: number }).token };
  const cancel = { type: "request_cancel", mode: "hard", graceMs: 0 } as const;
  const ending: readonly Change[] = [
    { ...creating, sessionId: "ses-2", under },
    { ...cancel, sessionId: "ses-2" },
    { ...cancel, sessionId: "ses-1" },
  ];
  await storage.commit(ending, 1);
  const session = { ...(await storage.reader.session("ses-2"))!, sessionId: "ses-3", inbox: 0 };
  const seen = { ids: ["sig-1"], dedupKeys: [["go", "key"]] as const };
  const importing = {
    type: "import_session",
    sessionId: "ses-3",
    session,
    records: [],
    entries: [],
    seen,
  } as const;
  const results = await storage.commit([importing, remove("ses-1"), remove("ses-3")], 2);
  expect(results.map(({ status }) => status)).toEqual(["created", "deleted", "deleted"]);
  await storage.close();
  const again = await ownSqliteStorage({ path });
  const signal = {
    type: "send_signal",
    sessionId: "ses-4",
    signalId: "sig-1",
    name: "go",
    payload: "1",
  } as const;
  const sent = await again.commit(
    [
      { ...creating, sessionId: "ses-4" },
      { ...signal, dedupKey: "key" },
    ],
    3,
  );
  expect(sent.map(({ status }) => status)).toEqual(["created", "stored"]);
  expect(counts(path)["seen"]).toBe(2);
  await again.close();
});

test("a damaged session stays, and keeps no other from being removed (ST58)", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  for (const sessionId of ["ses-1", "ses-2"]) await fill(storage, sessionId, "1", '"1"');
  await storage.close();
  const other = new DatabaseSync(path);
  other.exec("UPDATE state SET turn = turn + 1 WHERE session = 1");
  other.close();
  const again = await ownSqliteStorage({ path });
  const change = { type: "remove_ended", sessionIds: ["ses-1", "ses-2"], endedBefore: 5 } as const;
  expect(await again.commit([change], 5)).toEqual([{ status: "deleted", sessions: 1 }]);
  expect(counts(path)).toMatchObject({ session: 1, state: 1 });
  await again.close();
});

// removal-2: at the opening there was no room for the sweep.
test("the number of a deleted session stays taken as long as its marks of signals are left", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await fill(storage, "ses-1", "1", "1");
  await storage.commit([remove("ses-1")], 2);
  await storage.close();
  const driver = openForWriting(path, false);
  const removal = new Removal(driver, new Blobs(driver, path));
  expect(removal.nextNumber()).toBe(2);
  removal.sweep();
  expect(removal.nextNumber()).toBe(1);
  driver.close();
});

test("a deletion that could not be stored has deleted nothing", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await fill(storage, "ses-1", LARGE, LARGE);
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(storage.commit([remove("ses-1")], 2)).rejects.toMatchObject({ code: "storage_unavailable" });
  other.exec("ROLLBACK");
  other.close();
  expect(await storage.load("ses-1")).toMatchObject({ session: { input: LARGE, output: LARGE } });
  expect(await storage.commit([remove("ses-1")], 2)).toEqual([{ status: "deleted", sessions: 1 }]);
  await storage.close();
});
