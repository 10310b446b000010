// Several storages on one database. Each caches sessions as it last read them, and must never decide by a
// cached version that is out of date. All run in one process, as only their caches separate them.

import { verifyAudit, type Arrival, type Change, type CommitBatch, type CreateSession } from "@holdfast/core";
import { hash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Database } from "../database/database.ts";
import { PostgresStorage } from "../postgres-storage.ts";
import { Reads } from "../read/reads.ts";
import { EmptiedSchema } from "../testing/emptied.ts";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";

const POLL_MS = 20;

const emptied = new EmptiedSchema();
const { schema } = emptied;
let url: string;
let storages: PostgresStorage[];
let a: PostgresStorage;
let b: PostgresStorage;

beforeEach(async () => {
  url = await sharedServerUrl();
  // Without notices: what is found by looking is all that anything may depend on.
  a = await emptied.open({ pollMs: POLL_MS, notices: false });
  storages = [a];
  b = await open();
});

afterEach(async () => {
  await Promise.all(storages.map((storage) => storage.close()));
});

async function open(): Promise<PostgresStorage> {
  const storage = await emptied.reopen({ pollMs: POLL_MS, notices: false });
  storages.push(storage);
  return storage;
}

function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

function signalling(sessionId: string, n: number, more: object = {}): Change {
  return { type: "send_signal", sessionId, signalId: `sig-${n}`, name: "go", payload: String(n), ...more };
}

function batch(token: number, seq: number, more: Partial<CommitBatch> = {}): CommitBatch {
  const records = [{ type: "warned", seq, at: 1, payload: '"x"' }] as const;
  return {
    type: "commit_batch",
    sessionId: "ses-1",
    token,
    firstSeq: seq,
    records,
    entries: [],
    consumed: [],
    ...more,
  };
}

async function claim(storage: PostgresStorage, owner: string, now: number, leaseMs = 1_000): Promise<number> {
  const claimed = await storage.claim({ sessionId: "ses-1", owner, now, leaseMs });
  expect(claimed).toMatchObject({ status: "claimed" });
  return (claimed as { readonly token: number }).token;
}

/** Creates a session that is claimed. Returns the token. */
async function create(creation: CreateSession): Promise<number> {
  const [created] = await a.commit([creation], 0);
  return (created as { readonly token: number }).token;
}

/** Vitest's own second is soon over where the machine is busy. */
const until = (isSo: () => boolean) => vi.waitUntil(isSo, { timeout: 15_000, interval: 10 });

function exhausting(max: number): NonNullable<CommitBatch["session"]> {
  const exhausted = { payer: "ses-1", limit: "maxTokens", used: 10, max, then: "park" } as const;
  return { status: "paused", pauseReason: "budget_exceeded", exhausted };
}

const FOR_EVER = { claimFor: { owner: "owner-1", leaseMs: Infinity } };
const WAITING = { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] } as const;

