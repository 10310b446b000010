// sqlite-reads-3: pages of sessions are found by an index.

import type { StorageReader } from "@holdfast/core";
import { expect, test, vi } from "vitest";
import { openForWriting } from "../file/database.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

type Query = Omit<Parameters<StorageReader["sessions"]>[0], "limit">;

/** How SQLite finds the session numbers of a page, and then the rows of these sessions. */
async function planOf(query: Query): Promise<readonly unknown[]> {
  const path = `${newFolder()}/test.db`;
  const driver = openForWriting(path, true);
  const storage = new SqliteStorage({ driver, path });
  const prepared = vi.spyOn(driver, "prepare");
  expect(await storage.reader.sessions({ limit: 5, ...query })).toEqual([]);
  const [sql] = prepared.mock.calls.map(([text]) => text).filter((text) => / (DESC|ASC) LIMIT \?/.test(text));
  const { oldestFirst: _, ...filters } = query;
  const values = [1, ...Object.values(filters), 5];
  const details = driver
    .prepare(`EXPLAIN QUERY PLAN ${sql!}`)
    .all(...values)
    .map((row) => String(row["detail"]));
  await storage.close();
  return details.filter((detail) => /^(SEARCH|SCAN) (s|session|state)\b/.test(detail));
}

const BY_NUMBER = "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)";

test.each<[Query, string]>([
  [{ status: "failed" }, "SEARCH state USING COVERING INDEX state_status (status=? AND rowid<?)"],
  [
    { status: "failed", oldestFirst: true },
    "SEARCH state USING COVERING INDEX state_status (status=? AND rowid>?)",
  ],
  [{ agent: "reviewer" }, "SEARCH session USING COVERING INDEX session_agent (<expr>=? AND rowid<?)"],
  [{ owner: "anna" }, "SEARCH session USING COVERING INDEX session_owner (<expr>=? AND session<?)"],
  [{ parent: "ses-1" }, "SEARCH session USING COVERING INDEX session_parent (parent=? AND rowid<?)"],
])("a page of sessions by %o reads the rows of that page alone", async (query, search) => {
  expect((await planOf(query)).filter((detail) => detail !== BY_NUMBER)).toEqual([
    search,
    "SEARCH session USING COVERING INDEX session_parent (parent=?)",
  ]);
});

test("a page of sessions by agent and status never reads all sessions", async () => {
  expect(await planOf({ agent: "reviewer", status: "failed" })).not.toContainEqual(
    expect.stringMatching(/^SCAN/),
  );
});

test("sessions are counted by status over an index: that of statuses, or that of a filter", async () => {
  const path = `${newFolder()}/test.db`;
  const driver = openForWriting(path, true);
  const storage = new SqliteStorage({ driver, path });
  const plan = async (query: Pick<Query, "agent">): Promise<readonly string[]> => {
    const prepared = vi.spyOn(driver, "prepare");
    expect(await storage.reader.counts({ limit: 5, ...query })).toEqual({});
    const sql = prepared.mock.lastCall![0];
    prepared.mockRestore();
    const values = [...Object.values(query), 5];
    return driver
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all(...values)
      .map((row) => String(row["detail"]))
      .filter((detail) => /^(SEARCH|SCAN) (session|state)\b/.test(detail));
  };
  expect(await plan({})).toEqual(["SEARCH state USING COVERING INDEX state_status (status=?)"]);
  expect(await plan({ agent: "reviewer" })).toEqual([
    "SEARCH state USING INTEGER PRIMARY KEY (rowid=?)",
    "SEARCH session USING COVERING INDEX session_agent (<expr>=?)",
  ]);
  await storage.close();
});
