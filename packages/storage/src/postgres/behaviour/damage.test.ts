// Damaged rows, and changes that the database refuses: each is reported by name, and affects nothing else.

import type { Change, CommitBatch, CreateSession } from "@holdfast/core";
import { FORMAT_LIMITS } from "@holdfast/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openPostgresReader, type PostgresStorage } from "../index.ts";
import { EmptiedSchema } from "../testing/emptied.ts";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";

const emptied = new EmptiedSchema();
let storage: PostgresStorage;

beforeEach(async () => {
  storage = await emptied.open();
});

afterEach(() => storage.close());

const sql = async (text: string) => runSql(await sharedServerUrl(), text.replaceAll("$S", emptied.schema));

/** The problems that a full check finds, by table. */
async function verify(): Promise<string[]> {
  const reader = await openPostgresReader({ url: await sharedServerUrl(), schema: emptied.schema });
  try {
    return (await reader.verify()).problems.map(({ table, message }) => `${table}: ${message}`);
  } finally {
    await reader.close();
  }
}

/** As a process would that never saw any of it. */
async function reopen(): Promise<void> {
  await storage.close();
  storage = await emptied.reopen();
}

function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

function signalling(sessionId: string, signalId: string, more: object = {}): Change {
  return { type: "send_signal", sessionId, signalId, name: "go", payload: '"hello"', ...more };
}

/** A session with something in every table. */
async function fill(): Promise<void> {
  const claimFor = { owner: "owner-1", leaseMs: 1_000 };
  const [created] = await storage.commit([creating("ses-1", { claimFor, budget: { maxTokens: 10 } })], 1);
  const amount = { tokens: 1, costMicroUsd: 0, steps: 0, turns: 0 };
  const large = `"${"z".repeat(FORMAT_LIMITS.blobChars)}"`;
  const batch: CommitBatch = {
    type: "commit_batch",
    sessionId: "ses-1",
    token: (created as { readonly token: number }).token,
    firstSeq: 0,
    records: [
      { type: "append_entry", seq: 0, id: 0, role: "user", hash: "h" },
      { type: "warned", seq: 1, at: 1, payload: large },
    ],
    entries: [{ id: 0, index: 0, role: "user", turn: 0, content: '"said"' }],
    consumed: [],
    charges: [{ type: "reserve", task: 1, amount }],
  };
  await storage.commit([batch, signalling("ses-1", "sig-1")], 1);
  const action = { type: "start", agent: { name: "agent", version: "1" }, input: "1" } as const;
  const schedule = {
    scheduleId: "s",
    cron: "* * * * *",
    timeZone: "UTC",
    action,
    nextAt: 9e15,
    createdAt: 0,
  };
  await storage.commit(
    [
      { type: "put_schedule", schedule },
      { type: "audited", audit: { actor: "a", action: "b", object: "c" } },
    ],
    1,
  );
}

describe("a damaged row is named, and never used", () => {
  const load = () => storage.load("ses-1");
  test.each([
    ["session", "UPDATE $S.session SET made = replace(made, '\"seed\":1', '\"seed\":2')", load],
    ["state", "UPDATE $S.state SET body = replace(body, '\"inbox\":1', '\"inbox\":2')", load],
    ["journal", "UPDATE $S.journal SET body = replace(body, 'warned', 'warmed')", load],
    ["entry", "UPDATE $S.entry SET content = '\"sad\"'", () => storage.conversation("ses-1", 0)],
    ["signal", "UPDATE $S.signal SET payload = '\"hallo\"'", load],
    ["hold", "UPDATE $S.hold SET amount = replace(amount, '1', '2')", load],
    ["blob", "UPDATE $S.blob SET content = content || ' '", load],
    ["item", "UPDATE $S.item SET body = replace(body, 'UTC', 'CET')", () => storage.reader.schedules()],
    [
      "audit",
      "UPDATE $S.audit SET body = replace(body, '\"a\"', '\"x\"')",
      () => storage.reader.audit({ limit: 9 }),
    ],
  ] as const)("%s", async (table, damage, read) => {
    await fill();
    await sql(damage);
    await reopen();
    await expect(read()).rejects.toMatchObject({
      name: "CorruptRecordError",
      at: expect.stringContaining(`table ${table}, row `),
    });
    expect(await verify()).toContainEqual(
      expect.stringMatching(new RegExp(`not what was (written|stored).*table ${table}, row `)),
    );
  });

  test("a row in the place of another row is found as well", async () => {
    await fill();
    await storage.commit([creating("ses-2")], 1);
    await sql("UPDATE $S.state SET body = (SELECT body FROM $S.state WHERE session_id = 'ses-1')");
    await expect(storage.reader.session("ses-2")).rejects.toMatchObject({ code: "corrupt_record" });
  });

  test.each([
    ["the journal's end", "DELETE FROM $S.journal"],
    ["a blob", "DELETE FROM $S.blob"],
  ])("%s that is missing is noticed", async (_what, damage) => {
    await fill();
    await sql(damage);
    await expect(load()).rejects.toMatchObject({ code: "corrupt_record" });
  });
});

