// Changes to several sessions, as far as the conformance suite cannot see them. The file takes all of a
// change or nothing, damage is named, and a session without relations costs no extra statements.

import type { Change, CreateSession } from "@holdfast/core";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openForWriting } from "../file/database.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

const claimFor = { owner: "me", leaseMs: Infinity };
const childOf = (sessionId: string) => ({ parent: { sessionId, child: 0, onEnd: "cancel" } as const });
const amount = { tokens: 60, costMicroUsd: 0, steps: 0, turns: 0 };
/** More tasks than an account's own row keeps holds of. */
const further = Array.from({ length: 8 }, (_, i) => ({
  type: "reserve" as const,
  task: i + 1,
  amount: { tokens: 0, costMicroUsd: 7, steps: 0, turns: 0 },
}));

/** A root with a budget and holds for its tasks, its child, and a schedule. */
async function open(path = `${newFolder()}/test.db`) {
  const storage = new SqliteStorage({ driver: openForWriting(path, true), path });
  const [created] = await storage.commit([creating("ses-root", { claimFor, budget: { maxTokens: 100 } })], 1);
  const step = (firstSeq: number, more: object): Change => ({
    type: "commit_batch",
    sessionId: "ses-root",
    token: (created as { readonly token: number }).token,
    firstSeq,
    records: [{ type: "started", seq: firstSeq, at: 1 }],
    entries: [],
    consumed: [],
    ...more,
  });
  const effects = [creating("ses-child", childOf("ses-root"))];
  const action = { type: "start", agent: { name: "agent", version: "1" }, input: undefined } as const;
  const schedule = { scheduleId: "s", cron: "* * * * *", timeZone: "UTC", action, nextAt: 5, createdAt: 1 };
  await storage.commit(
    [
      step(0, { effects, charges: [{ type: "reserve", task: 0, amount }, ...further] }),
      { type: "put_schedule", schedule },
    ],
    1,
  );
  return { storage, path, step };
}

test("ST1: a batch with an effect that the file refuses leaves nothing behind", async () => {
  const { storage, path, step } = await open();
  // Another connection: the file itself refuses the child's row.
  const database = new DatabaseSync(path);
  database.exec(
    "CREATE TRIGGER planted BEFORE INSERT ON session WHEN new.session_id = 'ses-bad' BEGIN SELECT RAISE(ABORT, 'planted'); END",
  );
  database.close();
  const before = await storage.load("ses-root");
  const effects = [creating("ses-good", childOf("ses-root")), creating("ses-bad", childOf("ses-root"))];
  const results = await storage.commit(
    [step(1, { effects, charges: [{ type: "settle", task: 0, used: amount }] }), creating("ses-neighbour")],
    2,
  );
  expect(results.map(({ status }) => status)).toEqual(["invalid", "created"]);
  expect(await storage.load("ses-root")).toEqual(before);
  expect(await storage.reader.session("ses-good")).toBeUndefined();
  expect(await storage.commit([step(1, {})], 3)).toMatchObject([
    { status: "committed", remaining: { tokens: 40 } },
  ]);
  await storage.close();
});

test.each([
  ["session", "UPDATE account SET spent = replace(spent, '0', '1')"],
  ["session", "UPDATE account SET reserved = replace(reserved, '60', '10')"],
  ["hold", "UPDATE hold SET amount = replace(amount, '7', '1')"],
  ["schedule", "UPDATE schedule SET cron = '1 * * * *'"],
  ["session", "UPDATE session SET parent = 'ses-other' WHERE parent IS NOT NULL"],
  ["journal", "UPDATE journal SET checkpoint = 1"],
  ["account", "INSERT INTO account VALUES (99, '{}', '{}', '{}', 0, 0)"],
])("V1: damage to a row of %s is found: %s", async (table, damage) => {
  const { storage, path } = await open();
  expect((await storage.verify()).problems).toEqual([]);
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec(damage);
  database.close();
  const again = new SqliteStorage({ driver: openForWriting(path, false), path });
  expect((await again.verify()).problems).toMatchObject([{ table }]);
  await again.close();
});

test("ST33: checkpoints are found by their index, however much else was recorded", () => {
  const path = `${newFolder()}/test.db`;
  const driver = openForWriting(path, true);
  const plan = driver
    .prepare(
      "EXPLAIN QUERY PLAN SELECT body FROM journal WHERE session = 1 AND seq >= 2 AND seq <= 9 AND checkpoint = 1 ORDER BY seq",
    )
    .all();
  expect(plan.map(({ detail }) => detail)).toEqual([expect.stringContaining("journal_checkpoint")]);
  driver.close();
});

test("a session without relations or a budget is created and ended by the statements it needs alone", async () => {
  const { storage } = await open();
  const before = storage.statementCount;
  const [created] = await storage.commit([creating("ses-alone", { claimFor })], 1);
  // Looked up, its two rows, and the transaction.
  expect(storage.statementCount - before).toBe(3 + 2);
  const ending: Change = {
    type: "commit_batch",
    sessionId: "ses-alone",
    token: (created as { readonly token: number }).token,
    firstSeq: 0,
    records: [{ type: "complete", seq: 0, id: 0, payload: "1" }],
    entries: [],
    consumed: [],
    session: { status: "completed", output: "1" },
  };
  await storage.commit([ending], 1);
  expect(storage.statementCount - before).toBe(3 + 2 + 2 + 2);
  await storage.close();
});
