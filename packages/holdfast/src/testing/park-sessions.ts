// A process of its own that parks sessions with default options until its heap would be full if it kept them.
//
//   park-sessions PATH COUNT   with --expose-gc; prints `ParkedMemory` as JSON

import { createRuntime, defineAgent } from "@holdfast/runtime";
import { openSqliteStorage } from "@holdfast/storage/sqlite";

export interface ParkedMemory {
  /** Sessions in memory at the end. */
  readonly live: number;
  /** The bytes that each session of the second half left reachable. */
  readonly bytesEach: number;
  /** The output of the first session for its signal; that session was evicted long before. */
  readonly output: unknown;
}

const [path = "", count = "0"] = process.argv.slice(2);
const storage = await openSqliteStorage({ path });
const agent = defineAgent({ name: "parked", run: (ctx) => ctx.waitForSignal("wake") });
const runtime = createRuntime({ storage });

const first = await runtime.start(agent);
const half = Number(count) >> 1;
await park(half);
const before = reachableBytes();
await park(half);
const bytesEach = (reachableBytes() - before) / half;
const { live } = runtime;
const result = first.result();
await first.signal("wake", "awake");
const memory: ParkedMemory = { live, bytesEach, output: await result };
await runtime.close();
await storage.close();
process.stdout.write(`${JSON.stringify(memory)}\n`);

/** Groups of 50 share a commit: one at a time, the disk would be measured. */
async function park(sessions: number): Promise<void> {
  for (let i = 0; i < sessions; i += 50)
    await Promise.all(Array.from({ length: 50 }, () => runtime.start(agent)));
}

function reachableBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}