describe("two storages decide by each other's changes", () => {
  test("a holder may commit through two storages in turns", ofCampaign, async () => {
    await a.commit([creating("ses-1")], 0);
    const token = await claim(a, "owner-1", 0);
    for (let seq = 0; seq < 10; seq++) {
      const storage = seq % 2 === 0 ? b : a;
      expect(await storage.commit([batch(token, seq)], 1)).toEqual([{ status: "committed", inbox: 0 }]);
    }
    expect((await a.reader.session("ses-1"))?.nextSeq).toBe(10);
  });

  test("ST2: a holder whose session was claimed elsewhere is fenced, though its cache shows its own claim", async () => {
    await a.commit([creating("ses-1")], 0);
    const stalled = await claim(a, "owner-1", 0);
    await a.commit([batch(stalled, 0)], 1);
    const current = await claim(b, "owner-2", 1_000);
    expect(await a.commit([batch(stalled, 1)], 1_001)).toEqual([{ status: "fenced" }]);
    expect(await b.commit([batch(current, 1)], 1_001)).toMatchObject([{ status: "committed" }]);
  });

  test("ST7: exactly one of many simultaneous claims through many storages succeeds", async () => {
    for (let n = 0; n < 3; n++) await open();
    await a.commit([creating("ses-1")], 0);
    const claims = await Promise.all(
      storages.flatMap((storage, i) =>
        [1, 2, 3].map((n) =>
          storage.claim({ sessionId: "ses-1", owner: `owner-${i}-${n}`, now: 0, leaseMs: 1_000 }),
        ),
      ),
    );
    expect(claims.filter(({ status }) => status === "claimed")).toHaveLength(1);
    expect(claims.filter(({ status }) => status === "busy")).toHaveLength(14);
  });

  test("ST7: a lease that was renewed through another storage is not taken over", async () => {
    await a.commit([creating("ses-1")], 0);
    await claim(a, "owner-1", 0);
    // It knows the claim with the end it had.
    await b.commit([signalling("ses-1", 1)], 1);
    expect(await a.renew({ owner: "owner-1", now: 900, leaseMs: 1_000 })).toEqual({ sessions: 1 });
    expect(await b.claim({ sessionId: "ses-1", owner: "owner-2", now: 1_500, leaseMs: 1_000 })).toEqual({
      status: "busy",
      owner: "owner-1",
    });
  });

  test("ST11, ST15: a session that ended elsewhere has ended here", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    await b.commit([signalling("ses-1", 1)], 1);
    await a.commit([batch(token, 0, { session: { status: "completed" } })], 2);
    expect(await b.commit([signalling("ses-1", 2), batch(token, 1)], 3)).toMatchObject([
      { status: "ended", sessionStatus: "completed" },
      { status: "invalid" },
    ]);
  });

  test("ST13: exactly one of many creations of a session succeeds, and all others answer that it exists", async () => {
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, i) => storages[i % 2]!.commit([creating("ses-1")], i)),
    );
    const statuses = results.flat().map(({ status }) => status);
    expect(statuses.filter((status) => status === "created")).toHaveLength(1);
    expect(statuses.filter((status) => status === "exists")).toHaveLength(11);
  });

  test("ST8, ST9: signals through many storages are each stored once, and numbered without a gap", async () => {
    for (let n = 0; n < 2; n++) await open();
    await a.commit([creating("ses-1")], 0);
    // Each is sent through every storage.
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        storages.map((storage) => storage.commit([signalling("ses-1", n)], n)),
      ).flat(),
    );
    const stored = results.flat().flatMap((result) => (result.status === "stored" ? [result.order] : []));
    expect(stored.sort((x, y) => x - y)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
    expect(results.flat().filter(({ status }) => status === "duplicate")).toHaveLength(60);
    expect(await a.reader.pendingSignals("ses-1")).toHaveLength(20);
    expect((await b.reader.session("ses-1"))?.inbox).toBe(20);
  });

  test("ST12: no signal slips between a batch that begins to wait and the answer to it", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    for (let n = 0; n < 10; n++) {
      const waiting = batch(token, n, { session: WAITING });
      const [[committed], [stored]] = await Promise.all([
        a.commit([waiting], 1),
        b.commit([signalling("ses-1", n)], 1),
      ]);
      // The second of the two counts the first.
      const { inbox } = committed as { readonly inbox: number };
      const { order } = stored as { readonly order: number };
      expect(inbox === order || inbox === order - 1).toBe(true);
      expect((await b.reader.session("ses-1"))?.inbox).toBe(n + 1);
    }
    await a.commit([{ type: "release_claim", sessionId: "ses-1", token }], 2);
    expect((await b.due({ now: 2, limit: 10 })).sessionIds).toEqual(["ses-1"]);
  });

  test("ST27: a cancel reaches children that were made elsewhere in the meantime", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    const child = (n: number) =>
      creating(`ses-child-${n}`, { parent: { sessionId: "ses-1", child: n, onEnd: "cancel" } });
    await b.commit([signalling("ses-1", 1)], 1); // Now `b` has the parent in its cache, without children.
    const spawns = Array.from({ length: 5 }, (_, n) =>
      a.commit([batch(token, n, { effects: [child(n)] })], 1),
    );
    const cancel = { type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 } as const;
    const [, ...results] = await Promise.all([b.commit([cancel], 2), ...spawns]);
    const born = results.filter(([result]) => result?.status === "committed").length;
    const children = await a.reader.sessions({ parent: "ses-1", limit: 10 });
    expect(children).toHaveLength(born);
    expect(children.every(({ status }) => status === "cancelled")).toBe(true);
  });

  test("B1: simultaneous spending through many storages never exceeds the budget", async () => {
    const token = await create(creating("ses-1", { ...FOR_EVER, budget: { maxTokens: 100 } }));
    const children = Array.from({ length: 6 }, (_, n) =>
      creating(`ses-child-${n}`, { parent: { sessionId: "ses-1", child: n, onEnd: "leave" } }),
    );
    await a.commit([batch(token, 0, { effects: children })], 1);
    const spends = children.map(async ({ sessionId }, n) => {
      const storage = storages[n % 2]!;
      const claimed = await storage.claim({ sessionId, owner: `owner-${n}`, now: 1, leaseMs: 1_000 });
      const reserve = {
        type: "reserve",
        task: 0,
        amount: { tokens: 30, costMicroUsd: 0, steps: 0, turns: 0 },
      } as const;
      const change = batch((claimed as { readonly token: number }).token, 0, {
        sessionId,
        charges: [reserve],
      });
      return storage.commit([change], 2);
    });
    const admitted = (await Promise.all(spends))
      .flat()
      .filter((result) => "admissions" in result && result.admissions?.[0]?.status === "admitted");
    expect(admitted).toHaveLength(3);
    expect((await b.reader.session("ses-1"))?.account?.reserved.tokens).toBe(90);
  });

  test("ST29, ST30: a session that pauses for its budget while the budget is raised elsewhere resumes", async () => {
    const token = await create(creating("ses-1", { ...FOR_EVER, budget: { maxTokens: 10 } }));
    for (let n = 0; n < 10; n++) {
      const max = 10 + n;
      await Promise.all([
        a.commit([batch(token, n, { session: exhausting(max) })], 1),
        b.commit([{ type: "set_budget", sessionId: "ses-1", limits: { maxTokens: max + 1 } }], 1),
      ]);
      expect((await a.reader.session("ses-1"))?.status).toBe("working");
    }
  });

  test("ST34: a schedule that many fire is fired once", async () => {
    const action = { type: "start", agent: { name: "agent", version: "1" }, input: "1" } as const;
    const schedule = {
      scheduleId: "s",
      cron: "* * * * *",
      timeZone: "UTC",
      action,
      nextAt: 10,
      createdAt: 0,
    };
    await a.commit([{ type: "put_schedule", schedule }], 0);
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        storages[n % 2]!.commit(
          [
            {
              type: "fire_schedule",
              scheduleId: "s",
              dueAt: 10,
              nextAt: 20,
              effect: creating(`ses-fired-${n}`),
            },
          ],
          11,
        ),
      ),
    );
    expect(results.flat().filter(({ status }) => status === "done")).toHaveLength(1);
    expect(results.flat().filter(({ status }) => status === "fenced")).toHaveLength(7);
    expect(await a.reader.sessions({ limit: 10 })).toHaveLength(1);
  });

  test("ST40: exactly one of many simultaneous puts of a new document succeeds", async () => {
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        storages[n % 2]!.commit(
          [{ type: "put_document", collection: "c", id: "d", body: String(n), expected: 0 }],
          1,
        ),
      ),
    );
    expect(results.flat().filter(({ status }) => status === "done")).toHaveLength(1);
    expect(results.flat().filter(({ status }) => status === "conflict")).toHaveLength(7);
  });

  test("ST42: the audit that many write is one chain without a gap", async () => {
    await open();
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        storages[n % 3]!.commit(
          [{ type: "audited", audit: { actor: `a${n}`, action: "look", object: "it" } }],
          n,
        ),
      ),
    );
    const rows = await a.reader.audit({ limit: 100 });
    expect(rows.map(({ seq }) => seq)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
    expect(verifyAudit(rows, (text) => hash("sha256", text, "base64url"))).toMatchObject({
      status: "intact",
    });
    expect(new Set(rows.map(({ actor }) => actor)).size).toBe(30);
  });

  test("ST43: a session that was deleted elsewhere is gone, and a later session of its id is another session", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    await a.commit([batch(token, 0, { session: { status: "completed" } })], 1);
    await b.commit([{ type: "delete_session", sessionId: "ses-1", subtree: "refuse" }], 2);
    expect(await a.commit([signalling("ses-1", 1)], 3)).toEqual([{ status: "not_found" }]);
    await b.commit([creating("ses-1", { claimFor: { owner: "owner-2", leaseMs: Infinity } })], 4);
    // The claim on the deleted session is no claim on the new one.
    expect(await a.commit([batch(token, 0)], 5)).toEqual([{ status: "fenced" }]);
    const tables = ["journal", "entry", "signal", "seen", "hold", "blob"];
    for (const table of tables) expect(await runSql(url, `SELECT * FROM ${schema}.${table}`)).toEqual([]);
  });

  test("a session that is deleted and created again in one group is a new session, written in two groups", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    await a.commit([batch(token, 0, { session: { status: "completed" } })], 1);
    const group: Change[] = [
      { type: "delete_session", sessionId: "ses-1", subtree: "refuse" },
      creating("ses-1"),
      signalling("ses-1", 1),
    ];
    expect(await a.commit(group, 2)).toMatchObject([
      { status: "deleted", sessions: 1 },
      { status: "created" },
      { status: "stored", order: 1 },
    ]);
    expect((await b.reader.session("ses-1"))?.nextSeq).toBe(0);
  });
});

