// Stores and session files of every earlier schema version, as the last build of that version left them when its process was killed.
// Today's build opens each, finds all of it, and brings each of its sessions to its end. `testing/older-stores` has them.

import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BEHAVIOUR_FLAGS, JOURNAL_FORMAT } from "@holdfast/core";
import { openPostgresReader, openPostgresStorage } from "@holdfast/storage/postgres";
import { newSchema, runSql, sharedServerUrl } from "@holdfast/storage/postgres-testing";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import {
  createRuntime,
  defineAgent,
  defineTask,
  local,
  openSqliteReader,
  openSqliteStorage,
  type AgentStorage,
  type StorageReader,
} from "../index.ts";
import {
  agentsOf,
  BUDGET,
  LARGE_INPUT,
  SESSIONS,
  SLEEP_MS,
  USED_TOKENS,
  WIDTH,
  WORST_TOKENS,
} from "../testing/older-stores/agents.ts";
import { dumpPostgres, dumpSqlite } from "../testing/older-stores/dump.ts";

const FOLDER = new URL("../testing/older-stores/", import.meta.url);

interface Report {
  readonly problems: readonly unknown[];
}

/** A place for a store, without one at first. */
interface Place {
  /** Make the store that a file of SQL describes. */
  load(sql: string): Promise<void>;
  version(): Promise<number>;
  /** All that is stored, to be compared. */
  contents(): Promise<unknown>;
  /** The same as text, beside a process that has it open. */
  rows(): Promise<string>;
  open(): Promise<AgentStorage>;
  read(): Promise<StorageReader & { verify(): Report | Promise<Report>; close(): unknown }>;
}

const KINDS: { readonly [kind: string]: () => Promise<Place> } = {
  async sqlite() {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-older-"));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "store.db");
    const withDatabase = <T>(work: (database: DatabaseSync) => T): T => {
      const database = new DatabaseSync(path);
      try {
        return work(database);
      } finally {
        database.close();
      }
    };
    return {
      load: async (sql) => withDatabase((database) => database.exec(sql)),
      version: async () =>
        withDatabase((database) => Number(database.prepare("PRAGMA user_version").get()?.["user_version"])),
      contents: async () => readFileSync(path).toString("base64"),
      rows: async () => dumpSqlite(path),
      open: () => openSqliteStorage({ path }),
      read: async () => openSqliteReader({ path }),
    };
  },
  async postgres() {
    const url = await sharedServerUrl();
    const schema = newSchema();
    return {
      // A server that has just been started takes nobody for dead by time. These processes are known to be dead.
      load: async (sql) =>
        void (await runSql(
          url,
          `CREATE SCHEMA ${schema}; SET search_path = ${schema}; ${sql}; UPDATE instance SET said_at = '-infinity'`,
        )),
      version: async () => {
        const [row] = await runSql(url, `SELECT value FROM ${schema}.meta WHERE key = 'schema_version'`);
        return Number(row?.["value"]);
      },
      contents: () => dumpPostgres(url, schema),
      rows: () => dumpPostgres(url, schema),
      open: () => openPostgresStorage({ url, schema }),
      read: () => openPostgresReader({ url, schema }),
    };
  },
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).toReversed()) await cleanUp();
});

async function opened(place: Place): ReturnType<Place["open"]> {
  const storage = await place.open();
  cleanups.push(() => storage.close());
  return storage;
}

/** Today's runtime with the agents of the stores, and the attempts of their tasks. */
function run(storage: AgentStorage, now?: number) {
  const attempts: string[] = [];
  const agents = agentsOf({ defineAgent, defineTask, local }, (label, sessionId) => {
    attempts.push(`${sessionId} ${label}`);
  });
  const clock = new TestClock(now);
  const runtime = createRuntime({
    storage,
    clock,
    agents: Object.values(agents),
    owner: "today",
    development: false,
  });
  cleanups.push(() => runtime.close());
  return { runtime, clock, attempts };
}

