// Damaged rows: each is reported by name to the caller that reads it, and affects nothing else.

import { DatabaseSync } from "node:sqlite";
import type { Change, CreateSession } from "@holdfast/core";
import { expect, test } from "vitest";
import { ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

test("damaged rows do not hide other rows, whether overdue sessions, relatives of damaged sessions or schedules", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const parent = { sessionId: "ses-1", child: 0, onEnd: "cancel" } as const;
  const cron = { cron: "* * * * *", timeZone: "UTC", createdAt: 0 };
  const action = { type: "signal", sessionId: "ses-5", name: "go", payload: undefined } as const;
  const schedules = ["sch-1", "sch-2"].map((scheduleId): Change => {
    return { type: "put_schedule", schedule: { scheduleId, ...cron, action, nextAt: 5 } };
  });
  const late = { deadlineAt: 5 };
  const claimFor = { owner: "owner-1", leaseMs: 1_000 };
  const results = await storage.commit(
    [
      creating("ses-1"),
      creating("ses-2", late), // Damaged itself.
      creating("ses-3", { ...late, parent }), // Its parent is damaged.
      creating("ses-4", late),
      creating("ses-5"), // Its agent cannot be read.
      creating("ses-6"),
      creating("ses-7", { claimFor }),
      creating("ses-8", { claimFor }),
      ...schedules,
    ],
    0,
  );
  expect(results.map(({ status }) => status)).toEqual([...Array<string>(8).fill("created"), "done", "done"]);
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec(
    "UPDATE state SET turn = 7 WHERE session IN (1, 2, 7); UPDATE session SET agent = '{' WHERE session = 5",
  );
  database.exec("UPDATE schedule SET cron = '0 0 * * *' WHERE schedule_id = 'sch-1'");
  database.close();
  const again = await ownSqliteStorage({ path });
  const due = await again.due({ now: 10, limit: 9 });
  expect((await again.reader.session("ses-4"))?.cancel).toMatchObject({ cause: "deadline" });
  expect(due.sessionIds).toEqual(expect.arrayContaining(["ses-4", "ses-6"]));
  expect(due.schedules.map(({ scheduleId }) => scheduleId)).toEqual(["sch-2"]);
  const claims = await again.heldClaims({ now: 10, limit: 9 });
  expect(claims.map(({ sessionId }) => sessionId)).toEqual(["ses-8"]);
  await expect(again.reader.schedules()).rejects.toMatchObject({ code: "corrupt_record" });
  await again.close();
});

test("a session with damaged relations keeps neither its owner's other sessions nor its tree from being used", async () => {
  const path = `${newFolder()}/test.db`;
  const placement = { owner: "anna" };
  const childOf = (sessionId: string, child: number): Partial<CreateSession> => ({
    placement,
    parent: { sessionId, child, onEnd: "cancel" },
  });
  const storage = await ownSqliteStorage({ path });
  await storage.commit(
    [
      creating("ses-1", { placement }),
      creating("ses-2", childOf("ses-1", 0)), // Damaged below.
      creating("ses-3", childOf("ses-1", 1)),
    ],
    0,
  );
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE session SET origin = 'no JSON' WHERE session = 2");
  database.close();

  const again = await ownSqliteStorage({ path });
  const cancel = { type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 } as const;
  const results = await again.commit([creating("ses-4", { placement }), cancel], 1);
  expect(results.map(({ status }) => status)).toEqual(["created", "requested"]);
  expect(await again.reader.session("ses-3")).toMatchObject({ status: "cancelled" });
  const listed = await again.reader.sessions({ limit: 9, owner: "anna" });
  expect(listed.map(({ sessionId }) => sessionId)).toEqual(["ses-4", "ses-3", "ses-1"]);
  await expect(again.reader.session("ses-2")).rejects.toMatchObject({ code: "corrupt_record" });
  expect((await again.verify()).problems).toEqual([expect.objectContaining({ table: "session" })]);
  await again.close();
});

test("ST41: a damaged document is skipped in lists, page by page", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const put = (id: string): Change => ({ type: "put_document", collection: "runner", id, body: "1" });
  await storage.commit(["a", "b", "c", "d"].map(put), 1);
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE document SET body = '2' WHERE id IN ('a', 'c')");
  database.close();
  const again = await ownSqliteStorage({ path });
  const { reader } = again;
  const page = async (limit: number, after = "") =>
    (await reader.documents({ collection: "runner", limit, after })).map(({ id }) => id);
  expect(await page(9)).toEqual(["b", "d"]);
  expect(await page(1)).toEqual(["b"]);
  expect(await page(1, "b")).toEqual(["d"]);
  await expect(reader.document("runner", "a")).rejects.toMatchObject({ code: "corrupt_record" });
  await again.close();
});
