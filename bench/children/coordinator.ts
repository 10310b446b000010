// A coordinator over a storage of its own. It notes when what readers and runners wait for was stored.

import { once } from "node:events";
import { createCoordinator } from "@holdfast/coordinator";
import type { AgentStorage, Change } from "@holdfast/core";
import { firingName, readCron, systemClock, systemRandom } from "@holdfast/runtime";
import type { CoordinatorOptions, CoordinatorReport } from "../fleet.ts";
import { cpuMicros, nowMs } from "../measure.ts";
import { withPlace, withStorage } from "../storages.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { storage: kind, folder, runners, leaseMs, notes, after } = optionsOf<CoordinatorOptions>();
const begin =
  after === undefined ? withStorage.bind(undefined, kind, folder) : withPlace.bind(undefined, after.place);

await begin(async ({ storage, place, statements }) => {
  const noted = noteStored(storage);
  const coordinator = createCoordinator({
    storage,
    clock: systemClock,
    random: systemRandom(),
    schedules: { readCron, firingName },
    config: { leaseMs, limits: { connections: 10_000 } },
    log: (message, error) => process.stderr.write(`coordinator: ${message}: ${String(error)}\n`),
  });
  const { port } = await coordinator.listen({ host: "127.0.0.1", port: after?.port ?? 0 });
  const adminToken = await coordinator.createToken({ kind: "admin", name: "bench" });
  const registrations: string[] = [];
  for (let i = 0; i < runners; i++)
    registrations.push(await coordinator.createToken({ kind: "registration", name: `runner-${i}` }));
  notifyParent("listening", { url: `http://127.0.0.1:${port}`, adminToken, registrations, place });
  const peak = watchCpu();
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    const { gc } = globalThis as { gc?: () => void };
    gc?.();
    gc?.(); // Buffers are let go of beside the program, and counted until the next one.
    const { rss, heapUsed, external } = process.memoryUsage();
    const report: CoordinatorReport = {
      statements: statements() ?? null,
      cpuMicros: user + system,
      peakCpuPart: peak(),
      rss,
      reachable: heapUsed + external,
      noted: [...noted],
    };
    noted.clear();
    notifyParent("report", { report });
  });
  await once(process, "disconnect");
  await coordinator.close();
});

/** Answers the most that was used in a second since it was asked last. */
function watchCpu(): () => number {
  let most = 0;
  let before = process.cpuUsage();
  let beforeMs = nowMs();
  setInterval(() => {
    const at = nowMs();
    most = Math.max(most, cpuMicros(before) / 1_000 / (at - beforeMs));
    before = process.cpuUsage();
    beforeMs = at;
  }, 1_000).unref();
  return () => {
    const peak = most;
    most = 0;
    return peak;
  };
}

/** When each session and each record was stored, by `session` and `session seq`. */
function noteStored(storage: AgentStorage): Map<string, number> {
  const noted = new Map<string, number>();
  const commit = storage.commit.bind(storage);
  storage.commit = async (changes, now) => {
    const results = await commit(changes, now);
    const at = nowMs();
    for (const change of changes) for (const key of keysOf(change)) noted.set(key, at);
    return results;
  };
  return noted;
}

function keysOf(change: Change): readonly string[] {
  if (change.type === "audited") return change.change === undefined ? [] : keysOf(change.change);
  if (change.type === "create_session") return [change.sessionId];
  if (change.type !== "commit_batch" || notes === "sessions") return [];
  return change.records.map(({ seq }) => `${change.sessionId} ${seq}`);
}