function versionsOf(kind: string): number[] {
  return readdirSync(FOLDER)
    .flatMap((name) => new RegExp(`^${kind}-(\\d+)\\.sql$`).exec(name)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => a - b);
}

const textOf = (name: string): string => readFileSync(new URL(name, FOLDER), "utf8");

async function expectSound(place: Place): Promise<void> {
  const reader = await place.read();
  const { problems } = await reader.verify();
  await reader.close();
  expect(problems).toEqual([]);
}

/** Whether the tables of that version have a place for documents, the audit and leases. */
const hasLedger = (kind: string, version: number): boolean => kind !== "sqlite" || version > 1;

/** All that the process had stored when it was killed. */
async function expectWhole(reader: StorageReader, withLedger: boolean): Promise<void> {
  const sessions = await reader.sessions({ limit: 100 });
  expect(Object.fromEntries(sessions.map(({ sessionId, status }) => [sessionId, status]))).toEqual({
    [SESSIONS.ended]: "completed",
    [SESSIONS.hold]: "working",
    [SESSIONS.queued]: "submitted",
    [SESSIONS.question]: "input_required",
    [SESSIONS.timer]: "waiting",
    [SESSIONS.listening]: "waiting",
    [SESSIONS.signalled]: "waiting",
    [SESSIONS.parent]: "waiting",
    [SESSIONS.child]: "waiting",
    ...(withLedger ? { [SESSIONS.leased]: "submitted" } : {}),
  });
  const note = withLedger ? { body: '{"text":"kept"}' } : undefined;
  const started = { actor: "anna", action: "start", object: SESSIONS.leased };
  if (note === undefined) expect(await reader.document("notes", "note-1")).toBeUndefined();
  else expect(await reader.document("notes", "note-1")).toMatchObject(note);
  expect(await reader.audit({ limit: 10 })).toMatchObject(withLedger ? [started] : []);
  expect(await reader.session(SESSIONS.ended)).toMatchObject({
    input: JSON.stringify(LARGE_INPUT),
    output: JSON.stringify({ length: LARGE_INPUT.length, output: "only done" }),
  });
  expect(await reader.entries(SESSIONS.ended, 0, 10)).toMatchObject([
    { role: "user", content: '"begin"' },
    { role: "assistant", content: '"only done"' },
  ]);
  expect((await reader.session(SESSIONS.hold))?.account).toMatchObject({
    limits: BUDGET,
    spent: { tokens: USED_TOKENS },
    reserved: { tokens: WIDTH * WORST_TOKENS },
  });
  const journal = await reader.journal(SESSIONS.hold, 0, 100);
  expect(journal.map(({ type }) => type)).toEqual([
    "started",
    "schedule_task",
    "task_completed",
    ...Array<string>(WIDTH).fill("schedule_task"),
  ]);
  expect((await reader.session(SESSIONS.question))?.waits).toMatchObject([
    { type: "input", prompt: "Deploy?" },
  ]);
  expect((await reader.session(SESSIONS.child))?.parent).toMatchObject({ sessionId: SESSIONS.parent });
  expect(await reader.pendingSignals(SESSIONS.listening)).toMatchObject([
    { signalId: "sig-later", name: "later", payload: '{"n":7}' },
  ]);
  expect(await reader.pendingSignals(SESSIONS.signalled)).toMatchObject([
    { signalId: "sig-go", name: "go", payload: "1" },
  ]);
  expect(await reader.schedules()).toMatchObject([{ scheduleId: "nightly", cron: "0 3 * * *" }]);
  expect(await reader.sessions({ limit: 100, agent: "listener", status: "waiting" })).toHaveLength(2);
}

/** PostgreSQL may answer only after the clock was moved, and what its answer sets a timer for is due by then. */
async function whileTimePasses<T>(clock: TestClock, promise: Promise<T>): Promise<T> {
  const passed = Symbol("a millisecond");
  for (;;) {
    const first = await Promise.race([promise, clock.advance(1).then(() => passed)]);
    if (first !== passed) return first as T;
  }
}

