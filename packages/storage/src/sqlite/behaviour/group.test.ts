// Groups of changes at the file: a change that the file refuses for an unforeseen reason is refused alone
// (ST4). A failure of the environment, however, must not be blamed on one change.

import { LIMITS, type Arrival, type Change, type CreateSession, type SendSignal } from "@holdfast/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openForWriting } from "../file/database.ts";
import type { SqlDriver, SqlStatement, SqlValue } from "../file/driver.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

/** SQLite's codes for "string or blob too big" and for a failing disk. */
const TOO_BIG = 18;
const IO_ERROR = 10;

let storage: SqliteStorage;
/** Which statements fail, by their text and values, and with what. */
let fault: ((sql: string, values: readonly SqlValue[]) => number | undefined) | undefined;
let received: Arrival[];

beforeEach(() => {
  fault = undefined;
  received = [];
  const path = `${newFolder()}/test.db`;
  storage = new SqliteStorage({ driver: faulty(openForWriting(path, true)), path });
  storage.subscribe((arrival) => received.push(arrival));
});

afterEach(() => storage.close());

function faulty(driver: SqlDriver): SqlDriver {
  const prepare = (sql: string): SqlStatement => {
    const statement = driver.prepare(sql);
    const run = (...values: SqlValue[]) => {
      const errcode = fault?.(sql, values);
      if (errcode !== undefined) throw Object.assign(new Error("planted"), { errcode });
      return statement.run(...values);
    };
    return { run, get: statement.get.bind(statement), all: statement.all.bind(statement) };
  };
  return {
    exec: (sql) => driver.exec(sql),
    prepare,
    value: (sql) => driver.value(sql),
    get inTransaction() {
      return driver.inTransaction;
    },
    get statementCount() {
      return driver.statementCount;
    },
    close: () => driver.close(),
  };
}

function tokenOf(result: object | undefined): number {
  return (result as { readonly token: number }).token;
}

function creating(n: number, input = '"ok"'): CreateSession {
  const claimFor = { owner: "me", leaseMs: Infinity };
  const agent = { name: "agent", version: "1" };
  return {
    type: "create_session",
    sessionId: `ses-${n}`,
    agent,
    input,
    seed: 1,
    flags: 0,
    format: 1,
    claimFor,
  };
}

function unclaimed(n: number): CreateSession {
  const { claimFor: _claimFor, ...creation } = creating(n);
  return creation;
}

function signalling(n: number, payload: string): SendSignal {
  return { type: "send_signal", sessionId: `ses-${n}`, signalId: "sig-1", name: "go", payload };
}

const poisoned = (_sql: string, values: readonly SqlValue[]) =>
  values.includes('"poison"') ? TOO_BIG : undefined;

test("ST4: one change that the file refuses is invalid, and all its neighbours are applied, in order", async () => {
  for (const at of [0, 1, 6, 12]) {
    const base = at * 100;
    const changes = Array.from({ length: 13 }, (_, i) => creating(base + i, i === at ? '"poison"' : '"ok"'));
    fault = poisoned;
    const results = await storage.commit(changes, 1);
    fault = undefined;
    expect(results.map(({ status }) => status)).toEqual(
      changes.map((_, i) => (i === at ? "invalid" : "created")),
    );
    expect(results[at]).toMatchObject({ reason: expect.stringContaining("planted") as string });
    for (let i = 0; i < 13; i++) {
      expect((await storage.load(`ses-${base + i}`)) === undefined).toBe(i === at);
    }
    const tokens = results.flatMap((result) => ("token" in result ? [result.token] : []));
    expect(new Set(tokens).size).toBe(12);
  }
});

test("ST1: a change that the file refuses leaves nothing behind, and its session continues unharmed", async () => {
  const [created] = await storage.commit([creating(1)], 1);
  fault = poisoned;
  const step = (text: string): Change => ({
    type: "commit_batch",
    sessionId: "ses-1",
    token: tokenOf(created),
    firstSeq: 0,
    records: [{ type: "append_entry", seq: 0, id: 0, role: "user", hash: "h" }],
    entries: [{ id: 0, index: 0, role: "user", turn: 0, content: text }],
    consumed: [],
  });
  // The journal's row is written before the entry is refused.
  expect(await storage.commit([step('"poison"')], 2)).toMatchObject([{ status: "invalid" }]);
  expect(await storage.reader.journal("ses-1", 0, 10)).toEqual([]);
  expect(await storage.commit([step('"ok"')], 3)).toEqual([{ status: "committed", inbox: 0 }]);
  expect((await storage.verify()).problems).toEqual([]);
});

