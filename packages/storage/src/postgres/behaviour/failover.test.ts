// A PostgreSQL server is lost and its standby takes its place, under one address. Storages stay open, and go
// on without anybody's help.

import type { Change } from "@holdfast/core";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openPostgresReader, openPostgresStorage, type PostgresStorage } from "../index.ts";
import { openMovingAddress, type MovingAddress } from "../testing/moving-address.ts";
import { ReplicatedServer } from "../testing/replicated-server.ts";
import { runSql } from "../testing/shared-server.ts";

/** Longer than a storage waits for an answer (postgres-database-5). */
const PATIENCE_MS = 150_000;
const AWAY = { name: "UnavailableError", code: "storage_unavailable" };

let server: ReplicatedServer;
const storages: PostgresStorage[] = [];
const addresses: MovingAddress[] = [];

afterEach(async () => {
  await Promise.all(storages.splice(0).map((storage) => storage.close()));
  for (const address of addresses.splice(0)) address.close();
  await server.stop();
});

async function open(url = server.url): Promise<PostgresStorage> {
  const storage = await openPostgresStorage({ url });
  storages.push(storage);
  return storage;
}

function creating(sessionId: string): Change {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: "1", seed: 1, flags: 0, format: 1 };
}

function signalling(n: number): Change {
  return { type: "send_signal", sessionId: "ses-1", signalId: `sig-${n}`, name: "go", payload: String(n) };
}

/** As a caller does who is told that storage is away: the same again is safe. */
const persist = (storage: PostgresStorage, change: Change) =>
  vi.waitFor(() => storage.commit([change], 1), { timeout: PATIENCE_MS, interval: 100 });

describe("with a standby that has all that was acknowledged", () => {
  beforeEach(async () => {
    server = await ReplicatedServer.start({ fsync: false, isSynchronous: true });
  });

  test("D4: a standby in place of the primary is an outage, until it is promoted", ofCampaign, async () => {
    const storage = await open();
    await storage.commit([creating("ses-1")], 1);
    await server.losePrimary();
    server.address.pointAt(server.standby.url);
    const standby = { ...AWAY, message: expect.stringContaining("standby") };
    await expect(storage.commit([signalling(1)], 1)).rejects.toMatchObject(standby);
    // The rows of a standby may be out of date, so nothing is decided by them.
    await expect(storage.load("ses-1")).rejects.toMatchObject(standby);
    await expect(openPostgresStorage({ url: server.url })).rejects.toMatchObject(standby);
    const reader = await openPostgresReader({ url: server.url });
    expect(await reader.session("ses-1")).toMatchObject({ status: "submitted" });
    await reader.close();

    await server.promote();
    expect(await storage.commit([signalling(1)], 1)).toMatchObject([{ status: "stored" }]);
    expect(await storage.load("ses-1")).toMatchObject({ session: { inbox: 1 } });
  });

  test("D4: a primary that takes no writes for a while is an outage", ofCampaign, async () => {
    const storage = await open();
    await storage.commit([creating("ses-1")], 1);
    const setReadOnly = async (to: "on" | "off") => {
      await runSql(server.primary.url, `ALTER SYSTEM SET default_transaction_read_only = ${to}`);
      await runSql(server.primary.url, "SELECT pg_reload_conf()");
    };
    await setReadOnly("on");
    const refused = await vi.waitFor(
      async () => {
        const thrown: unknown = await storage.commit([signalling(1)], 1).catch((error: unknown) => error);
        expect(thrown).toBeInstanceOf(Error);
        return thrown;
      },
      { timeout: 30_000, interval: 100 },
    );
    expect(refused).toMatchObject({ ...AWAY, message: expect.stringContaining("takes no writes") });
    await setReadOnly("off");
    expect(await persist(storage, signalling(2))).toMatchObject([{ status: "stored" }]);
  });

  test("D4: a primary that vanishes without a word is left for its standby", ofCampaign, async () => {
    const storage = await open();
    await storage.commit([creating("ses-1")], 1);
    await server.losePrimary("silent");
    await server.promote();
    server.address.pointAt(server.primary.url, "silent");
    expect(await persist(storage, signalling(1))).toMatchObject([{ status: "stored" }]);
  });

  // Everybody was silent for as long as the outage took. The first that comes back must not take the
  // others for dead.
  test("an outage ends no claim of a process that is slower to come back", ofCampaign, async () => {
    const [mine, theirs] = [await openMovingAddress(server.url), await openMovingAddress(server.url)];
    addresses.push(mine, theirs);
    const [looking, holding] = [await open(mine.url), await open(theirs.url)];
    await holding.commit([creating("ses-1")], 1);
    const claim = { sessionId: "ses-1", now: 1, leaseMs: Infinity };
    expect(await holding.claim({ ...claim, owner: "holder" })).toMatchObject({ status: "claimed" });
    for (const address of [mine, theirs]) address.pointAt(undefined);
    await server.losePrimary();
    await expect(looking.load("ses-1")).rejects.toMatchObject(AWAY);
    await server.promote();
    // A server that has just started spares everybody. This one started as a standby, some time ago.
    const old = "SELECT 1 WHERE pg_postmaster_start_time() < now() - interval '15 s'";
    await vi.waitUntil(async () => (await runSql(server.primary.url, old)).length > 0, 30_000);
    // The holder's process is on this host, and alive: only its time may speak against it.
    await runSql(
      server.primary.url,
      "UPDATE holdfast.instance SET said_at = now() - interval '1 hour', presence = NULL",
    );
    mine.pointAt(server.primary.url);
    expect(await looking.claim({ ...claim, owner: "other" })).toMatchObject({ status: "busy" });
    theirs.pointAt(server.primary.url);
    expect(await persist(holding, signalling(1))).toMatchObject([{ status: "stored" }]);
  });
});

test.each([
  ["", 0],
  [", also where versions are ahead of the clocks", 3_600_000_000],
])(
  "O9: a standby that lacks the last commits is gone on with as it is: no change is based on what was lost%s",
  ofCampaign,
  async (_also, aheadMicros) => {
    server = await ReplicatedServer.start({ fsync: false, isSynchronous: false });
    const [one, two] = [await open(), await open()];
    await one.commit([creating("ses-1")], 1);
    await runSql(server.url, `UPDATE holdfast.state SET version = version + ${aheadMicros}`);
    await server.stopFollowing();
    expect(await one.commit([signalling(1)], 1)).toMatchObject([{ status: "stored" }]);
    await server.losePrimary();
    await server.promote();
    server.address.pointAt(server.primary.url);

    // As many changes as were lost, so that a count of changes cannot tell the two apart.
    await persist(two, { type: "request_cancel", sessionId: "ses-1", mode: "graceful", graceMs: 9 });
    expect(await persist(one, signalling(2))).toMatchObject([{ status: "stored" }]);
    const loaded = await two.load("ses-1");
    expect(loaded).toMatchObject({ session: { cancel: { mode: "graceful" } } });
    expect((await two.arrivals("ses-1", 0)).signals.map(({ signalId }) => signalId)).toEqual(["sig-2"]);
    const reader = await openPostgresReader({ url: server.url });
    expect((await reader.verify()).problems).toEqual([]);
    await reader.close();
  },
);
