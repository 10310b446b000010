// `Growing` measures the cost of an operation as the number of other things grows.

import type { OpenStorage } from "../storages.ts";

/** The cost of a measured operation at one size. */
export interface Cost {
  readonly operation: string;
  readonly micros: number;
  /** How many operations that was. */
  readonly count: number;
}

/** Measures one or several operations where there are `n` of something. */
export interface Growing {
  /** The largest size that a limit allows. */
  readonly most?: number;
  /** The larger size of a smoke test: 2,000 where an operation costs microseconds. */
  readonly quick?: number;
  run(open: OpenStorage, n: number): Promise<readonly Cost[]>;
}

/** The CPU time of some work, all threads of the process, in microseconds. */
export async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
