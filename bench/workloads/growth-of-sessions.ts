// Costs that may grow with the stored sessions and schedules: starting, waking, listing, finding due ones,
// removing.

import { createRuntime, defineAgent } from "@holdfast/runtime";
import { assertDone, eachOf } from "../measure.ts";
import type { OpenStorage } from "../storages.ts";
import { cpuOf, type Cost, type Growing } from "./growth-cost.ts";

/** How often each is done beside those that are parked. */
const TIMES = 100;
/** A read takes microseconds. It is repeated in groups of this size until the CPU time below was measured. */
const LOOKS = 1_000;
const LOOKS_MICROS = 300_000;
const WIDTH = 64;
const FAR_MS = 1e10;

const parked = defineAgent({
  name: "parked",
  run: (ctx) => ctx.waitForSignal("wake", { timeoutMs: FAR_MS }),
});
const rare = defineAgent({ name: "rare", run: async () => "done" });

/** The cost of a read, repeated until a clock can measure it. */
async function looked(operation: string, look: () => Promise<void>): Promise<Cost> {
  let [micros, count] = [0, 0];
  while (micros < LOOKS_MICROS) {
    micros += await cpuOf(async () => {
      for (let i = 0; i < LOOKS; i++) await look();
    });
    count += LOOKS;
  }
  return { operation, micros, count };
}

const sessions: Growing = {
  quick: 1_000,
  async run({ storage }, n) {
    // Each is parked at once: otherwise those of the smallest size would still be in memory.
    const runtime = createRuntime({ storage, development: false, warmSessions: 0 });
    const costs: Cost[] = [];
    const measure = async (operation: string, count: number, work: () => Promise<unknown>): Promise<void> => {
      costs.push({ operation, count, micros: await cpuOf(work) });
    };
    // The oldest, so that a list that looks at all others finds them last.
    const oldest = Array.from({ length: TIMES }, (_, i) => `rare-${i}`);
    await eachOf(TIMES, WIDTH, async (i) => {
      const handle = await runtime.start(rare, undefined, { sessionId: oldest[i]! });
      await handle.result();
    });
    const first: string[] = [];
    await measure("start", n, () =>
      eachOf(n, WIDTH, async (i) => {
        const { sessionId } = await runtime.start(parked);
        if (i < TIMES) first.push(sessionId);
      }),
    );
    await measure("wake of one session among those that are parked", TIMES, async () => {
      for (const sessionId of first) {
        const result = runtime.handle(sessionId).result();
        await runtime.signal(sessionId, "wake", 1);
        assertDone("wake", await result, 1);
      }
    });
    const list = async (query: { readonly status?: "completed"; readonly agent?: string }) =>
      assertDone("list", (await storage.reader.sessions({ limit: 20, ...query })).length, 20);
    costs.push(await looked("list by status", () => list({ status: "completed" })));
    costs.push(await looked("list by agent", () => list({ agent: "rare" })));
    costs.push(
      await looked("look-up of what is due", async () => {
        await storage.due({ now: Date.now(), limit: 1_000, agents: ["parked"] });
      }),
    );
    await measure("removal", TIMES, async () => {
      for (const sessionId of first) {
        const [removed] = await storage.commit(
          [{ type: "delete_session", sessionId, subtree: "refuse" }],
          Date.now(),
        );
        assertDone("removal", removed?.status, "deleted");
      }
    });
    await runtime.close();
    return costs;
  },
};

const schedules: Growing = {
  quick: 200,
  async run({ storage }: OpenStorage, n) {
    const runtime = createRuntime({ storage, development: false });
    const put = await cpuOf(() =>
      eachOf(n, WIDTH, async (i) => {
        const cron = `${i % 60} ${i % 24} 1 1 *`;
        await runtime.schedule({ id: `s-${i}`, cron, timeZone: "UTC", start: { agent: rare } });
      }),
    );
    const due = await looked("look-up of what is due, among schedules", async () => {
      await storage.due({ now: Date.now(), limit: 1_000 });
    });
    await runtime.close();
    return [{ operation: "schedules", micros: put, count: n }, due];
  },
};

export const ofSessions: readonly Growing[] = [sessions, schedules];
