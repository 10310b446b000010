// A1: where the file has what is held for tasks, in databases of today and of before.

import { DatabaseSync } from "node:sqlite";
import { NO_AMOUNT, type Amount, type Charge, type Hold } from "@holdfast/core";
import { expect, test } from "vitest";
import { ownSqliteStorage } from "../index.ts";
import type { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

const CREATED = {
  type: "create_session",
  sessionId: "ses-payer",
  agent: { name: "agent", version: "1" },
  input: "1",
  seed: 1,
  flags: 0,
  format: 1,
  budget: { maxTokens: 10_000 },
  claimFor: { owner: "owner-1", leaseMs: Infinity },
} as const;

const tokens = (count: number): Amount => ({ ...NO_AMOUNT, tokens: count, steps: 1 });
const reserve = (task: number): Charge => ({ type: "reserve", task, amount: tokens(100) });
const settle = (task: number): Charge => ({ type: "settle", task, used: tokens(10) });
const tasksFrom = (first: number, count: number) => Array.from({ length: count }, (_, n) => first + n);

async function charge(storage: SqliteStorage, token: number, charges: readonly Charge[]): Promise<void> {
  const session = { status: "working" } as const;
  const batch = { firstSeq: 0, records: [], entries: [], consumed: [], session };
  const change = { type: "commit_batch", sessionId: "ses-payer", token, ...batch, charges } as const;
  expect(await storage.commit([change], 2)).toMatchObject([{ status: "committed" }]);
}

async function claim(storage: SqliteStorage): Promise<number> {
  const claimed = await storage.claim({
    sessionId: "ses-payer",
    owner: "owner-2",
    now: 9,
    leaseMs: Infinity,
  });
  expect(claimed.status).toBe("claimed");
  return claimed.status === "claimed" ? claimed.token : 0;
}

async function heldFor(storage: SqliteStorage): Promise<readonly Hold[]> {
  return (await storage.load("ses-payer"))?.holds ?? [];
}

function rowsOf(path: string, table: string): unknown {
  const database = new DatabaseSync(path, { readOnly: true });
  const found = database.prepare(`SELECT count(*) AS n FROM ${table}`).get();
  database.close();
  return found?.["n"];
}

test("a session with a budget settles and reserves in the row of its account, written once per commit", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const [created] = await storage.commit([CREATED], 1);
  const { token } = created as { readonly token: number };
  await charge(storage, token, [reserve(1)]);
  const before = storage.statementCount;
  await charge(storage, token, [settle(1), reserve(2)]);
  // BEGIN, the session's row, its account, COMMIT.
  expect(storage.statementCount - before).toBe(4);
  expect(rowsOf(path, "hold")).toBe(0);
  await storage.close();

  const again = await ownSqliteStorage({ path });
  expect(await heldFor(again)).toEqual([{ task: 2, amount: tokens(100) }]);
  expect((await again.reader.session("ses-payer"))?.account).toMatchObject({
    spent: { tokens: 10, steps: 2 },
    reserved: { tokens: 100, costMicroUsd: 0, steps: 0, turns: 0 },
  });
  await again.close();
});

test("the holds of a wide fan-out are kept and settled, in the account's row and in rows of their own", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  const [created] = await storage.commit([CREATED], 1);
  const { token } = created as { readonly token: number };
  const tasks = tasksFrom(1, 20);
  await charge(storage, token, tasks.map(reserve));
  await charge(storage, token, [settle(2), settle(20), reserve(21)]);
  await storage.commit([{ type: "release_claim", sessionId: "ses-payer", token }], 3);
  await storage.close();

  const again = await ownSqliteStorage({ path });
  const left = [...tasks.filter((task) => task !== 2 && task !== 20), 21];
  expect((await heldFor(again)).map(({ task }) => task)).toEqual(left);
  await charge(again, await claim(again), left.map(settle));
  expect(await heldFor(again)).toEqual([]);
  expect((await again.reader.session("ses-payer"))?.account).toMatchObject({
    spent: { tokens: 210, steps: 21 },
    reserved: { tokens: 0 },
  });
  expect((await again.verify()).problems).toEqual([]);
  await again.close();
  expect(rowsOf(path, "hold")).toBe(0);
});
