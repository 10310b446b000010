// The CPU time of two trees of sources, chunk by chunk in turns. A slow moment of the machine meets both.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startChild, type Child } from "../child.ts";
import { median } from "../measure.ts";

export const CPU_WORKLOADS = ["W1", "W3", "ping-pong 64", "turn"] as const;
export type CpuWorkload = (typeof CPU_WORKLOADS)[number];

/** The work of one process. */
export interface CpuSide {
  /** The root of the sources. */
  readonly tree: string;
  readonly workload: CpuWorkload;
  readonly folder: string;
  /** A slowdown that is no part of the sources: every chunk takes so much longer. */
  readonly plantedPercent: number;
}

/** The next thing that the process does: a chunk, or the end of its profile. */
export interface CpuOrder {
  readonly profile?: "start" | "stop";
}

export interface Trees {
  readonly base: string;
  readonly ours: string;
  readonly plantedPercent: number;
}

export interface Length {
  /** Pairs of fresh processes, one of each tree. */
  readonly pairs: number;
  /** Measured chunks of each process, after those that compile the code. */
  readonly chunks: number;
}

export interface Comparison {
  readonly workload: CpuWorkload;
  /**
   * CPU of ours divided by that of the base: the median over all chunks, each beside the chunk of the base in
   * the same moment.
   */
  readonly ratio: number;
  /** The same of each pair of processes. */
  readonly pairs: readonly number[];
  /** µs of CPU per step, round or turn. */
  readonly oursMicros: number;
  readonly baseMicros: number;
}

export const WARM_CHUNKS = 4;

/** A file system in memory where there is one. */
const MEMORY = "/dev/shm";

export async function compare(
  workload: CpuWorkload,
  trees: Trees,
  { pairs, chunks }: Length,
): Promise<Comparison> {
  const measured: PairOfProcesses[] = [];
  for (let i = 0; i < pairs; i++) measured.push(await runPair(workload, trees, chunks));
  const ratios = measured.map(ratiosOf);
  return {
    workload,
    ratio: median(ratios.flat()),
    pairs: ratios.map(median),
    oursMicros: median(measured.flatMap(({ ours }) => ours)),
    baseMicros: median(measured.flatMap(({ base }) => base)),
  };
}

/** µs per operation of each chunk. */
interface PairOfProcesses {
  readonly ours: readonly number[];
  readonly base: readonly number[];
}

function ratiosOf({ ours, base }: PairOfProcesses): readonly number[] {
  return ours.map((micros, i) => micros / base[i]!);
}

async function runPair(workload: CpuWorkload, trees: Trees, chunks: number): Promise<PairOfProcesses> {
  const { folder, removeFolder } = inMemoryFolder();
  const start = (tree: string, plantedPercent: number): Child => {
    const side: CpuSide = { tree, workload, folder, plantedPercent };
    return startChild("cpu", side, [], { ...process.env, NODE_ENV: "production" });
  };
  const sides = { base: start(trees.base, 0), ours: start(trees.ours, trees.plantedPercent) };
  const micros: { base: number[]; ours: number[] } = { base: [], ours: [] };
  try {
    for (const side of Object.values(sides)) await side.next("ready");
    for (let i = -WARM_CHUNKS; i < chunks; i++) {
      // Whichever comes first finds other caches, so they change places.
      for (const name of i % 2 === 0 ? (["base", "ours"] as const) : (["ours", "base"] as const)) {
        sides[name].send({});
        const { cpuMicros, operations } = await sides[name].next("ran");
        if (i >= 0) micros[name].push(Number(cpuMicros) / Number(operations));
      }
    }
    return micros;
  } finally {
    await Promise.all(Object.values(sides).map((side) => side.kill()));
    removeFolder();
  }
}

export function inMemoryFolder(): { readonly folder: string; readonly removeFolder: () => void } {
  const folder = makeFolder();
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove); // also of a bench that is interrupted
  const removeFolder = (): void => {
    process.off("exit", remove);
    remove();
  };
  return { folder, removeFolder };
}

function makeFolder(): string {
  try {
    return mkdtempSync(join(MEMORY, "holdfast-cpu-"));
  } catch {
    return mkdtempSync(join(tmpdir(), "holdfast-cpu-"));
  }
}