test("ST22: listeners are notified of stored changes, once, and of nothing that was rolled back", async () => {
  await storage.commit([creating(1), creating(2), creating(3)], 1);
  fault = poisoned;
  await storage.commit([signalling(1, '"ok"'), signalling(2, '"poison"'), signalling(3, '"ok"')], 2);
  expect(received.map(({ sessionId }) => sessionId)).toEqual(["ses-1", "ses-3"]);
});

test("a failing disk rejects the group as unknown, applies none of it, and the same group may be sent again", async () => {
  await storage.commit([creating(1)], 1);
  const group = [signalling(1, '"a"'), creating(2), creating(3)];
  let commits = 0;
  fault = (sql) => (sql === "COMMIT" && ++commits === 1 ? IO_ERROR : undefined);
  await expect(storage.commit(group, 2)).rejects.toMatchObject({
    name: "UnavailableError",
    code: "storage_unavailable",
  });
  expect(received).toEqual([]);
  expect(await storage.load("ses-2")).toBeUndefined();
  expect(await storage.arrivals("ses-1", 0)).toMatchObject({ inbox: 0, signals: [] });
  const again = await storage.commit(group, 3);
  expect(again.map(({ status }) => status)).toEqual(["stored", "created", "created"]);
});

// The block of tokens is taken in the transaction of the first claim. If it is rolled back, the next process
// would take the same block again.
test("ST6: tokens grow over a restart also when the transaction that took a block of them failed", async () => {
  fault = (sql) => (sql === "COMMIT" ? IO_ERROR : undefined);
  await expect(storage.commit([creating(1)], 1)).rejects.toThrow();
  fault = undefined;
  const [first] = await storage.commit([creating(1)], 2);
  await storage.close();
  storage = new SqliteStorage({ driver: openForWriting(storage.path, false), path: storage.path });
  const second = await storage.claim({ sessionId: "ses-1", owner: "you", now: 4, leaseMs: 1 });
  expect(tokenOf(second)).toBeGreaterThan(tokenOf(first));
});

// Cached leases follow the file: a renewal that missed one would let another owner claim a live session.
test("leases are as they were when the transaction that changed them failed", async () => {
  await storage.commit([1, 2].map(unclaimed), 1);
  const lease = { owner: "leased", now: 1, leaseMs: 1_000 };
  const kept = await storage.claim({ sessionId: "ses-1", ...lease });
  const token = tokenOf(kept);
  const ending: Change = {
    type: "commit_batch",
    sessionId: "ses-1",
    token,
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
    session: { status: "completed" },
  };
  for (const change of [{ type: "release_claim", sessionId: "ses-1", token } as const, ending]) {
    let commits = 0;
    fault = (sql) => (sql === "COMMIT" && ++commits === 1 ? IO_ERROR : undefined);
    await expect(storage.commit([change], 2)).rejects.toThrow();
    expect(await storage.renew({ ...lease, now: 2 })).toEqual({ sessions: 1 });
    await storage.due({ now: 1_001, limit: 1 });
    expect(await storage.claim({ sessionId: "ses-1", ...lease, owner: "other", now: 1_001 })).toEqual({
      status: "busy",
      owner: "leased",
    });
  }
  fault = (sql) => (sql.startsWith("INSERT OR REPLACE INTO claim") ? IO_ERROR : undefined);
  await expect(storage.claim({ sessionId: "ses-2", ...lease })).rejects.toThrow();
  fault = undefined;
  expect(await storage.renew({ ...lease, now: 2 })).toEqual({ sessions: 1 });
});

test("a session that has ended keeps no signals", async () => {
  const [created] = await storage.commit([creating(1)], 1);
  const ending: Change = {
    type: "commit_batch",
    sessionId: "ses-1",
    token: tokenOf(created),
    firstSeq: 0,
    records: [{ type: "complete", seq: 0, id: 0 }],
    entries: [],
    consumed: [],
    session: { status: "completed" },
  };
  await storage.commit([signalling(1, '"a"'), ending], 2);
  expect(await storage.reader.pendingSignals("ses-1")).toEqual([]);
  expect(await storage.arrivals("ses-1", 0)).toMatchObject({ inbox: 1, signals: [] });
});

