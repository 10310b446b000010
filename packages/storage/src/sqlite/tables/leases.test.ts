// Claims that outlive the owner's process: their cost in the file, and the effects of damage and of failed
// writes.

import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Change, ClaimResult, CreateSession } from "@holdfast/core";
import { expect, test } from "vitest";
import { connectSqliteStorage, openSqliteReader, ownSqliteStorage } from "../index.ts";
import type { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

const LEASE_MS = 1_000;

const creating = (sessionId: string): CreateSession => ({
  type: "create_session",
  sessionId,
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
});

async function open(path = `${newFolder()}/test.db`): Promise<{ storage: SqliteStorage; path: string }> {
  return { storage: await ownSqliteStorage({ path }), path };
}

const claim = (
  storage: SqliteStorage,
  owner: string,
  now: number,
  leaseMs = LEASE_MS,
): Promise<ClaimResult> => storage.claim({ sessionId: "ses-1", owner, now, leaseMs });

function tokenOf(result: ClaimResult): number {
  if (result.status !== "claimed") throw new Error(`claimed, it said ${result.status}`);
  return result.token;
}

function ending(token: number): Change {
  const session = { status: "completed" } as const;
  return {
    type: "commit_batch",
    sessionId: "ses-1",
    token,
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
    session,
  };
}

/** The rows of the claim table, read through a connection of their own. */
function claimRows(path: string): readonly unknown[] {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare("SELECT owner, losses FROM claim ORDER BY session").all();
  database.close();
  return rows.map((row) => ({ ...row }));
}

/** Statements that `work` runs. */
async function costOf(storage: SqliteStorage, work: () => Promise<unknown>): Promise<number> {
  const before = storage.statementCount;
  await work();
  return storage.statementCount - before;
}

test("a claim without end writes nothing, and a renewal writes nothing", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1"), creating("ses-2")], 0);
  await claim(storage, "owner-0", 0, Infinity); // Takes a block of tokens.
  const token = tokenOf(await claim(storage, "owner-0", 0, Infinity));
  expect(await costOf(storage, () => claim(storage, "owner-0", 0, Infinity))).toBe(0);
  expect(claimRows(path)).toEqual([]);
  await storage.commit([{ type: "release_claim", sessionId: "ses-1", token: token + 1 }], 0);
  await claim(storage, "owner-1", 0);
  expect(claimRows(path)).toEqual([{ owner: "owner-1", losses: 0 }]);
  expect(await costOf(storage, () => storage.renew({ owner: "owner-1", now: 5, leaseMs: LEASE_MS }))).toBe(0);
  await storage.close();
});

test("a commit under a lease writes no more than one under a claim without end", async () => {
  const { storage } = await open();
  await storage.commit([creating("ses-1")], 0);
  const step = (token: number, seq: number): Change => ({
    type: "commit_batch",
    sessionId: "ses-1",
    token,
    firstSeq: seq,
    records: [{ type: "started", seq, at: 1 }],
    entries: [],
    consumed: [],
  });
  const forEver = tokenOf(await claim(storage, "owner-1", 0, Infinity));
  const cost = await costOf(storage, () => storage.commit([step(forEver, 0)], 1));
  const leased = tokenOf(await claim(storage, "owner-1", 1));
  expect(await costOf(storage, () => storage.commit([step(leased, 1)], 1))).toBe(cost);
  await storage.close();
});

test("a released claim leaves nothing but its losses", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1")], 0);
  const first = tokenOf(await claim(storage, "owner-1", 0));
  await storage.commit([{ type: "release_claim", sessionId: "ses-1", token: first }], 0);
  expect(claimRows(path)).toEqual([]);
  await claim(storage, "owner-1", 0);
  const second = tokenOf(await claim(storage, "owner-2", LEASE_MS));
  await storage.commit([{ type: "release_claim", sessionId: "ses-1", token: second }], LEASE_MS);
  expect(claimRows(path)).toEqual([{ owner: null, losses: 1 }]);
  await storage.close();
});

