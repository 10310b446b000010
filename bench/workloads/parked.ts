// W6: very many sessions parked on a signal. It measures the memory and disk of one session, and how quickly
// some wake.
//
// A child process holds the sessions, so that nothing else is in its memory.

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

/** The measurements of the child at one number of parked sessions. */
export interface ParkedReport {
  readonly startsPerSecond: number;
  /** Resident bytes, which the goal limits. */
  readonly rssBytesPerParked: number;
  /** Reachable bytes, which explain the resident ones but have no goal. */
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

/** Bytes per session below which the memory of a whole process shows no difference. */
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
