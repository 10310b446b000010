// Runs in processes of their own. A side that is measured cold begins in a fresh process each time, and so
// does its floor.

import { startChild } from "./child.ts";
import type { Bench } from "./workload.ts";

/** How many sessions, and the steps of each. */
export interface Shape {
  readonly sessions: number;
  readonly steps: number;
}

/** The work of a fresh process: one side of W2 or W3. */
export type FreshRun = Pick<Bench, "storage" | "folder"> & { readonly side: "ours" | "floor" } & (
    | { readonly workload: "W2"; readonly tasks: number }
    | { readonly workload: "W3"; readonly shape: Shape }
  );

export interface FreshReport {
  readonly ms: number;
  readonly cpuMicros?: number;
  readonly statements?: number | undefined;
  /** From the start of a session to its result, of our side of W3. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
}

/** Run it in a new process. */
export async function runInFreshProcess(run: FreshRun): Promise<FreshReport> {
  const child = startChild("fresh", run);
  const report = await child.next("ran");
  await child.end();
  return report as unknown as FreshReport;
}