// Runners do not release what has ended.
test("the claim of a session that has ended goes when its lease has passed", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1"), creating("ses-2")], 0);
  const token = tokenOf(await claim(storage, "owner-1", 0));
  await storage.commit([ending(token)], 10);
  const other = await storage.claim({ sessionId: "ses-2", owner: "owner-1", now: 10, leaseMs: 10 });
  await storage.commit([{ ...ending(tokenOf(other)), sessionId: "ses-2" } as Change], 10);
  await storage.due({ now: 19, limit: 1 });
  expect(claimRows(path)).toHaveLength(2);
  await storage.due({ now: LEASE_MS - 1, limit: 1 });
  expect(claimRows(path)).toHaveLength(1);
  await storage.close();
  const again = (await open(path)).storage;
  await again.due({ now: LEASE_MS - 1, limit: 1 });
  expect(claimRows(path)).toHaveLength(1);
  await again.due({ now: 2 * LEASE_MS - 1, limit: 1 });
  expect(claimRows(path)).toEqual([]);
  await again.close();
});

test("a lease that was renewed for longer lasts that long after opening again", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1")], 0);
  await claim(storage, "owner-1", 0);
  expect(await storage.renew({ owner: "owner-1", now: 0, leaseMs: 5 * LEASE_MS })).toEqual({ sessions: 1 });
  await storage.close();
  const again = (await open(path)).storage;
  expect(await again.due({ now: 0, limit: 1 })).toMatchObject({ sessionIds: [], nextAt: 5 * LEASE_MS });
  await again.close();
});

test("a claim that could not be stored is not made, and the claim before it remains", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1")], 0);
  const token = tokenOf(await claim(storage, "owner-1", 0));
  // Its own connection holds the lock that a writer needs.
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  await expect(claim(storage, "owner-2", LEASE_MS)).rejects.toMatchObject({ code: "storage_unavailable" });
  other.exec("ROLLBACK");
  other.close();
  expect(await storage.renew({ owner: "owner-2", now: LEASE_MS, leaseMs: LEASE_MS })).toEqual({
    sessions: 0,
  });
  expect(await storage.renew({ owner: "owner-1", now: LEASE_MS, leaseMs: LEASE_MS })).toEqual({
    sessions: 1,
  });
  expect(await storage.commit([ending(token)], LEASE_MS)).toMatchObject([{ status: "committed" }]);
  await storage.close();
});

test("a claim whose row is damaged is none, and fences its holder; the check names it", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1")], 0);
  const token = tokenOf(await claim(storage, "owner-1", 0));
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE claim SET owner = 'owner-2'");
  database.close();
  const reader = openSqliteReader({ path });
  expect(reader.verify().problems).toMatchObject([
    { table: "claim", message: expect.stringContaining("row 1") },
  ]);
  reader.close();
  const again = (await open(path)).storage;
  expect(await claim(again, "owner-3", 0)).toMatchObject({ status: "claimed" });
  expect(await again.commit([ending(token)], 0)).toEqual([{ status: "fenced" }]);
  await again.close();
});

test("one damaged session keeps neither its owner's others from being renewed nor others from being found", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1"), creating("ses-2"), creating("ses-3")], 0);
  for (const sessionId of ["ses-1", "ses-2"])
    await storage.claim({ sessionId, owner: "owner-1", now: 0, leaseMs: LEASE_MS });
  await storage.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE state SET turn = 7 WHERE session = 1");
  database.close();
  const again = (await open(path)).storage;
  expect(await again.renew({ owner: "owner-1", now: 0, leaseMs: LEASE_MS })).toEqual({ sessions: 2 });
  expect((await again.due({ now: LEASE_MS, limit: 9 })).sessionIds.toSorted()).toEqual(["ses-2", "ses-3"]);
  await again.close();
});

test("a lease over the owner's socket outlives its connection, a claim without end does not", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1"), creating("ses-2")], 0);
  const client = (await connectSqliteStorage({ path }))!;
  const claimFor = { owner: "owner-1", leaseMs: LEASE_MS };
  const audit = { actor: "a", action: "b", object: "c" };
  const created = await client.commit(
    [
      { ...creating("ses-3"), claimFor },
      {
        type: "audited",
        change: { ...creating("ses-4"), claimFor: { ...claimFor, leaseMs: Infinity } },
        audit,
      },
    ],
    0,
  );
  expect(created).toMatchObject([{ status: "created" }, { status: "created", token: expect.any(Number) }]);
  await client.claim({ sessionId: "ses-1", owner: "owner-1", now: 0, leaseMs: LEASE_MS });
  await client.claim({ sessionId: "ses-2", owner: "owner-1", now: 0, leaseMs: Infinity });
  expect(await client.renew({ owner: "owner-1", now: 1, leaseMs: LEASE_MS })).toEqual({ sessions: 2 });
  await client.close();
  const busy = { status: "busy", owner: "owner-1" };
  const others = ["ses-1", "ses-2", "ses-3", "ses-4"].map((sessionId) =>
    storage.claim({ sessionId, owner: "owner-2", now: 1, leaseMs: 1 }),
  );
  expect(await Promise.all(others)).toMatchObject([busy, { status: "claimed" }, busy, { status: "claimed" }]);
  await storage.close();
});

