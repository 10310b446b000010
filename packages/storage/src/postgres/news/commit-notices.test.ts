// CommitNotices: a change of another process is noticed without polling, and notices may fail.
// `sharing.test.ts` shows that nothing depends on notices, as it has none at all.

import type { Arrival, CreateSession } from "@holdfast/core";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { channelOf, CommitNotices, type NoticeDatabase } from "./commit-notices.ts";
import { Database, type ListenHandlers, type Listening } from "../database/database.ts";
import type { PostgresStorage } from "../index.ts";
import { EmptiedSchema } from "../testing/emptied.ts";
import { runSql, sharedServerUrl } from "../testing/shared-server.ts";

/** An interval so long that no poll happens during the tests. */
const NEVER_MS = 2 ** 30;

const emptied = new EmptiedSchema();
const storages: PostgresStorage[] = [];

afterEach(async () => {
  await Promise.all(storages.splice(0).map((storage) => storage.close()));
});

async function openBoth(): Promise<{ a: PostgresStorage; b: PostgresStorage; received: string[] }> {
  const a = await emptied.open({ pollMs: NEVER_MS });
  const b = await emptied.reopen({ pollMs: NEVER_MS });
  storages.push(a, b);
  const received: string[] = [];
  a.subscribe(({ sessionId }: Arrival) => received.push(sessionId));
  return { a, b, received };
}

function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

const signalling = (sessionId: string, n: number) =>
  ({ type: "send_signal", sessionId, signalId: `sig-${n}`, name: "go", payload: undefined }) as const;

/** Vitest's own second is soon over where the machine is busy. */
const until = (isSo: () => boolean) => vi.waitUntil(isSo, { timeout: 15_000, interval: 10 });

const receivedOf = (received: readonly string[], sessionId: string) =>
  until(() => received.includes(sessionId));

test("a new session, and an arrival for a session held here, are noticed without polling", async () => {
  const { a, b, received } = await openBoth();
  await b.commit([creating("ses-1")], 0);
  await receivedOf(received, "ses-1");
  await a.commit([creating("ses-2", { claimFor: { owner: "owner-1", leaseMs: Infinity } })], 0);
  // Many commits, sent as a few notices.
  for (let n = 0; n < 20; n++) await b.commit([creating(`ses-many-${n}`)], 1);
  await b.commit([signalling("ses-2", 1)], 2);
  await receivedOf(received, "ses-2");
  for (let n = 0; n < 20; n++) await receivedOf(received, `ses-many-${n}`);
});

test("a listener whose connection is lost makes another one, and finds the changes stored in between", async () => {
  const { b, received } = await openBoth();
  await b.commit([creating("ses-1")], 0);
  await receivedOf(received, "ses-1");
  await runSql(
    await sharedServerUrl(),
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast notices'",
  );
  await b.commit([creating("ses-2")], 1);
  await receivedOf(received, "ses-2");
  await b.commit([creating("ses-3")], 2);
  await receivedOf(received, "ses-3");
});

test("a commit that concerns no other process sends no notice", async () => {
  const a = await emptied.open();
  storages.push(a);
  const sent = await overhear(emptied.schema);
  const [created] = await a.commit([creating("ses-1", { claimFor: { owner: "o", leaseMs: Infinity } })], 0);
  const { token } = created as { readonly token: number };
  const rest = { entries: [], consumed: [], session: { status: "completed" } } as const;
  await a.commit([{ type: "commit_batch", sessionId: "ses-1", token, firstSeq: 0, records: [], ...rest }], 1);
  await runSql(await sharedServerUrl(), `NOTIFY ${channelOf(emptied.schema)}, 'the end'`);
  await until(() => sent.includes("the end"));
  expect(sent).toEqual(["the end"]);
  await a.commit([creating("ses-2")], 2);
  await until(() => sent.length === 2);
});