// Every step of every agent pays for it.
test("a step that changes neither status nor waits is one INSERT", async () => {
  const created = await storage.commit([creating(1), creating(2), creating(3)], 1);
  const steps = (firstSeq: number): Change[] =>
    created.map((result, i) => ({
      type: "commit_batch",
      sessionId: `ses-${i + 1}`,
      token: tokenOf(result),
      firstSeq,
      records: [{ type: "warned", seq: firstSeq, at: 1, payload: '"x"' }],
      entries: [],
      consumed: [],
    }));
  const before = storage.statementCount;
  await storage.commit(steps(0), 2);
  await storage.commit(steps(1), 3);
  expect(storage.statementCount - before).toBe(2 * (3 + 2));
});

test("text that would come back changed is refused, and does not keep other changes from being stored", async () => {
  const lone = "\ud800";
  const results = await storage.commit(
    [creating(1, `"${lone}"`), creating(2, '"\\ud800"'), { ...creating(3), sessionId: `ses-${lone}` }],
    1,
  );
  expect(results.map(({ status }) => status)).toEqual(["invalid", "created", "invalid"]);
  const ending = { status: "completed", output: `"${lone}"` } as const;
  const batch = {
    sessionId: "ses-2",
    token: tokenOf(results[1]),
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
  };
  const ended = await storage.commit([{ type: "commit_batch", ...batch, session: ending }], 2);
  expect(ended).toMatchObject([{ status: "invalid", reason: expect.stringContaining("output") as string }]);
  const pretty = await storage.commit([{ ...signalling(2, "{\n}"), name: "a" }], 2);
  expect(pretty).toMatchObject([
    { status: "invalid", reason: expect.stringContaining("line break") as string },
  ]);
});

// Only the row of a seen signal shows the duplicate, and a full inbox must not refuse the signal before that
// row is read.
test("a signal that is sent twice is a duplicate also in a full inbox", async () => {
  await storage.commit([creating(1)], 1);
  const all = Array.from({ length: LIMITS.signalsPending }, (_, i) => ({
    ...signalling(1, "1"),
    signalId: `${i}`,
  }));
  await storage.commit(all, 2);
  const again = await storage.commit([all[7]!, { ...signalling(1, "1"), signalId: "new" }], 3);
  expect(again).toMatchObject([{ status: "duplicate" }, { status: "invalid" }]);
});

test("sqlite-storage-4: simultaneous claims are one transaction, made before any later call", async () => {
  await storage.commit([1, 2, 3].map(unclaimed), 1);
  let commits = 0;
  fault = (sql) => (sql === "COMMIT" ? void commits++ : undefined);
  const lease = { now: 1, leaseMs: 1_000 };
  const claim = (n: number, owner: string) => storage.claim({ ...lease, sessionId: `ses-${n}`, owner });
  const claims = [claim(1, "a"), claim(2, "a"), claim(1, "b"), claim(9, "a")];
  const held = storage.heldClaims({ now: 1, limit: 9 });
  expect(await held).toMatchObject([{ sessionId: "ses-1" }, { sessionId: "ses-2" }]);
  expect(await Promise.all(claims)).toMatchObject([
    { status: "claimed", losses: 0 },
    { status: "claimed", losses: 0 },
    { status: "busy", owner: "a" },
    { status: "not_found" },
  ]);
  expect(commits).toBe(1);
});

test("sqlite-storage-4: a claim that fails does not stop the claims made at the same time", async () => {
  await storage.commit([1, 2, 3].map(unclaimed), 1);
  fault = (sql, values) => (sql.includes("INTO claim") && values.includes("bad") ? IO_ERROR : undefined);
  const owners = ["good", "bad", "good"];
  const claims = await Promise.allSettled(
    owners.map((owner, i) => storage.claim({ sessionId: `ses-${i + 1}`, owner, now: 1, leaseMs: 1_000 })),
  );
  expect(claims.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await storage.renew({ owner: "good", now: 2, leaseMs: 1_000 })).toEqual({ sessions: 2 });
  expect(await storage.renew({ owner: "bad", now: 2, leaseMs: 1_000 })).toEqual({ sessions: 0 });
});