/** Bring each session to its end, and check what it made of what had been stored. */
async function continueSession(storage: AgentStorage, withLedger: boolean): Promise<void> {
  const wakeAt = (await storage.reader.session(SESSIONS.timer))!.wakeAt!;
  const { runtime, clock, attempts } = run(storage, wakeAt - SLEEP_MS / 2);
  await runtime.recover();
  const result = (sessionId: string) => runtime.handle(sessionId).result();

  expect(await result(SESSIONS.queued)).toEqual({ length: "later".length, output: "only done" });
  expect(await result(SESSIONS.signalled)).toEqual({ before: "before done", go: 1, later: null });

  await runtime.answer(SESSIONS.question, { approved: true });
  expect(await result(SESSIONS.question)).toMatchObject({ approved: true });

  await runtime.signal(SESSIONS.listening, "go", 5);
  expect(await result(SESSIONS.listening)).toEqual({ before: "before done", go: 5, later: { n: 7 } });

  await runtime.signal(SESSIONS.child, "finish", "fine");
  expect(await result(SESSIONS.child)).toBe("fine");
  expect(await result(SESSIONS.parent)).toEqual({ child: "fine" });

  const wide = Array.from({ length: WIDTH }, (_, index) => `wide ${index}`);
  expect(await result(SESSIONS.hold)).toEqual(["first done", ...wide.map((label) => `${label} done`)]);
  const account = (await storage.reader.session(SESSIONS.hold))?.account;
  expect(account).toMatchObject({
    spent: { tokens: USED_TOKENS + WIDTH * (WORST_TOKENS + USED_TOKENS) },
    reserved: { tokens: 0 },
    lost: { tokens: WIDTH * WORST_TOKENS },
  });
  expect((await storage.load(SESSIONS.hold))?.holds).toEqual([]);

  await runtime.resume(SESSIONS.timer);
  await clock.advance(wakeAt - 1 - clock.now());
  expect((await storage.reader.session(SESSIONS.timer))?.status).toBe("waiting");
  expect(await whileTimePasses(clock, result(SESSIONS.timer))).toBeGreaterThanOrEqual(SLEEP_MS);

  const done = { length: "later".length, output: "only done" };
  if (withLedger) {
    await runtime.recover(); // Its runner's lease is over.
    expect(await result(SESSIONS.leased)).toEqual(done);
  }

  // Neither a task that was done nor a session that had ended is done again.
  expect(attempts.toSorted()).toEqual(
    [
      ...wide.map((label) => `${SESSIONS.hold} ${label}`),
      `${SESSIONS.queued} only`,
      ...(withLedger ? [`${SESSIONS.leased} only`] : []),
    ].toSorted(),
  );
  await runtime.close();
}

