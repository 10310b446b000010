// How the cost of each operation grows with what is open, queued, parked or stored: nothing may grow faster
// than its work.
//
// Each operation is measured at three sizes, by CPU time. A size is repeated until it took about as much time
// as the largest one does, and the mean counts. The least of many short repeats would leave out the garbage
// collection, which long repeats include. The exponent is that of the total work: 1 when an operation has a
// constant cost, 2 when it scans everything each time.
//
// The operations run in a process of their own whose space of young objects is `YOUNG_MB`. By default V8 lets
// it grow to 130 MB. There the objects of a small size die before a collection ever copies them, and those of
// a large size are copied. That cost depends on the heap's size, not on the loops that this workload looks
// for.

import { startChild } from "../child.ts";
import type { StorageKind } from "../storages.ts";
import type { Measured } from "../line.ts";
import { withStorage } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";
import type { Growing } from "./growth-cost.ts";
import { ofOneSession } from "./growth-of-one-session.ts";
import { ofSessions } from "./growth-of-sessions.ts";

const EXPONENT_MAX = 1.15;
/** A size is repeated until this much CPU time was measured, or this much time has passed. */
const MICROS_MIN = 1_000_000;
const REPEATING_MS = 15_000;
/** The largest size as well, because the first repeat also compiles. */
const REPEATS_MIN = 2;

const YOUNG_MB = 1;

/** The cost of one operation at each size. */
export interface GrownCost {
  readonly operation: string;
  readonly points: readonly { readonly n: number; readonly micros: number }[];
}

export type GrowthRun = Pick<Bench, "storage" | "folder" | "isQuick">;

export const growth: Workload = {
  id: "growth",
  title: "how the cost of each operation grows",
  isGate: true,
  refuses: (storage) => (storage === "postgres" ? "its server's CPU time is another process's" : undefined),
  async *run({ storage, folder, isQuick }) {
    const run: GrowthRun = { storage, folder, isQuick };
    const child = startChild("growth", run, [`--max-semi-space-size=${YOUNG_MB}`]);
    for (;;) {
      const { cost } = (await child.next("measured")) as unknown as { readonly cost: GrownCost | null };
      if (cost === null) break;
      yield fitted(cost.operation, cost.points);
    }
    await child.end();
  },
};

/** Measures every operation, one after the other. */
export async function* measureGrowth({ storage, folder, isQuick }: GrowthRun): AsyncGenerator<GrownCost> {
  const [repeatsMin, microsMin] = isQuick ? [1, 0] : [REPEATS_MIN, MICROS_MIN];
  for (const growing of [...ofOneSession, ...ofSessions]) {
    const most = Math.min(growing.most ?? Infinity, isQuick ? (growing.quick ?? 2_000) : 100_000);
    const sizes = isQuick ? [most / 10, most] : [most / 100, most / 10, most];
    const costs = new Map<string, { n: number; micros: number }[]>();
    for (let i = isQuick ? 1 : 0; i < 2; i++) await measured(storage, folder, growing, sizes[0]!); // V8 compiles.
    for (const n of sizes) {
      const sums = new Map<string, { micros: number; count: number }>();
      const startedAt = performance.now();
      let [spent, repeat] = [0, 0];
      do {
        for (const { operation, micros, count } of await measured(storage, folder, growing, n)) {
          const sum = sums.get(operation) ?? { micros: 0, count: 0 };
          sums.set(operation, { micros: sum.micros + micros, count: sum.count + count });
          spent += micros;
        }
        repeat++;
      } while (repeat < repeatsMin || (spent < microsMin && performance.now() - startedAt < REPEATING_MS));
      for (const [operation, { micros, count }] of sums)
        costs.set(operation, [...(costs.get(operation) ?? []), { n, micros: micros / count }]);
    }
    for (const [operation, points] of costs) yield { operation, points };
  }
}

function measured(storage: StorageKind, folder: string, growing: Growing, n: number) {
  return withStorage(storage, folder, (open) => growing.run(open, n));
}

/** The line of an operation, from what one such operation cost at each size. */
export function fitted(operation: string, points: readonly { n: number; micros: number }[]): Measured {
  const exponent = 1 + slopeOf(points.map(({ n, micros }) => [Math.log(n), Math.log(micros)]));
  return {
    variant: operation,
    unit: "exponent",
    value: exponent,
    goal: `at most ${EXPONENT_MAX}`,
    isGoalMet: exponent <= EXPONENT_MAX,
    more: Object.fromEntries(points.map(({ n, micros }) => [`cpuMicrosAt${n}`, micros])),
  };
}

/** The slope of the straight line that is nearest to the points. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / points.length;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / points.length;
  const above = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const below = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return above / below;
}
