// The next version of the schema, planted: its owner brings a file of version 1 to it, and version 1 refuses
// it then.

import { DatabaseSync } from "node:sqlite";
import type { Change } from "@holdfast/core";
import { expect, test } from "vitest";
import { openSqliteReader, ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";
import { openDriver } from "./driver.ts";
import { migrate, STEPS } from "./migrations.ts";

const creation: Change = {
  type: "create_session",
  sessionId: "ses-1",
  agent: { name: "writer", version: "1" },
  input: "1",
  seed: 1,
  flags: 0,
  format: 1,
};

/** A file of version 1 with a session. */
async function databaseOfVersion1(): Promise<string> {
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

test("a file of version 1 is brought to a planted version 2 and keeps its content, and is then refused", async () => {
  const path = await databaseOfVersion1();
  bring(path, "ALTER TABLE session ADD COLUMN planted TEXT NOT NULL DEFAULT 'yes'");
  expect(read(path, "PRAGMA user_version")).toEqual({ user_version: 2 });
  const session = { session_id: "ses-1", planted: "yes" };
  expect(read(path, "SELECT session_id, planted FROM session")).toEqual(session);
  const refusal = { code: "version_unsupported", got: "schema version 2", at: path };
  await expect(ownSqliteStorage({ path })).rejects.toMatchObject(refusal);
  expect(() => openSqliteReader({ path })).toThrow(expect.objectContaining(refusal));
  expect(read(path, "SELECT session_id, planted FROM session")).toEqual(session);
});

test("a step that fails leaves the file at its version", async () => {
  const path = await databaseOfVersion1();
  expect(() => bring(path, "DROP TABLE entry; SELECT no_such_function()")).toThrow("no_such_function");
  expect(read(path, "PRAGMA user_version")).toEqual({ user_version: 1 });
  const storage = await ownSqliteStorage({ path });
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
});

test("a file with damaged rows opens, and its lists hold all others", async () => {
  const path = await databaseOfVersion1();
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