describe("a notice to itself that a process does not get back", () => {
  test("it is found out, and warned of once, however often the process listens again", async () => {
    const db = new FakeDatabase();
    const { warnings, received, warned } = listenTo(db);
    await warned;
    expect(warnings).toEqual([expect.stringMatching(/notices do not reach this process.*pooler/)]);
    db.handlers?.lost();
    await db.listened(2);
    // It looked once after each beginning, and no notice made it look again.
    await until(() => received.mock.calls.length === 2);
    await macrotasks(10);
    expect(warnings).toHaveLength(1);
    expect(received).toHaveBeenCalledTimes(2);
  });

  test("a notice of another process is still received after the warning", async () => {
    const db = new FakeDatabase();
    const { received, warned } = listenTo(db);
    await warned;
    db.handlers?.received("somebody else");
    expect(received).toHaveBeenCalledTimes(2);
  });

  test("it has come back if it was there to be read, however busy this process was", async () => {
    const socket = await loopback();
    const db = new FakeDatabase((said) => {
      socket.near.write(String(said));
      // After the timer was set: the timer is due before anything is read.
      process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20));
    });
    let isRead = false;
    socket.far.on("data", (bytes) => {
      db.handlers?.received(bytes.toString());
      isRead = true;
    });
    const { warnings } = listenTo(db);
    await until(() => isRead);
    await macrotasks(10);
    expect(warnings).toEqual([]);
    socket.close();
  });
});

test("a database that has no notices is not asked again", async () => {
  const unknown = Object.assign(new Error("LISTEN is unknown"), { severity: "ERROR", code: "0A000" });
  const listen = vi.fn(() => Promise.reject(unknown));
  const { notices, warnings, warned } = listenTo({ run: () => Promise.resolve([]), listen });
  await warned;
  notices.listen();
  await notices.stop();
  notices.listen();
  expect(listen).toHaveBeenCalledTimes(1);
  expect(warnings).toEqual([expect.stringContaining("LISTEN is unknown")]);
});

// ---- notices without a database ---------------------------------------------------------------------------

/** Passes sent notices to `onSent` alone. */
class FakeDatabase implements NoticeDatabase {
  handlers: ListenHandlers | undefined;
  #listeners = 0;
  readonly #onSent: (said: unknown) => void;

  constructor(onSent: (said: unknown) => void = () => undefined) {
    this.#onSent = onSent;
  }

  run(_: unknown, [, said]: readonly unknown[]): Promise<[]> {
    this.#onSent(said);
    return Promise.resolve([]);
  }

  listen(_: string, handlers: ListenHandlers): Promise<Listening> {
    this.#listeners++;
    this.handlers = handlers;
    return Promise.resolve({ close: async () => void (this.handlers = undefined) });
  }

  async listened(times: number): Promise<void> {
    await until(() => this.#listeners === times);
  }
}

function listenTo(db: NoticeDatabase) {
  const warnings: string[] = [];
  const received = vi.fn();
  const { promise: warned, resolve } = Promise.withResolvers<void>();
  const warn = (text: string): void => {
    warnings.push(text);
    resolve();
  };
  const notices = new CommitNotices({ db, schema: "s", received, warn, echoMs: 1 });
  notices.listen();
  onTestFinished(() => notices.close());
  return { notices, warnings, received, warned };
}

async function macrotasks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await sleep(1);
}

async function loopback(): Promise<{ readonly near: Socket; readonly far: Socket; close(): void }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [far] = (await once(server, "connection")) as [Socket];
  await once(near, "connect");
  const close = (): void => {
    near.destroy();
    far.destroy();
    server.close();
  };
  return { near, far, close };
}

/** All notices of a schema, whichever process sends them. */
async function overhear(schema: string): Promise<string[]> {
  const sent: string[] = [];
  const connecting = { connectionsMax: 1, connectTimeoutMs: 10_000 };
  const db = new Database({ url: await sharedServerUrl(), schema, ...connecting });
  const handlers = { received: (said: string) => void sent.push(said), lost: () => undefined };
  const listening = await db.listen(channelOf(schema), handlers);
  onTestFinished(async () => {
    await listening.close();
    await db.close();
  });
  return sent;
}