describe("with SERIALIZABLE as the default of the server", () => {
  test("a call that loses against another transaction still gets its answer", async () => {
    const strict = new URL(url);
    strict.searchParams.set("options", "-c default_transaction_isolation=serializable");
    const both = await Promise.all(
      [0, 1].map(() => emptied.reopen({ url: strict.href, pollMs: POLL_MS, notices: false })),
    );
    storages.push(...both);
    const ids = Array.from({ length: 6 }, (_, n) => `ses-${n}`);
    await a.commit(
      ids.map((sessionId) => creating(sessionId)),
      0,
    );
    const asked = both.flatMap((storage, i) =>
      ids.map(async (sessionId) => {
        const { status } = await storage.claim({ sessionId, owner: `owner-${i}`, now: 1, leaseMs: 1_000 });
        await storage.renew({ owner: `owner-${i}`, now: 2, leaseMs: 1_000 });
        const [stored] = await storage.commit([signalling(sessionId, i)], 3);
        await storage.due({ now: 3, limit: 10 });
        return { status, stored: stored?.status };
      }),
    );
    const answers = await Promise.all(asked);
    expect(answers.filter(({ status }) => status === "claimed")).toHaveLength(ids.length);
    expect(answers.filter(({ stored }) => stored === "stored")).toHaveLength(2 * ids.length);
  });
});