describe("a full check", () => {
  test("the check finds nothing wrong with a sound database, and counts its rows", async () => {
    await fill();
    await storage.commit([creating("ses-2"), signalling("ses-2", "sig-1")], 1);
    const reader = await openPostgresReader({ url: await sharedServerUrl(), schema: emptied.schema });
    const { problems, rows } = await reader.verify();
    await reader.close();
    expect(problems).toEqual([]);
    expect(rows).toEqual({
      session: 2,
      journal: 1,
      entry: 1,
      signal: 2,
      hold: 1,
      item: 2,
      audit: 1,
      blob: 1,
    });
  });

  test("the check continues over many pages", async () => {
    const sessions = Array.from({ length: 1_100 }, (_, n) => creating(`ses-${n}`));
    await storage.commit(sessions, 1);
    await sql("UPDATE $S.state SET body = body || ' ' WHERE session_id = 'ses-999'");
    expect(await verify()).toEqual([expect.stringMatching(/^session: .*ses-999/)]);
  });

  test.each([
    [
      "a journal that ends too early",
      "DELETE FROM $S.journal",
      /^journal: session ses-1 has 2 records.* ends at 0/,
    ],
    ["a gap in a journal", "UPDATE $S.journal SET seq = seq + 1", /^journal: session ses-1 has nothing at 0/],
    ["a large text that is gone", "DELETE FROM $S.blob", /^journal: .*a large payload is missing/],
    ["an entry that is gone", "UPDATE $S.entry SET seq = 7", /^entry: /],
    ["a session without a state", "DELETE FROM $S.state", /^session: 1 rows have no state/],
    ["rows of no session", "DELETE FROM $S.session", /^signal: 1 rows belong to no session/],
    ["rows in another lane", "UPDATE $S.hold SET lane = lane + 1", /^hold: 1 rows belong to no session/],
    [
      "a row of the audit that is gone",
      "DELETE FROM $S.audit WHERE seq = 1",
      /^audit: row 2 does not follow/,
    ],
  ])("the check finds %s", async (_what, damage, expected) => {
    await fill();
    await storage.commit([{ type: "audited", audit: { actor: "a", action: "b", object: "d" } }], 1);
    await sql(damage);
    expect(await verify()).toContainEqual(expect.stringMatching(expected));
  });

  test("a check of a missing schema makes nothing, and says that there is nothing", async () => {
    const url = await sharedServerUrl();
    await expect(openPostgresReader({ url, schema: "test_nothing_here" })).rejects.toMatchObject({
      code: "storage_unavailable",
      got: "no tables of Holdfast",
    });
    expect(await sql("SELECT 1 FROM pg_namespace WHERE nspname = 'test_nothing_here'")).toEqual([]);
  });
});

test("damaged rows do not hide other rows, whether overdue sessions, relatives of damaged sessions or schedules", async () => {
  const parent = { sessionId: "ses-1", child: 0, onEnd: "cancel" } as const;
  const cron = { cron: "* * * * *", timeZone: "UTC", createdAt: 0 };
  const action = { type: "signal", sessionId: "ses-5", name: "go", payload: undefined } as const;
  const schedules = ["sch-1", "sch-2"].map((scheduleId): Change => {
    return { type: "put_schedule", schedule: { scheduleId, ...cron, action, nextAt: 5 } };
  });
  const late = { deadlineAt: 5 };
  await storage.commit(
    [
      creating("ses-1"),
      creating("ses-2", late), // Damaged itself.
      creating("ses-3", { ...late, parent }), // Its parent is damaged.
      creating("ses-4", late),
      creating("ses-5"),
      ...schedules,
    ],
    0,
  );
  await sql("UPDATE $S.state SET body = body || ' ' WHERE session_id IN ('ses-1', 'ses-2')");
  await sql("UPDATE $S.item SET body = body || ' ' WHERE key = 'sch-1'");
  await reopen();
  const due = await storage.due({ now: 10, limit: 9 });
  expect((await storage.reader.session("ses-4"))?.cancel).toMatchObject({ cause: "deadline" });
  expect(due.sessionIds).toEqual(expect.arrayContaining(["ses-4", "ses-5"]));
  expect(due.schedules.map(({ scheduleId }) => scheduleId)).toEqual(["sch-2"]);
  await expect(storage.reader.schedules()).rejects.toMatchObject({ code: "corrupt_record" });
});

