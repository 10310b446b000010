// Parks sessions and watches how much memory the process holds.

import { join } from "node:path";
import { createRuntime, defineAgent, limitProcessMemory } from "@holdfast/runtime";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import { eachOf } from "../measure.ts";
import type { ParkingOptions, ParkingReport } from "../workloads/parking.ts";

limitProcessMemory();
const { folder, count, width } = JSON.parse(process.argv[2] ?? "{}") as ParkingOptions;
const storage = await openSqliteStorage({ path: join(folder, "parked.db") });
const agent = defineAgent({ name: "parked", run: (ctx) => ctx.waitForSignal("wake") });
const runtime = createRuntime({ storage });

const tenth = count / 10;
const byTenth: number[] = [];
let largest = 0;
let reachableAtHalf = 0;
const startedAt = performance.now();
let parked = 0;
await eachOf(count, width, async () => {
  await runtime.start(agent);
  parked++;
  if (parked % 100 === 0 || parked === count) largest = Math.max(largest, process.memoryUsage.rss() / 1e6);
  if (parked % tenth === 0) byTenth.push(largest);
  if (parked === count / 2) reachableAtHalf = reachableBytes();
});
const seconds = (performance.now() - startedAt) / 1_000;
const report: ParkingReport = {
  rssMbMax: largest,
  rssMbByTenth: byTenth,
  reachableBytesEach: Math.max(0, (reachableBytes() - reachableAtHalf) / (count / 2)),
  sessionsPerSecond: count / seconds,
};
await runtime.close();
await storage.close();
process.send?.(report, () => process.disconnect());

function reachableBytes(): number {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}