// Each change here happens in the critical moment: after a read, and before the write that was decided by it.
describe("changes between reading and writing", () => {
  afterEach(() => vi.restoreAllMocks());

  /** Do something once, after the next read of this kind. */
  function after(read: "heads" | "item" | "exhaustedBy", act: () => Promise<unknown>): void {
    const original = Reads.prototype[read] as (...args: unknown[]) => Promise<unknown>;
    vi.spyOn(Reads.prototype, read).mockImplementationOnce(async function (this: Reads, ...args: unknown[]) {
      const found = await original.apply(this, args);
      await act();
      return found as never;
    });
  }

  test("ST27: a child that another storage gave to a session is cancelled with it", async () => {
    await a.commit([creating("ses-1")], 0);
    await b.commit([signalling("ses-1", 1)], 1); // Now `b` has the session in its cache, without children.
    const parent = { sessionId: "ses-1", child: 0, onEnd: "cancel" } as const;
    await a.commit([creating("ses-child", { parent })], 2);
    await b.commit([{ type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 }], 3);
    expect((await a.reader.session("ses-child"))?.status).toBe("cancelled");
  });

  test.each([
    ["the same storage", () => a],
    ["another storage", () => b],
  ])("ST30: a distant descendant that exhausts a budget while %s raises it resumes", async (_who, raiser) => {
    const token = await create(creating("ses-1", { ...FOR_EVER, budget: { maxTokens: 10 } }));
    const below = (sessionId: string) => ({ parent: { sessionId, child: 0, onEnd: "cancel" as const } });
    await a.commit([batch(token, 0, { effects: [creating("ses-2", below("ses-1"))] })], 1);
    const third = await create(creating("ses-3", { ...FOR_EVER, ...below("ses-2") }));
    const pause = batch(third, 0, { sessionId: "ses-3", session: exhausting(10) });
    after("exhaustedBy", () => a.commit([pause], 2));
    await raiser().commit([{ type: "set_budget", sessionId: "ses-1", limits: { maxTokens: 20 } }], 2);
    expect((await a.reader.session("ses-3"))?.status).toBe("working");
  });

  test("ST37: a lease that is renewed while another owner takes it over is kept", async () => {
    await a.commit([creating("ses-1")], 0);
    await claim(a, "owner-1", 0);
    after("heads", () => a.renew({ owner: "owner-1", now: 1_000, leaseMs: 1_000 }));
    const taken = await b.claim({ sessionId: "ses-1", owner: "owner-2", now: 1_000, leaseMs: 1_000 });
    expect(taken).toEqual({ status: "busy", owner: "owner-1" });
  });

  test("ST49: no session is created under a claim that is taken over meanwhile", async () => {
    await a.commit([creating("ses-1")], 0);
    const token = await claim(a, "owner-1", 0);
    const under = { sessionId: "ses-1", token };
    expect(await b.commit([creating("made-1", { under })], 1)).toEqual([{ status: "created" }]);
    // `b` has the claim in its cache, and reads it again only when its write is refused.
    await claim(a, "owner-2", 1_000);
    expect(await b.commit([creating("made-2", { under })], 1_000)).toEqual([{ status: "fenced" }]);
    const c = await open();
    const next = await claim(a, "owner-3", 2_000);
    after("heads", () => claim(a, "owner-4", 3_000));
    expect(
      await c.commit([creating("made-3", { under: { sessionId: "ses-1", token: next } })], 3_000),
    ).toEqual([{ status: "fenced" }]);
    expect(await a.load("made-3")).toBeUndefined();
  });

  test("ST49: exactly one of many creations under a claim succeeds, and none does after the session was deleted", async () => {
    await a.commit([creating("ses-1")], 0);
    const under = { sessionId: "ses-1", token: await claim(a, "owner-1", 0) };
    const made = { sessionId: "made", subtree: "refuse" } as const;
    const makeAll = async (): Promise<readonly string[]> => {
      const all = Array.from({ length: 8 }, (_, i) =>
        storages[i % 2]!.commit([creating("made", { under })], 1),
      );
      return (await Promise.all(all)).map(([result]) => result!.status).sort();
    };
    expect(await makeAll()).toEqual(["created", ...Array<string>(7).fill("exists")]);
    await a.commit([{ type: "request_cancel", ...made, mode: "hard", graceMs: 0 }], 1);
    expect(await b.commit([{ type: "delete_session", ...made }], 1)).toMatchObject([{ status: "deleted" }]);
    expect(await makeAll()).toEqual(Array<string>(8).fill("duplicate"));
  });

  test("ST40: a put of a document that is changed meanwhile is a conflict", async () => {
    const put = { type: "put_document", collection: "c", id: "d" } as const;
    await a.commit([{ ...put, body: "1" }], 0);
    after("item", () => a.commit([{ ...put, body: "2" }], 1));
    expect(await b.commit([{ ...put, body: "3", expected: 1 }], 1)).toEqual([
      { status: "conflict", version: 2 },
    ]);
  });
});

