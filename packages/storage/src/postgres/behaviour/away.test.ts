// The server dies and comes back, and the connections with it: every call says so, and nobody has to be
// opened again.

import type { Change } from "@holdfast/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { openPostgresStorage, type PostgresStorage } from "../index.ts";
import { startServer, type PostgresServer } from "../testing/server.ts";
import { newSchema } from "../testing/shared-server.ts";

let server: PostgresServer;

beforeAll(async () => {
  server = await startServer({ fsync: false });
});

afterAll(() => server.stop());

function open(): Promise<PostgresStorage> {
  return openPostgresStorage({ url: server.url, schema: newSchema() });
}

function creating(n: number): Change {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId: `ses-${n}`, agent, input: "1", seed: 1, flags: 0, format: 1 };
}

test(
  "every call rejects while the server is away, and the next call works once it is back",
  ofCampaign,
  async () => {
    const storage = await open();
    await storage.commit([creating(1)], 1);
    await server.kill();
    const away = { name: "UnavailableError", code: "storage_unavailable" };
    await expect(storage.commit([creating(2)], 2)).rejects.toMatchObject(away);
    await expect(storage.claim({ sessionId: "ses-1", owner: "o", now: 2, leaseMs: 9 })).rejects.toMatchObject(
      away,
    );
    await expect(storage.load("ses-1")).rejects.toMatchObject(away);
    await expect(storage.arrivals("ses-1", 0)).rejects.toMatchObject(away);
    await expect(storage.due({ now: 2, limit: 1 })).rejects.toMatchObject(away);
    await expect(storage.renew({ owner: "o", now: 2, leaseMs: 9 })).rejects.toMatchObject(away);
    await expect(storage.reader.session("ses-1")).rejects.toMatchObject(away);
    await expect(openPostgresStorage({ url: server.url })).rejects.toMatchObject(away);
    await server.start();
    expect(await storage.commit([creating(1), creating(2)], 3)).toEqual([
      { status: "exists" },
      { status: "created" },
    ]);
    await storage.close();
  },
);

test("a storage whose server is away can be closed", async () => {
  const storage = await open();
  await storage.commit([creating(1)], 1);
  await storage.claim({ sessionId: "ses-1", owner: "o", now: 1, leaseMs: Infinity });
  await server.kill();
  await storage.close();
  await server.start();
});
