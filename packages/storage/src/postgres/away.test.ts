// The server dies and comes back, and the connections with it: nothing acknowledged is lost, nothing is done that was not answered
// for, and nobody has to be started again.
//
// A server of its own, which syncs. HOLDFAST_TEST_POSTGRES_SESSIONS and _RESTARTS make it a campaign.

import type { Change } from "@holdfast/core";
import { createRuntime, defineAgent } from "@holdfast/runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgresStorage, type PostgresStorage } from "./index.ts";
import { startServer, type PostgresServer } from "./testing/server.ts";
import { newSchema } from "./testing/shared-server.ts";

const SESSIONS = Number(process.env["HOLDFAST_TEST_POSTGRES_SESSIONS"] ?? 300);
const RESTARTS = Number(process.env["HOLDFAST_TEST_POSTGRES_RESTARTS"] ?? 2);
const STEPS = 4;

let server: PostgresServer;

beforeAll(async () => {
  server = await startServer({ fsync: true });
});

afterAll(() => server.stop());

function open(): Promise<PostgresStorage> {
  return openPostgresStorage({ url: server.url, schema: newSchema() });
}

function creating(n: number): Change {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId: `ses-${n}`, agent, input: "1", seed: 1, flags: 0, format: 1 };
}

test("while the server is away every call says so, and when it is back the next one works", async () => {
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
});

test("a storage whose server is away can be closed", async () => {
  const storage = await open();
  await storage.commit([creating(1)], 1);
  await storage.claim({ sessionId: "ses-1", owner: "o", now: 1, leaseMs: Infinity });
  await server.kill();
  await storage.close();
  await server.start();
});

test(
  `${RESTARTS} deaths of the server under ${SESSIONS} sessions lose nothing`,
  { timeout: 60_000 + RESTARTS * 15_000 + SESSIONS * 50 },
  async () => {
    const storage = await open();
    const runtime = createRuntime({ storage });
    let steps = 0;
    const agent = defineAgent<{ n: number }, number>({
      name: "counting",
      run: async (ctx, { n }) => {
        let sum = n;
        for (let i = 0; i < STEPS; i++) {
          sum += await ctx.run("step", () => {
            steps++;
            return i;
          });
          ctx.appendEntry({ role: "user", content: i });
        }
        return sum + (await ctx.waitForSignal<number>("go"));
      },
    });
    const perDeath = Math.floor((SESSIONS * STEPS) / (RESTARTS + 1));
    const dies = (async () => {
      for (let death = 1; death <= RESTARTS; death++) {
        while (steps < death * perDeath) await new Promise((resolve) => setTimeout(resolve, 2));
        await server.restart();
      }
    })();
    const sessions = Array.from({ length: SESSIONS }, async (_, n) => {
      const sessionId = `ses-${n}`;
      const session = await runtime.start(agent, { n }, { sessionId });
      await runtime.signal(sessionId, "go", 1_000, { dedupKey: "once" });
      return session.result();
    });
    const sum = (STEPS * (STEPS - 1)) / 2;
    expect(await Promise.all(sessions)).toEqual(Array.from({ length: SESSIONS }, (_, n) => n + sum + 1_000));
    await dies;
    await runtime.close();

    // What is stored is what was answered: whole, once, and readable by whoever comes next.
    const again = await openPostgresStorage({ url: server.url, schema: storage.schema });
    const done = await again.reader.sessions({ limit: SESSIONS + 1, status: "completed" });
    expect(done).toHaveLength(SESSIONS);
    for (const { sessionId, nextSeq, entryCount } of done) {
      const records = await again.reader.journal(sessionId, 0, 1_000);
      expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: nextSeq }, (_, seq) => seq));
      expect(records.filter(({ type }) => type === "task_completed")).toHaveLength(STEPS);
      expect(entryCount).toBe(STEPS);
      expect(await again.reader.entries(sessionId, 0, 10)).toHaveLength(STEPS);
    }
    await again.close();
  },
);
