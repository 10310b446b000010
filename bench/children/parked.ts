// Parks sessions by the ten thousand, measures what they cost, and wakes some.

import { join } from "node:path";
import { createRuntime, defineAgent, type Runtime } from "@holdfast/runtime";
import { openSqliteFloor, withFloor } from "../floors.ts";
import { assertDone, cpuMicros, eachOf, nowMs, until } from "../measure.ts";
import { databaseBytes, withStorage, type OpenStorage } from "../storages.ts";
import type { ParkedOptions, ParkedReport } from "../workloads/parked.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const options = optionsOf<ParkedOptions>();
/** Sessions on their way at once, while they are started. */
const WIDTH = 64;

const resumedAt: number[] = [];
const agent = defineAgent({
  name: "parked",
  run: async (ctx) => {
    await ctx.waitForSignal("wake");
    resumedAt.push(nowMs());
    return "awake";
  },
});

/** Sessions by number, so that a list of their ids is not taken for memory of theirs. */
let started = 0;
let woken = 0;
const idOf = (index: number) => `ses_parked-${String(index).padStart(8, "0")}`;

await withStorage(options.storage, options.folder, async (open) => {
  const runtime = createRuntime({ storage: open.storage, warmMs: 0 });
  await park(runtime, options.warmUp);
  await wakeRounds(open, runtime);
  const base = { parked: started - woken, ...(await memory()) };
  for (const count of options.counts) {
    const missing = count - (started - woken);
    const startedAt = nowMs();
    await park(runtime, missing);
    const startsPerSecond = (missing * 1_000) / (nowMs() - startedAt);
    const now = await memory();
    const more = count - base.parked;
    const storageBytes = open.file === undefined ? null : databaseBytes(open.file) / started;
    const wakes = await wakeRounds(open, runtime);
    const report: ParkedReport = {
      startsPerSecond,
      rssBytesPerParked: (now.rss - base.rss) / more,
      heapBytesPerParked: (now.reachable - base.reachable) / more,
      storageBytesPerParked: storageBytes,
      floorBytesPerParked: open.file === undefined ? null : await floorBytes(count),
      ...wakes,
    };
    notifyParent("measured", { report });
  }
  await runtime.close();
});

async function park(runtime: Runtime, count: number): Promise<void> {
  await eachOf(count, WIDTH, async () => {
    const session = await runtime.start(agent, undefined, { sessionId: idOf(started++) });
    assertDone("whether the session is new", session.created, true);
  });
  await until("all sessions to leave memory", () => runtime.live === 0);
}

/** Wakes the oldest, all at once, and parks as many new ones, so that the count stays. */
async function wakeRounds({ statements }: OpenStorage, runtime: Runtime) {
  const wakesPerSecond: number[] = [];
  const floorWakesPerSecond: number[] = [];
  const wakeMs: number[] = [];
  let cpu = 0;
  let ran = 0;
  const { wakes, rounds } = options;
  for (let round = 0; round < rounds; round++) {
    floorWakesPerSecond.push((wakes * 1_000) / (await floorMs(wakes)));
    const chosen = Array.from({ length: wakes }, () => idOf(woken++));
    resumedAt.length = 0;
    const statementsBefore = statements() ?? 0;
    const cpuBefore = process.cpuUsage();
    const sentAt = nowMs();
    await Promise.all(chosen.map((sessionId) => runtime.signal(sessionId, "wake")));
    await until("all to wake", () => resumedAt.length === wakes);
    await until("all to end", () => runtime.live === 0);
    cpu += cpuMicros(cpuBefore);
    ran += (statements() ?? 0) - statementsBefore;
    wakesPerSecond.push((wakes * 1_000) / (resumedAt.at(-1)! - sentAt));
    for (const at of resumedAt) wakeMs.push(at - sentAt);
    const last = await runtime.handle(chosen.at(-1)!).result();
    assertDone("the output of a woken session", last, "awake");
    await park(runtime, wakes);
  }
  return {
    wakesPerSecond,
    floorWakesPerSecond,
    wakeMs,
    cpuMicrosPerWake: cpu / (rounds * wakes),
    statementsPerWake: statements() === undefined ? null : ran / (rounds * wakes),
  };
}

function floorMs(wakes: number): Promise<number> {
  return withFloor(options.storage, options.folder, async (floor) => {
    const startedAt = nowMs();
    await Promise.all(
      Array.from({ length: wakes }, (_, session) => floor.keep(session, 1, '{"awake":true}')),
    );
    return nowMs() - startedAt;
  });
}

async function floorBytes(count: number): Promise<number> {
  const file = join(options.folder, `floor-${count}`, "floor.db");
  const { floor, close } = openSqliteFloor(file);
  await Promise.all(Array.from({ length: count }, (_, session) => floor.keep(session, 0, '{"parked":true}')));
  const bytes = databaseBytes(file);
  close();
  return bytes / count;
}

/** Reachable bytes and resident bytes of the process, after garbage collections. */
async function memory(): Promise<{ readonly rss: number; readonly reachable: number }> {
  const collect = (globalThis as { gc?: () => void }).gc;
  for (let i = 0; i < 5; i++) {
    collect?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, reachable: heapUsed + external };
}