test("ST41: a damaged document is skipped in lists, page by page", async () => {
  const put = (id: string): Change => ({ type: "put_document", collection: "runner", id, body: "1" });
  await storage.commit(["a", "b", "c", "d"].map(put), 1);
  await sql("UPDATE $S.item SET body = body || ' ' WHERE key IN ('a', 'c')");
  await reopen();
  const { reader } = storage;
  const page = async (limit: number, after = "") =>
    (await reader.documents({ collection: "runner", limit, after })).map(({ id }) => id);
  expect(await page(9)).toEqual(["b", "d"]);
  expect(await page(1)).toEqual(["b"]);
  expect(await page(1, "b")).toEqual(["d"]);
  await expect(reader.document("runner", "a")).rejects.toMatchObject({ code: "corrupt_record" });
});

describe("ST4: a change that cannot be stored", () => {
  test("changes of other sessions are stored beside a change of a damaged session", async () => {
    await fill();
    await storage.commit([creating("ses-2"), creating("ses-3")], 1);
    await sql("UPDATE $S.state SET body = body || ' ' WHERE session_id = 'ses-1'");
    await reopen();
    const group = ["ses-2", "ses-1", "ses-3"].map((sessionId) => signalling(sessionId, "sig-9"));
    const results = await storage.commit(group, 2);
    expect(results.map(({ status }) => status)).toEqual(["stored", "invalid", "stored"]);
    expect(results[1]).toMatchObject({ reason: expect.stringContaining("not what was written") });
    // Alone, the change rejects with the damage.
    await expect(storage.commit([group[1]!], 2)).rejects.toMatchObject({ code: "corrupt_record" });
  });

  test("changes are stored beside a change with a character that PostgreSQL does not store", async () => {
    const group = Array.from({ length: 9 }, (_, n) => creating(`ses-${n}${n === 5 ? "\0" : ""}`));
    const results = await storage.commit(group, 1);
    expect(results.map(({ status }) => status)).toEqual(
      group.map((_, n) => (n === 5 ? "invalid" : "created")),
    );
    expect(await storage.reader.sessions({ limit: 20 })).toHaveLength(8);
  });

  test("a read by an id with that character is a usage error", async () => {
    await expect(storage.reader.session("a\0")).rejects.toMatchObject({ code: "usage" });
    await expect(storage.reader.document("c", "\0")).rejects.toMatchObject({ code: "usage" });
  });

  test("changes are stored beside a change with a name that is too long for an index", async () => {
    const random = Array.from({ length: 9_000 }, (_, n) => ((n * 7_919) % 7_001).toString(36)).join("");
    const results = await storage.commit([creating("ses-1"), creating(random), signalling("ses-1", "s")], 1);
    expect(results.map(({ status }) => status)).toEqual(["created", "invalid", "stored"]);
  });
});

// A step costs one round trip, however many sessions share it.
describe("statements for the database", () => {
  test("a group is one statement: steps, new sessions, ends and signals", async () => {
    const claimFor = { owner: "owner-1", leaseMs: 1_000 };
    const ids = Array.from({ length: 50 }, (_, n) => `ses-${n}`);
    await storage.commit([creating("ses-first", { claimFor })], 0);
    const before = storage.statementCount;
    const created = await storage.commit(
      ids.map((sessionId) => creating(sessionId, { claimFor })),
      1,
    );
    const step = (seq: number, more: Partial<CommitBatch> = {}): Change[] =>
      ids.map((sessionId, i) => ({
        type: "commit_batch",
        sessionId,
        token: (created[i] as { readonly token: number }).token,
        firstSeq: seq,
        records: [{ type: "warned", seq, at: 1, payload: '"x"' }],
        entries: [],
        consumed: [],
        ...more,
      }));
    await storage.commit(step(0), 2);
    await storage.commit(
      ids.map((sessionId) => signalling(sessionId, "sig-1")),
      3,
    );
    await storage.commit(step(1, { consumed: ["sig-1"] }), 4);
    const ended = await storage.commit(step(2, { session: { status: "completed" } }), 5);
    expect(ended.every(({ status }) => status === "committed")).toBe(true);
    expect(storage.statementCount - before).toBe(5);
  });

  test("an audited change is one statement, except the first one", async () => {
    const audit = { actor: "a", action: "b", object: "c" };
    await storage.commit([{ type: "audited", audit }], 0);
    const before = storage.statementCount;
    const claimFor = { owner: "owner-1", leaseMs: 1_000 };
    await storage.commit([{ type: "audited", change: creating("ses-1", { claimFor }), audit }], 1);
    await storage.commit([{ type: "audited", audit }], 2);
    // The first claim also writes the instance's sign of life.
    expect(storage.statementCount - before).toBe(3);
  });
});
