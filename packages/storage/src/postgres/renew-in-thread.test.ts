// Renewals by a thread, in place of a process whose event loop is blocked.

import type { RenewInThread } from "@holdfast/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { PostgresStorage } from "./postgres-storage.ts";
import { EmptiedSchema } from "./testing/emptied.ts";
import { runSql, sharedServerUrl } from "./testing/shared-server.ts";

const emptied = new EmptiedSchema();
const { schema } = emptied;
let url: string;
let storage: PostgresStorage;

beforeEach(async () => {
  url = await sharedServerUrl();
  storage = await emptied.open({ notices: false });
});
afterEach(() => storage.close());

async function create(sessionId: string): Promise<void> {
  const agent = { name: "agent", version: "1" };
  await storage.commit(
    [{ type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1 }],
    0,
  );
}

/** As the watchdog's thread does, which imports the module by its URL and has a copy of the data. */
async function renew(leaseMs: number, sessionIds: readonly string[] = ["ses-1"]): Promise<boolean> {
  const { module, data } = storage.renewal();
  const { renew: ask } = (await import(module)) as { readonly renew: RenewInThread };
  const asked = {
    owner: "me",
    sessionIds,
    leaseMs,
    blockedBy: "a step",
    signal: AbortSignal.timeout(60_000),
  };
  return ask(structuredClone(data), asked);
}

/** When the process last showed that it lives. */
const setSaid = (at: string): Promise<unknown> =>
  runSql(url, `UPDATE ${schema}.instance SET said_at = ${at}`);

test("claims with an end are extended, and only those that are named and held", async () => {
  await create("ses-1");
  const now = Date.now();
  await storage.claim({ sessionId: "ses-1", owner: "me", now, leaseMs: 1_000 });
  expect(await renew(600_000)).toBe(true);
  const later = now + 300_000;
  const other = { sessionId: "ses-1", owner: "other", leaseMs: 1_000 };
  expect(await storage.claim({ ...other, now: later })).toMatchObject({ status: "busy" });
  expect(await renew(600_000, ["ses-2"])).toBe(false);
  expect(await storage.claim({ ...other, now: now + 3_600_000 })).toMatchObject({ status: "claimed" });
  expect(await renew(600_000)).toBe(false);
});

test("claims without an end are kept by a sign of life, until others have taken the process for dead", async () => {
  await create("ses-1");
  await storage.claim({ sessionId: "ses-1", owner: "me", now: 0, leaseMs: Infinity });
  await setSaid("clock_timestamp() - interval '10 seconds'");
  expect(await renew(Infinity)).toBe(true);
  const recent = `SELECT 1 FROM ${schema}.instance WHERE said_at > clock_timestamp() - interval '5 seconds'`;
  expect(await runSql(url, recent)).toHaveLength(1);
  await setSaid("'-infinity'");
  expect(await renew(Infinity)).toBe(false);
  await runSql(url, `DELETE FROM ${schema}.instance`);
  expect(await renew(Infinity)).toBe(false);
});