/** Copies a database with its log and the note of its owner, as the owner's death would leave them. */
function leftByDeath(path: string, boot?: string): string {
  const folder = newFolder();
  const copy = `${folder}/test.db`;
  for (const suffix of ["", "-wal", "-owner"])
    if (existsSync(path + suffix)) copyFileSync(path + suffix, copy + suffix);
  if (boot !== undefined) {
    const note: object = JSON.parse(readFileSync(`${copy}-owner`, "utf8"));
    writeFileSync(`${copy}-owner`, JSON.stringify({ ...note, boot }));
  }
  return copy;
}

const step = (token: number, type: "append_entry" | "attempt_lost"): Change => ({
  type: "commit_batch",
  sessionId: "ses-1",
  token,
  firstSeq: 0,
  records: [
    type === "attempt_lost"
      ? { type, seq: 0, task: 0, attempt: 1, at: 1 }
      : { type, seq: 0, id: 0, role: "user", hash: "h" },
  ],
  entries: [],
  consumed: [],
});

/** Opens and claims at each death; answers the losses that each claim reported. */
async function lossesOverDeaths(deaths: number, boot?: string): Promise<readonly number[]> {
  const losses: number[] = [];
  let path = `${newFolder()}/test.db`;
  for (let i = 0; i <= deaths; i++) {
    const { storage } = await open(path);
    if (i === 0) await storage.commit([creating("ses-1"), creating("ses-2")], 1);
    const result = await claim(storage, "me", 1, Infinity);
    losses.push(result.status === "claimed" ? result.losses : NaN);
    path = leftByDeath(path, boot);
    await storage.close();
  }
  return losses;
}

test("sqlite-leases-4: claims without an expiry are counted as lost from the owner's second death on", async () => {
  expect(await lossesOverDeaths(4)).toEqual([0, 0, 1, 2, 3]);
});

test("sqlite-leases-4: a loss of power counts no claim as lost", async () => {
  expect(await lossesOverDeaths(4, "another boot")).toEqual([0, 0, 0, 0, 0]);
});

test("sqlite-leases-4: without a death, a claim without an expiry writes nothing", async () => {
  const { storage, path } = await open();
  await storage.commit([creating("ses-1")], 1);
  const before = storage.statementCount;
  await claim(storage, "me", 1, Infinity);
  expect(claimRows(path)).toEqual([]);
  expect(storage.statementCount - before).toBeLessThanOrEqual(4); // A new block of tokens takes some.
  await storage.close();
});

test("sqlite-leases-4: a commit removes the claim from the file, a batch of lost attempts does not", async () => {
  const first = await open();
  await first.storage.commit([creating("ses-1")], 1);
  const path = leftByDeath(first.path);
  await first.storage.close();

  const { storage } = await open(path);
  const token = tokenOf(await claim(storage, "me", 1, Infinity));
  expect(claimRows(path)).toEqual([{ owner: "me", losses: 0 }]);
  await storage.commit([step(token, "attempt_lost")], 1);
  expect(claimRows(path)).toEqual([{ owner: "me", losses: 0 }]);
  await storage.commit([{ ...step(token, "append_entry"), firstSeq: 1, records: [] } as Change], 1);
  expect(claimRows(path)).toEqual([]);
  await storage.close();
});

test("sqlite-leases-4: an owner that closes loses none of its claims", async () => {
  const first = await open();
  await first.storage.commit([creating("ses-1")], 1);
  const path = leftByDeath(first.path);
  await first.storage.close();
  const second = await open(path);
  await claim(second.storage, "me", 1, Infinity);
  await second.storage.close(); // The claim is not released.
  const { storage } = await open(path);
  expect(await claim(storage, "me", 1, Infinity)).toMatchObject({ losses: 0 });
  await storage.close();
});