describe("a process that died", () => {
  /** Mark all instances as gone. A server that was just started would otherwise wait for a silent one. */
  const fallSilent = () => runSql(url, `UPDATE ${schema}.instance SET said_at = '-infinity'`);

  test("ST18: a session that it had claimed without end is due, is lost once, and its late batch is fenced", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    expect((await b.due({ now: 1, limit: 10 })).sessionIds).toEqual([]);
    expect(await b.claim({ sessionId: "ses-1", owner: "owner-2", now: 1, leaseMs: 9 })).toMatchObject({
      status: "busy",
    });
    await fallSilent();
    expect((await b.due({ now: 1, limit: 10 })).sessionIds).toEqual(["ses-1"]);
    expect(await b.claim({ sessionId: "ses-1", owner: "owner-2", now: 1, leaseMs: 9 })).toMatchObject({
      status: "claimed",
      losses: 1,
    });
    expect(await a.commit([batch(token, 0)], 2)).toEqual([{ status: "fenced" }]);
  });

  test("ST39: its session can be claimed before anybody asks what is due, and counts as lost", async () => {
    await a.commit([creating("ses-1", FOR_EVER)], 0);
    await fallSilent();
    expect(await b.claim({ sessionId: "ses-1", owner: "owner-2", now: 1, leaseMs: 9 })).toMatchObject({
      status: "claimed",
      losses: 1,
    });
  });

  test("a storage never counts itself as dead, however old its sign of life is", async () => {
    const token = await create(creating("ses-1", FOR_EVER));
    await fallSilent();
    expect((await a.due({ now: 1, limit: 10 })).sessionIds).toEqual([]);
    expect(await a.claim({ sessionId: "ses-1", owner: "owner-2", now: 1, leaseMs: 9 })).toMatchObject({
      status: "busy",
    });
    expect(await a.commit([batch(token, 0)], 2)).toMatchObject([{ status: "committed" }]);
  });

  test("ST38: leases keep their expiry while another storage lives, and start over when none did", async () => {
    await a.commit([creating("ses-1")], 0);
    await claim(a, "owner-1", 0);
    const c = await open();
    const asked = { sessionId: "ses-1", owner: "owner-2", leaseMs: 1_000 };
    expect(await c.claim({ ...asked, now: 1_000 })).toMatchObject({ status: "claimed" });
    await fallSilent();
    const d = await open();
    expect(await d.claim({ ...asked, owner: "owner-3", now: 5_000 })).toEqual({
      status: "busy",
      owner: "owner-2",
    });
    expect(await d.claim({ ...asked, owner: "owner-3", now: 6_000 })).toMatchObject({ status: "claimed" });
  });
});

