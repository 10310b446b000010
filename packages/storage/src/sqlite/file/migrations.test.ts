// A file of an older Holdfast: readers read it as it is, and its next owner migrates it.

import { DatabaseSync } from "node:sqlite";
import { FORMAT_LIMITS, type Change } from "@holdfast/core";
import { expect, test } from "vitest";
import { openSqliteReader, ownSqliteStorage } from "../index.ts";
import { SCHEMA_VERSION } from "./migrations.ts";
import { newFolder } from "../testing/folder.ts";

const LARGE = JSON.stringify("x".repeat(FORMAT_LIMITS.blobChars));

const signalling = (name: string, signalId: string): Change => {
  return { type: "send_signal", sessionId: "ses-1", signalId, name, payload: "1", dedupKey: "key" };
};

function creating(sessionId: string, name: string): Change {
  const agent = { name, version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1 };
}

/** As the first step made it, with a session, a signal of which a key was seen, and a schedule. */
async function oldDatabase(): Promise<string> {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const agent = { name: "agent", version: "1" };
  const action = { type: "start", agent, input: undefined } as const;
  await storage.commit(
    [
      { type: "create_session", sessionId: "ses-1", agent, input: LARGE, seed: 1, flags: 0, format: 1 },
      signalling("go", "sig-1"),
      {
        type: "put_schedule",
        schedule: { scheduleId: "s", cron: "* * * * *", timeZone: "UTC", action, nextAt: 1, createdAt: 1 },
      },
    ],
    1,
  );
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec("DROP INDEX session_agent; DROP INDEX state_status; DROP INDEX session_owner");
  for (const table of ["claim", "document", "audit", "blob_use", "removed"])
    database.exec(`DROP TABLE ${table}`);
  database.exec("UPDATE seen SET key = 'k:key' WHERE key LIKE 'd:%'");
  database.exec("PRAGMA user_version = 1");
  database.close();
  return path;
}

test("a reader reads a file of the first step as it is, and leaves it so", async () => {
  const path = await oldDatabase();
  const reader = openSqliteReader({ path });
  expect(await reader.session("ses-1")).toMatchObject({ input: LARGE });
  expect(await reader.sessions({ limit: 5, owner: "anna" })).toEqual([]);
  expect(await reader.document("token", "t1")).toBeUndefined();
  expect(await reader.documents({ collection: "token", limit: 5 })).toEqual([]);
  expect(await reader.audit({ limit: 5 })).toEqual([]);
  expect(await reader.schedules()).toHaveLength(1);
  expect(reader.verify().problems).toEqual([]);
  reader.close();
  expect(versionOf(path)).toBe(1);
});

test("a file of the second step with a damaged session opens, and its lists hold all others", async () => {
  const path = `${newFolder()}/test.db`;
  const before = await ownSqliteStorage({ path });
  const damaged = creating("ses-damaged", "writer");
  await before.commit([creating("ses-1", "writer"), damaged, creating("ses-2", "reviewer")], 1);
  await before.close();
  const database = new DatabaseSync(path);
  database.exec("DROP INDEX session_agent; DROP INDEX state_status; PRAGMA user_version = 2");
  database.exec("UPDATE session SET agent = 'no JSON' WHERE session_id = 'ses-damaged'");
  database.close();

  const storage = await ownSqliteStorage({ path });
  expect(versionOf(path)).toBe(SCHEMA_VERSION);
  await storage.commit([creating("ses-3", "writer")], 2);
  const listed = async (agent: string) =>
    (await storage.reader.sessions({ limit: 5, agent })).map(({ sessionId }) => sessionId);
  expect(await listed("writer")).toEqual(["ses-3", "ses-1"]);
  expect(await listed("reviewer")).toEqual(["ses-2"]);
  const newest = await storage.reader.sessions({ limit: 2, status: "submitted" });
  expect(newest.map(({ sessionId }) => sessionId)).toEqual(["ses-3", "ses-2"]);
  await storage.close();
});

test("a file of the first step opens although the relations of a session are damaged", async () => {
  const path = await oldDatabase();
  const database = new DatabaseSync(path);
  database.exec("UPDATE session SET origin = 'no JSON'");
  database.close();
  const storage = await ownSqliteStorage({ path });
  expect(versionOf(path)).toBe(SCHEMA_VERSION);
  expect(await storage.commit([creating("ses-2", "writer")], 2)).toMatchObject([{ status: "created" }]);
  await storage.close();
});

test("an owner migrates an older file and keeps its content", async () => {
  const path = await oldDatabase();
  const storage = await ownSqliteStorage({ path });
  expect(versionOf(path)).toBe(SCHEMA_VERSION);
  expect(await storage.reader.session("ses-1")).toMatchObject({ input: LARGE });
  expect(await storage.commit([{ type: "put_document", collection: "c", id: "d", body: "1" }], 1)).toEqual([
    { status: "done", version: 1 },
  ]);
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
});

// An older row does not name the signal that its key belongs to, so the key counts for every signal, as it
// did then.
test("a dedup key that was seen before counts for every name, a new one for its own", async () => {
  const storage = await ownSqliteStorage({ path: await oldDatabase() });
  const statuses = async (...changes: Change[]) =>
    (await storage.commit(changes, 2)).map(({ status }) => status);
  expect(await statuses(signalling("go", "sig-2"), signalling("other", "sig-3"))).toEqual([
    "duplicate",
    "duplicate",
  ]);
  const newKey = (name: string, signalId: string) => ({ ...signalling(name, signalId), dedupKey: "new" });
  expect(await statuses(newKey("go", "sig-4"), newKey("other", "sig-5"), newKey("go", "sig-6"))).toEqual([
    "stored",
    "stored",
    "duplicate",
  ]);
  await storage.close();
});

// An older row does not name the other sessions that refer to the content.
test("large content of before is kept when a session that has it is deleted", async () => {
  const path = await oldDatabase();
  const storage = await ownSqliteStorage({ path });
  await storage.commit(
    [
      { type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 },
      { type: "delete_session", sessionId: "ses-1", subtree: "refuse" },
    ],
    2,
  );
  await storage.close();
  const database = new DatabaseSync(path, { readOnly: true });
  expect(database.prepare("SELECT count(*) AS blobs FROM blob").get()).toEqual({ blobs: 1 });
  database.close();
});

function versionOf(path: string): unknown {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare("PRAGMA user_version").get();
  database.close();
  return row?.["user_version"];
}
