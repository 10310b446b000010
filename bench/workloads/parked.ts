// W6: very many sessions parked on a signal. What one costs in memory and on disk, and how quickly some of them wake.
//
// In a process of its own, so that nothing else is in its memory.

import { startChild } from "../child.ts";
import type { Measured } from "../line.ts";
import { median, percentile } from "../measure.ts";
import type { Bench, Workload } from "../workload.ts";

export interface ParkedOptions {
  readonly storage: Bench["storage"];
  readonly folder: string;
  /** Parked before memory is measured for the first time: caches are full and code is compiled. */
  readonly warmUp: number;
  readonly counts: readonly number[];
  readonly wakes: number;
  readonly rounds: number;
}

/** What the child measured with so many parked. */
export interface ParkedReport {
  readonly startsPerSecond: number;
  /** What the goal is about. */
  readonly rssBytesPerParked: number;
  /** What is reachable; explains the other, and replaces it in no goal. */
  readonly heapBytesPerParked: number;
  /** `null` in memory, where the heap is the storage. */
  readonly storageBytesPerParked: number | null;
  readonly floorBytesPerParked: number | null;
  /** One number per round. */
  readonly wakesPerSecond: readonly number[];
  readonly floorWakesPerSecond: readonly number[];
  readonly wakeMs: readonly number[];
  readonly cpuMicrosPerWake: number;
  readonly statementsPerWake: number | null;
}

/** What a measurement of a whole process's memory cannot tell from nothing, per session. */
const NOISE_BYTES = 64;

export const parked: Workload = {
  id: "W6",
  title: "sessions parked on a signal",
  refuses: (storage) => (storage === "postgres" ? "it is not measured with a server" : undefined),
  async *run(bench) {
    const counts = bench.isQuick ? [100, 200] : [10_000, 100_000];
    const options: ParkedOptions = {
      storage: bench.storage,
      folder: bench.folder,
      warmUp: bench.size(5_000, 50),
      counts,
      wakes: bench.size(1_000, 20),
      rounds: bench.repeats,
    };
    const child = startChild("parked", options, ["--expose-gc"]);
    try {
      for (const count of counts) {
        const report = (await child.next("measured"))["report"] as ParkedReport;
        yield toMeasured(bench, count, options.wakes, report);
      }
    } finally {
      await child.end();
    }
  },
};

function toMeasured(bench: Bench, count: number, wakes: number, report: ParkedReport): Measured {
  const { rssBytesPerParked, heapBytesPerParked, storageBytesPerParked, floorBytesPerParked } = report;
  const hasGoal = bench.storage === "sqlite" && count >= 100_000;
  return {
    variant: `${count.toLocaleString("en-US")} parked, ${wakes.toLocaleString("en-US")} woken`,
    unit: "wakes/s",
    value: median(report.wakesPerSecond),
    floor: median(report.floorWakesPerSecond),
    p50Ms: median(report.wakeMs),
    p99Ms: percentile(report.wakeMs, 0.99),
    cpuMicrosPerStep: report.cpuMicrosPerWake,
    statementsPerStep: report.statementsPerWake,
    ...(hasGoal
      ? {
          goal: `0 bytes of process memory per parked session (up to ${NOISE_BYTES} are noise)`,
          isGoalMet: rssBytesPerParked <= NOISE_BYTES && heapBytesPerParked <= NOISE_BYTES,
        }
      : {}),
    more: {
      rssBytesPerParked,
      heapBytesPerParked,
      ...(storageBytesPerParked === null ? {} : { storageBytesPerParked }),
      ...(floorBytesPerParked === null ? {} : { floorBytesPerParked }),
      startsPerSecond: report.startsPerSecond,
    },
  };
}