describe.each(Object.entries(KINDS))("%s", (kind, newPlace) => {
  test("there is a store, with a session file, of every schema version before today's", async () => {
    const place = await newPlace();
    await opened(place);
    const earlier = Array.from({ length: (await place.version()) - 1 }, (_, index) => index + 1);
    const why = "make the missing one with the last build of its version: testing/older-stores/README.md";
    expect(versionsOf(kind), why).toEqual(earlier);
    for (const version of earlier) expect(textOf(`${kind}-${version}.session.jsonl`), why).not.toBe("");
  });

  // As after a newer Holdfast of the same schema version used the store.
  test.each([
    ["a behaviour flag", { flags: BEHAVIOUR_FLAGS + 1 }],
    ["a journal format", { format: JOURNAL_FORMAT + 1 }],
  ])(
    "a session with %s that is not known is refused by name, and no row of the store changes",
    async (_, newer) => {
      const place = await newPlace();
      const storage = await opened(place);
      const agent = { name: "brief", version: "1" };
      const creation = { type: "create_session", agent, seed: 1, input: '"later"' } as const;
      const known = { flags: BEHAVIOUR_FLAGS, format: JOURNAL_FORMAT };
      await storage.commit(
        ["ses-1", "ses-2"].map((sessionId) => ({ ...creation, sessionId, ...known, ...newer })),
        1,
      );
      const before = await place.rows();
      const { runtime, attempts } = run(storage);
      await runtime.recover();
      for (const sessionId of ["ses-1", "ses-2"]) {
        const refusal = {
          code: "version_unsupported",
          message: expect.stringContaining(sessionId) as string,
        };
        await expect(runtime.resume(sessionId)).rejects.toMatchObject(refusal);
        await expect(runtime.fork(sessionId)).rejects.toMatchObject(refusal);
      }
      await runtime.close();
      expect(await place.rows()).toBe(before);
      expect(attempts).toEqual([]);
    },
  );

  test("a session file of a newer format is refused by name, and no row of the store changes", async () => {
    const place = await newPlace();
    const storage = await opened(place);
    const { runtime } = run(storage);
    const before = await place.rows();
    const text = textOf(`${kind}-${versionsOf(kind).at(-1)}.session.jsonl`);
    for (const [is, becomes] of [
      ['"session","format":1', '"session","format":3'],
      [/"flags":\d+/, `"flags":${BEHAVIOUR_FLAGS + 1}`],
      [/(?<="flags":\d+,)"format":1/, '"format":2'],
    ] as const) {
      const body = text.slice(0, text.lastIndexOf("{")).replace(is, becomes);
      const sum = createHash("sha256").update(body).digest("hex");
      const file = new Blob([body, JSON.stringify({ sha256: sum }), "\n"]).stream();
      await expect(runtime.import(file), becomes).rejects.toMatchObject({
        code: "version_unsupported",
        at: "the file, line 1",
        fix: expect.any(String) as string,
      });
    }
    expect(await place.rows()).toBe(before);
  });

  describe.each(versionsOf(kind))("schema version %i", (version) => {
    test("every table of the store has rows", () => {
      const sql = textOf(`${kind}-${version}.sql`);
      const tables = [...sql.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, table]) => table);
      expect(tables.filter((table) => !sql.includes(`INSERT INTO ${table} VALUES`))).toEqual([]);
    });

    test("a store is brought to today's version whole, and each of its sessions goes on to its end", async () => {
      const place = await newPlace();
      await place.load(textOf(`${kind}-${version}.sql`));
      expect(await place.version()).toBe(version);

      const storage = await opened(place);
      expect(await place.version()).toBe(versionsOf(kind).at(-1)! + 1);
      await expectWhole(storage.reader, hasLedger(kind, version));
      await expectSound(place);
      await continueSession(storage, hasLedger(kind, version));
      await expectSound(place);
      await storage.close();

      const again = await opened(place);
      const sessions = await again.reader.sessions({ limit: 100 });
      expect(sessions.map(({ status }) => status)).toEqual(Array(sessions.length).fill("completed"));
    });

    test("a reader reads a store as it is, and leaves it so", async () => {
      const place = await newPlace();
      await place.load(textOf(`${kind}-${version}.sql`));
      const before = await place.contents();
      const reader = await place.read();
      cleanups.push(() => reader.close());
      await expectWhole(reader, hasLedger(kind, version));
      await expectSound(place);
      expect(await place.version()).toBe(version);
      expect(await place.contents()).toEqual(before);
    });

    test("a session file imports into today's store, and its session goes on to its end", async () => {
      const storage = await opened(await newPlace());
      const { runtime, attempts } = run(storage);
      const file = new Blob([textOf(`${kind}-${version}.session.jsonl`)]).stream();
      const handle = await runtime.import(file);
      expect(handle.sessionId).toBe(SESSIONS.listening);
      expect(await storage.reader.pendingSignals(handle.sessionId)).toMatchObject([
        { signalId: "sig-later" },
      ]);
      expect((await handle.session()).account?.spent).toMatchObject({ tokens: USED_TOKENS });
      await handle.signal("go", 5);
      expect(await handle.result()).toEqual({ before: "before done", go: 5, later: { n: 7 } });
      expect(attempts).toEqual([]);
    });
  });
});