describe("arrivals that another process stored", () => {
  let received: Arrival[];

  beforeEach(() => {
    received = [];
    a.subscribe((arrival) => received.push(arrival));
  });

  test("ST22: a holder is notified of a signal and of a cancel", async () => {
    await a.commit([creating("ses-1", FOR_EVER)], 0);
    await b.commit([signalling("ses-1", 1)], 1);
    await until(() => received.length === 1);
    await b.commit([{ type: "request_cancel", sessionId: "ses-1", mode: "graceful", graceMs: 10 }], 1);
    await until(() => received.length === 2);
    expect(received.every(({ sessionId }) => sessionId === "ses-1")).toBe(true);
  });

  test("ST22: an unclaimed session with something to do is named once, until something new happens", async () => {
    await b.commit([creating("ses-1")], 0);
    await until(() => received.length === 1);
    await b.commit([signalling("ses-1", 1)], 1);
    await until(() => received.length === 2);
    // A look later there is nothing new, so the next arrival is of the other session.
    await b.commit([creating("ses-2")], 2);
    await until(() => received.length > 2);
    expect(received.map(({ sessionId }) => sessionId)).toEqual(["ses-1", "ses-1", "ses-2"]);
  });

  test("ST22: a holder is notified when another process moves its session away", async () => {
    await a.commit([creating("ses-1", FOR_EVER)], 1);
    const move = { sessionId: "ses-1", moveId: "mov-1" };
    await b.commit([{ type: "begin_move", ...move, to: "elsewhere" }], 2);
    await b.commit([{ type: "end_move", ...move, outcome: "moved" }], 3);
    await until(() => received.length > 0);
    expect((await a.arrivals("ses-1", 0)).session.move).toMatchObject({ isDone: true });
  });

  test("a listener that has left receives nothing, and the others still do", async () => {
    const others: Arrival[] = [];
    const leave = a.subscribe((arrival) => others.push(arrival));
    leave();
    await b.commit([creating("ses-1")], 0);
    await until(() => received.length === 1);
    expect(others).toEqual([]);
  });
});

