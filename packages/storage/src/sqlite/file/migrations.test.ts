// The schema of a file: a file of version 1 is brought to ours, and the version after ours, planted, is
// refused.

import { DatabaseSync } from "node:sqlite";
import type { Audit, Change } from "@holdfast/core";
import { expect, test } from "vitest";
import { openSqliteReader, ownSqliteStorage } from "../index.ts";
import { rowChecksum, sha256 } from "../tables/checksum.ts";
import { newFolder } from "../testing/folder.ts";
import { openDriver } from "./driver.ts";
import { migrate, SCHEMA_VERSION, STEPS } from "./migrations.ts";

const creation: Change = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "writer", version: "1" },
  input: "1",
  seed: 1,
  flags: 0,
  format: 1,
};

/** A file of our version with a session. */
async function ownDatabase(): Promise<string> {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  await storage.commit([creation], 1);
  await storage.close();
  return path;
}

function bring(path: string, step: string): void {
  const driver = openDriver(path, { mode: "write", busyTimeoutMs: 0 });
  try {
    migrate(driver, [...STEPS, step]);
  } finally {
    driver.close();
  }
}

function read(path: string, sql: string): unknown {
  const database = new DatabaseSync(path, { readOnly: true });
  const row = database.prepare(sql).get();
  database.close();
  return row;
}

test("a file of our version is brought to a planted next one and keeps its content, and is then refused", async () => {
  const path = await ownDatabase();
  bring(path, "ALTER TABLE session ADD COLUMN planted TEXT NOT NULL DEFAULT 'yes'");
  expect(read(path, "PRAGMA user_version")).toEqual({ user_version: SCHEMA_VERSION + 1 });
  const session = { session_id: "ses-1", planted: "yes" };
  expect(read(path, "SELECT session_id, planted FROM session")).toEqual(session);
  const refusal = { code: "version_unsupported", got: `schema version ${SCHEMA_VERSION + 1}`, at: path };
  await expect(ownSqliteStorage({ path })).rejects.toMatchObject(refusal);
  expect(() => openSqliteReader({ path })).toThrow(expect.objectContaining(refusal));
  expect(read(path, "SELECT session_id, planted FROM session")).toEqual(session);
});

test("the audit of a file of version 1 is kept, and its next row may say what was answered", async () => {
  const path = `${newFolder()}/test.db`;
  const driver = openDriver(path, { mode: "write", busyTimeoutMs: 0 });
  migrate(driver, STEPS.slice(0, 1));
  const row = { seq: 1, at: 1, ...audit, outcome: "done" };
  const first = { ...row, hash: sha256(`\n${JSON.stringify(row)}`) };
  const { actor, action, object } = audit;
  const values = [1, 1, actor, action, object, null, "done", first.hash];
  driver.prepare(`INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`).run(...values, rowChecksum(values));
  driver.close();
  const reader = openSqliteReader({ path });
  expect(await reader.audit({ limit: 5 })).toEqual([first]);
  reader.close();
  expect(read(path, "PRAGMA user_version")).toEqual({ user_version: 1 }); // A reader changes nothing.
  const storage = await ownSqliteStorage({ path });
  const details = '{"answer":{"approved":true}}';
  await storage.commit([{ type: "audited", audit: { ...audit, details } }], 2);
  expect(await storage.reader.audit({ limit: 5 })).toMatchObject([first, { seq: 2, details }]);
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
});

const audit: Audit = { actor: "anna", action: "session.answer", object: "session:ses-1" };

test("a step that fails leaves the file at its version", async () => {
  const path = await ownDatabase();
  expect(() => bring(path, "DROP TABLE entry; SELECT no_such_function()")).toThrow("no_such_function");
  expect(read(path, "PRAGMA user_version")).toEqual({ user_version: SCHEMA_VERSION });
  const storage = await ownSqliteStorage({ path });
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
});

test("a file with damaged rows opens, and its lists hold all others", async () => {
  const path = await ownDatabase();
  const database = new DatabaseSync(path);
  database.exec("UPDATE session SET agent = 'no JSON', origin = 'no JSON'");
  database.close();
  const storage = await ownSqliteStorage({ path });
  expect(await storage.commit([{ ...creation, sessionId: "ses-2" }], 2)).toMatchObject([
    { status: "created" },
  ]);
  const listed = await storage.reader.sessions({ limit: 5, agent: "writer" });
  expect(listed.map(({ sessionId }) => sessionId)).toEqual(["ses-2"]);
  await storage.close();
});
