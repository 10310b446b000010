// The watchdog's own thread. It shares memory with the process it watches, and receives the list of its
// claims.
//
// Each process starts such a thread, so it loads little. The code that ends a stuck process is loaded then.

import { clearInterval, setInterval } from "node:timers";
import { parentPort, workerData } from "node:worker_threads";
import type { RenewInThread } from "@holdfast/core";
import type { HeldClaims, WatchdogThreadData } from "./watchdog.ts";
import { threadTime, WatchdogMemory } from "./watchdog-memory.ts";
import { BlockedRenewal } from "./blocked-renewal.ts";

const { shared, sliceMs, stepBlocksMs, path, pid } = workerData as WatchdogThreadData;
const memory = new WatchdogMemory(shared);
const renewal = new BlockedRenewal({
  memory,
  stepBlocksMs,
  threadTime,
  now: () => performance.now(),
  load: (module) => import(module) as Promise<{ readonly renew: RenewInThread }>,
});
parentPort?.on("message", (held: HeldClaims) => renewal.receive(held));

/** A process that has not let go of its leases this long after the announced time is stuck. */
const OVERDUE_MS = 750;
const LOOK_MS = Math.max(10, sliceMs / 10);
/** Looks that are further apart mean that the process was suspended, and this thread with it. */
const STOPPED_MS = 4 * LOOK_MS;

let lookedAt = performance.now();
let slice = -1;
let openSince = 0;
let expected = 0n;
let overdueSince = Infinity;

const looking = setInterval(look, LOOK_MS);

function look(): void {
  const now = performance.now();
  // mutant: stopped-process-ended
  const wasStopped = now - lookedAt > STOPPED_MS; // watchdog-6.
  lookedAt = now;
  const opened = memory.get("opened");
  const open = memory.get("isOpen") === 1;
  if (!open || opened !== slice || wasStopped) openSince = open ? now : Infinity;
  slice = opened;
  renewal.look(now);
  const due = renewal.abandonAt;
  if (due !== expected || wasStopped) overdueSince = Infinity;
  expected = due;
  // mutant: process-without-leases-ended
  if (due !== 0n && threadTime() >= due) overdueSince = Math.min(overdueSince, now);
  const isSliceStuck = now - openSince >= sliceMs;
  const isOverdue = now - overdueSince >= OVERDUE_MS; // watchdog-4.
  if (!isSliceStuck && !isOverdue && !renewal.isRefused) return;
  clearInterval(looking);
  // Read the names now: if the slice ends after all, the next one writes other names.
  const sessionIds = isSliceStuck || now - openSince >= OVERDUE_MS ? memory.sliceMembers : [];
  const step = sessionIds.length === 0 ? renewal.blockedBy : undefined;
  const howLong = isSliceStuck ? `for more than ${sliceMs} ms` : renewal.blockedText(now);
  import("./watchdog-end.ts")
    .then(({ endStuck }) => endStuck({ sessionIds, step, howLong, stepBlocksMs, path, pid }))
    .catch(() => process.kill(pid, "SIGKILL")); // It may fail before the process ends.
}
