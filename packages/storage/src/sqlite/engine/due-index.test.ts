// due-index-3: what is due is found in pages, however many have the same time.

import type { Change, CreateSession } from "@holdfast/core";
import { expect, test, vi } from "vitest";
import { openForWriting } from "../file/database.ts";
import { SqliteStorage } from "./sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

/** More than two pages. */
const MANY = 600;

const ids = Array.from({ length: MANY }, (_, n) => `ses-${String(n).padStart(4, "0")}`);

function creating(sessionId: string, more: Partial<CreateSession> = {}): Change {
  const agent = { name: sessionId.endsWith("7") ? "other" : "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

test("due-index-3: many due sessions are all found, also one agent's behind those of others", async () => {
  const path = `${newFolder()}/test.db`;
  const before = new SqliteStorage({ driver: openForWriting(path, true), path });
  await before.commit(
    ids.map((id) => creating(id)),
    0,
  );
  await before.close();
  const storage = new SqliteStorage({ driver: openForWriting(path, false), path });
  const others = ids.filter((id) => id.endsWith("7"));
  expect((await storage.due({ now: 1, limit: MANY, agents: ["other"] })).sessionIds).toEqual(others);
  expect((await storage.due({ now: 1, limit: 300 })).sessionIds).toHaveLength(300);
  expect((await storage.due({ now: 1, limit: MANY })).sessionIds.toSorted()).toEqual(ids);
  await storage.close();
});

test("due-index-3: the next time is found behind many claimed sessions", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = new SqliteStorage({ driver: openForWriting(path, true), path });
  const claimFor = { owner: "owner-1", leaseMs: Infinity };
  const made = await storage.commit(
    ids.map((id) => creating(id, { claimFor })),
    0,
  );
  const token = (n: number): number => (made[n] as { readonly token: number }).token;
  const waiting = ids.map((sessionId, n): Change => {
    const wakeAt = n < 400 ? 1_000 : 1_000 + n; // Many at one time, the others one after the other.
    const session = { status: "waiting", waits: [{ type: "timer", id: 0, at: wakeAt }], wakeAt } as const;
    const batch = { firstSeq: 0, records: [], entries: [], consumed: [], session };
    return { type: "commit_batch", sessionId, token: token(n), ...batch };
  });
  await storage.commit(waiting, 0);
  expect(await storage.due({ now: 1, limit: 9 })).toEqual({ sessionIds: [], schedules: [] });
  await storage.commit([{ type: "release_claim", sessionId: ids[599]!, token: token(599) }], 1);
  expect(await storage.due({ now: 1, limit: 9 })).toMatchObject({ sessionIds: [], nextAt: 1_599 });
  await storage.commit([{ type: "release_claim", sessionId: ids[399]!, token: token(399) }], 1);
  expect(await storage.due({ now: 1, limit: 9 })).toMatchObject({ sessionIds: [], nextAt: 1_000 });
  await storage.close();
});

test("due-index-3: each page is found by the index, up to the row it begins behind", () => {
  const driver = openForWriting(`${newFolder()}/test.db`, true);
  const prepared = vi.spyOn(driver, "prepare");
  void new SqliteStorage({ driver, path: "" });
  const pages = prepared.mock.calls.map(([sql]) => sql).filter((sql) => sql.startsWith("SELECT t.session,"));
  const planOf = (sql: string) => driver.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(1, 1, 1);
  const plans = pages.map((sql) => planOf(sql).map((row) => row["detail"]));
  driver.close();
  const bySession = "SEARCH s USING INTEGER PRIMARY KEY (rowid=?)";
  expect(plans).toEqual([
    ["SEARCH t USING COVERING INDEX state_due (due_at=? AND rowid>?)", bySession],
    ["SEARCH t USING COVERING INDEX state_due (due_at>? AND due_at<?)", bySession],
  ]);
});