describe("followers", () => {
  test("ST47: a follower is notified when another process creates, commits or deletes a session, also one that is unclaimed here", async () => {
    let received = 0;
    const leave = a.follow("ses-1", () => received++);
    const learnsOf = async (work: () => Promise<unknown>): Promise<void> => {
      const before = received;
      await work();
      await until(() => received > before);
    };
    await learnsOf(() => b.commit([creating("ses-1")], 0));
    let token = 0;
    await learnsOf(async () => void (token = await claim(b, "owner-1", 0)));
    await learnsOf(() => b.commit([batch(token, 0)], 1));
    await learnsOf(() => b.commit([batch(token, 1, { session: { status: "completed", output: "1" } })], 1));
    await learnsOf(() => b.commit([{ type: "delete_session", sessionId: "ses-1", subtree: "refuse" }], 1));
    leave();
  });

  test("ST47: a follower that has left is not notified of another process's commits", async () => {
    let [left, stays] = [0, 0];
    await b.commit([creating("ses-1")], 0);
    const leave = a.follow("ses-1", () => left++);
    a.follow("ses-1", () => stays++);
    await until(() => stays > 0); // It was not known here.
    leave();
    const [leftThen, staysThen] = [left, stays];
    await b.commit([signalling("ses-1", 1)], 1);
    await until(() => stays > staysThen);
    expect(left).toBe(leftThen);
  });
});

test("a session tree that is larger than the cache is cancelled as a whole", async () => {
  const db = new Database({ url, schema, connectionsMax: 2, connectTimeoutMs: 5_000 });
  const common = { db, at: "here", lanes: 8, pollMs: POLL_MS, notices: undefined, now: undefined };
  const small = new PostgresStorage({ ...common, headsMax: 2, stamp: () => Date.now() * 1_000 });
  storages.push(small);
  const children = Array.from({ length: 9 }, (_, child) =>
    creating(`ses-1-${child}`, { parent: { sessionId: "ses-1", child, onEnd: "cancel" } }),
  );
  await a.commit([creating("ses-1"), ...children], 0);
  const cancel = { type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 } as const;
  expect(await small.commit([cancel], 1)).toMatchObject([{ status: "requested" }]);
  const cancelled = await b.reader.sessions({ limit: 99, status: "cancelled" });
  expect(cancelled).toHaveLength(1 + children.length);
});
