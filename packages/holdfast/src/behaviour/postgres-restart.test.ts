// A PostgreSQL server is killed and restarted under sessions: nothing acknowledged is lost, nothing comes
// twice, and no process has to be restarted.
//
// The server is one of the test's own, and syncs. HOLDFAST_TEST_POSTGRES_SESSIONS and _RESTARTS make it a
// campaign.

import { HoldfastError } from "@holdfast/core";
import { createRuntime, defineAgent } from "@holdfast/runtime";
import { openPostgresStorage } from "@holdfast/storage/postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { startServer, type PostgresServer } from "@holdfast/storage/postgres-testing";

const SESSIONS = Number(process.env["HOLDFAST_TEST_POSTGRES_SESSIONS"] ?? 300);
const RESTARTS = Number(process.env["HOLDFAST_TEST_POSTGRES_RESTARTS"] ?? 2);
const STEPS = 4;
/**
 * The number of concurrent sessions. Between two deaths of the server, only a part of all sessions commits.
 */
const WIDTH = 200;

let server: PostgresServer;

beforeAll(async () => {
  server = await startServer({ fsync: true });
});

afterAll(() => server.stop());

test(
  `${RESTARTS} deaths of the server under ${SESSIONS} sessions lose nothing`,
  { ...ofCampaign, timeout: 60_000 + RESTARTS * 15_000 + SESSIONS * 50 },
  async () => {
    const storage = await openPostgresStorage({ url: server.url });
    const runtime = createRuntime({ storage });
    let steps = 0;
    const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
    const reached = (count: number) =>
      new Promise<void>((resolve) => {
        if (steps >= count) resolve();
        else waiting.push({ count, resolve });
      });
    const agent = defineAgent<{ n: number }, number>({
      name: "counting",
      run: async (ctx, { n }) => {
        let sum = n;
        for (let i = 0; i < STEPS; i++) {
          sum += await ctx.run("step", () => {
            steps++;
            if (waiting[0] !== undefined && steps >= waiting[0].count) waiting.shift()!.resolve();
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
        // Something happens between any two of them.
        await reached(Math.min(Math.max(death * perDeath, steps + (perDeath >> 1)), SESSIONS * STEPS));
        await server.restart();
      }
    })();
    const results: number[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      while (next < SESSIONS) {
        const n = next++;
        const sessionId = `ses-${n}`;
        await persist(() => runtime.start(agent, { n }, { sessionId }));
        await persist(() => runtime.signal(sessionId, "go", 1_000, { dedupKey: "once" }));
        results[n] = await persist(() => runtime.handle(sessionId).result() as Promise<number>);
      }
    };
    await Promise.all(Array.from({ length: WIDTH }, worker));
    const sum = (STEPS * (STEPS - 1)) / 2;
    expect(results).toEqual(Array.from({ length: SESSIONS }, (_, n) => n + sum + 1_000));
    await dies;
    await runtime.close();

    // Storage holds exactly the answered changes: complete, once, and readable for the next process.
    const again = await openPostgresStorage({ url: server.url });
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

/** As a caller does who is told that storage is away: the same again is safe. */
async function persist<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "storage_unavailable") throw error;
    }
  }
}
