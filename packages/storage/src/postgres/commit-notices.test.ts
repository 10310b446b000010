// What another process stored is heard of without looking, and what tells of it may break. That nothing depends on it is shown by
// `sharing.test.ts`, where there are no notices at all.

import type { Arrival, CreateSession } from "@holdfast/core";
import { afterEach, expect, test, vi } from "vitest";
import { CommitNotices } from "./commit-notices.ts";
import { Database, type Hearing } from "./database.ts";
import type { PostgresStorage } from "./index.ts";
import { EmptiedSchema } from "./testing/emptied.ts";
import { runSql, sharedServerUrl } from "./testing/shared-server.ts";

/** Nobody lives to see it looked at by itself. */
const NEVER_MS = 2 ** 30;

const emptied = new EmptiedSchema();
const storages: PostgresStorage[] = [];

afterEach(async () => {
  await Promise.all(storages.splice(0).map((storage) => storage.close()));
});

async function openBoth(): Promise<{ a: PostgresStorage; b: PostgresStorage; heard: string[] }> {
  const a = await emptied.open({ pollMs: NEVER_MS });
  const b = await emptied.reopen({ pollMs: NEVER_MS });
  storages.push(a, b);
  const heard: string[] = [];
  a.subscribe(({ sessionId }: Arrival) => heard.push(sessionId));
  return { a, b, heard };
}

function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1, ...more };
}

const signalling = (sessionId: string, n: number) =>
  ({ type: "send_signal", sessionId, signalId: `sig-${n}`, name: "go", payload: undefined }) as const;

const heardOf = (heard: readonly string[], sessionId: string) =>
  vi.waitUntil(() => heard.includes(sessionId), 15_000);

test("a session that was made, and what arrives for one that is held here, are heard of without looking", async () => {
  const { a, b, heard } = await openBoth();
  await b.commit([creating("ses-1")], 0);
  await heardOf(heard, "ses-1");
  await a.commit([creating("ses-2", { claimFor: { owner: "owner-1", leaseMs: Infinity } })], 0);
  // Each of many, told as a few.
  for (let n = 0; n < 20; n++) await b.commit([creating(`ses-many-${n}`)], 1);
  await b.commit([signalling("ses-2", 1)], 2);
  await heardOf(heard, "ses-2");
  for (let n = 0; n < 20; n++) await heardOf(heard, `ses-many-${n}`);
});

test("a listener whose connection is lost has another one, and hears of what was stored in between", async () => {
  const { b, heard } = await openBoth();
  await b.commit([creating("ses-1")], 0);
  await heardOf(heard, "ses-1");
  await runSql(
    await sharedServerUrl(),
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast notices'",
  );
  await b.commit([creating("ses-2")], 1);
  await heardOf(heard, "ses-2");
  await b.commit([creating("ses-3")], 2);
  await heardOf(heard, "ses-3");
});

test("what nobody else waits for is told to nobody", async () => {
  const run = vi.spyOn(Database.prototype, "run");
  const told = () => run.mock.calls.filter(([{ name }]) => name === "tell").length;
  const { a, heard } = await openBoth();
  await a.commit([creating("ses-0")], 0);
  await heardOf(heard, "ses-0");
  // That one, and what was said to hear whether it comes back.
  await vi.waitUntil(() => told() === 2);
  const [created] = await a.commit([creating("ses-1", { claimFor: { owner: "o", leaseMs: Infinity } })], 0);
  const { token } = created as { readonly token: number };
  const rest = { entries: [], consumed: [], session: { status: "completed" } } as const;
  await a.commit([{ type: "commit_batch", sessionId: "ses-1", token, firstSeq: 0, records: [], ...rest }], 1);
  expect(told()).toBe(2);
  run.mockRestore();
});

test("a pooler that loses notices is found out, said once, and not listened to any more", async () => {
  const told: unknown[] = [];
  let listeners = 0;
  let closed = 0;
  const db = {
    run: async (_: unknown, values: readonly unknown[]) => (told.push(values[1]), []),
    listen: async (_channel: string, _hearing: Hearing) => (
      listeners++,
      { close: async () => void closed++ }
    ),
  } as unknown as Database;
  const warnings: string[] = [];
  const heard = vi.fn();
  const notices = new CommitNotices({
    db,
    schema: "s",
    heard,
    warn: (text) => warnings.push(text),
    echoMs: 1,
  });
  notices.listen();
  await vi.waitUntil(() => warnings.length > 0);
  notices.listen();
  await notices.close();
  expect({ listeners, closed, told: told.length }).toEqual({ listeners: 1, closed: 1, told: 1 });
  expect(warnings).toEqual([expect.stringMatching(/notices do not reach us.*pooler/)]);
  // It looked when it began, and nothing told it to again.
  expect(heard).toHaveBeenCalledTimes(1);
});
