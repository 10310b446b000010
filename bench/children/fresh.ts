// One run of one side of a workload, in a process that has run nothing before: cold code, and nobody else's
// garbage.

import type { FreshReport, FreshRun } from "../fresh.ts";
import { median, percentile } from "../measure.ts";
import { runParallel, runParallelFloor } from "../workloads/parallel.ts";
import { runSessions, runSessionsFloor } from "../workloads/sessions.ts";
import { optionsOf, notifyParent } from "./parent.ts";

notifyParent("ran", await runFresh(optionsOf<FreshRun>()));

async function runFresh(run: FreshRun): Promise<FreshReport> {
  if (run.workload === "W2") {
    if (run.side === "floor") return { ms: await runParallelFloor(run, run.tasks) };
    return runParallel(run, run.tasks);
  }
  if (run.side === "floor") return { ms: await runSessionsFloor(run, run.shape) };
  const { sessionMs, ...report } = await runSessions(run, run.shape);
  return { ...report, p50Ms: median(sessionMs), p99Ms: percentile(sessionMs, 0.99) };
}
