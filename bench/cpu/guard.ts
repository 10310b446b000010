// The short form: whether the sources of this checkout cost more CPU than the baseline, in the time that
// every change has for it.
//
// A workload above the limit is measured twice more, three times as long. Only three ratios above it are a
// failure. Other work on the machine bends one of them now and then, and slower sources bend all.

import { CPU_WORKLOADS, type Comparison, type CpuWorkload, type Length } from "./compare.ts";

/** CPU of ours divided by that of the baseline. */
export const LIMIT = 1.1;
export const SHORT: Length = { pairs: 1, chunks: 16 };
export const LONG: Length = { pairs: 3 * SHORT.pairs, chunks: SHORT.chunks };
const REPEATS = 2;

export interface Verdict {
  readonly workload: CpuWorkload;
  readonly isFine: boolean;
  /** The first is of the short length. */
  readonly measured: readonly Comparison[];
}

type Measure = (workload: CpuWorkload, length: Length) => Promise<Comparison>;

/** Judges each workload in turn. */
export async function* judgeAll(measure: Measure): AsyncGenerator<Verdict> {
  for (const workload of CPU_WORKLOADS) yield await judge(workload, measure);
}

async function judge(workload: CpuWorkload, measure: Measure): Promise<Verdict> {
  const measured = [await measure(workload, SHORT)];
  while (measured.at(-1)!.ratio > LIMIT && measured.length <= REPEATS)
    measured.push(await measure(workload, LONG));
  return { workload, isFine: measured.at(-1)!.ratio <= LIMIT, measured };
}
