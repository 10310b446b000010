// Where the CPU time of an operation goes: a sampled profile of warm chunks, by the owner of the code.
//
// A native function belongs to SQLite if `driver.ts` calls it. Work of V8's other threads, and of the kernel
// for them, is in the total and not in the profile.

import type { Profiler } from "node:inspector";
import { startChild } from "../child.ts";
import { median } from "../measure.ts";
import { inMemoryFolder, WARM_CHUNKS, type CpuSide, type CpuWorkload } from "./compare.ts";

const COMPILING_CHUNKS = 25 * WARM_CHUNKS;
const PROFILED_CHUNKS = 100;

export interface Shares {
  readonly workload: CpuWorkload;
  /** µs of CPU per step, round or turn, with the threads of V8. */
  readonly micros: number;
  /** The part of the profiled time of each owner, the largest first. */
  readonly shares: readonly { readonly owner: string; readonly part: number }[];
}

export async function measureShares(workload: CpuWorkload, tree: string): Promise<Shares> {
  const { folder, removeFolder } = inMemoryFolder();
  const side: CpuSide = { tree, workload, folder, plantedPercent: 0 };
  const child = startChild("cpu", side, [], { ...process.env, NODE_ENV: "production" });
  const micros: number[] = [];
  try {
    await child.next("ready");
    for (let i = -COMPILING_CHUNKS; i < PROFILED_CHUNKS; i++) {
      child.send(i === 0 ? { profile: "start" } : {});
      const { cpuMicros, operations } = await child.next("ran");
      if (i >= 0) micros.push(Number(cpuMicros) / Number(operations));
    }
    child.send({ profile: "stop" });
    const { profile } = await child.next("profiled");
    return { workload, micros: median(micros), shares: sharesOf(profile as Profiler.Profile) };
  } finally {
    await child.kill();
    removeFolder();
  }
}

export function sharesOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Shares["shares"] {
  const callers = new Map(
    nodes.flatMap(({ children = [], callFrame }) => children.map((id) => [id, callFrame])),
  );
  const owners = new Map(nodes.map(({ id, callFrame }) => [id, ownerOf(callFrame, callers.get(id))]));
  const micros = new Map<string, number>();
  let all = 0;
  for (const [i, id] of samples.entries()) {
    const owner = owners.get(id);
    if (owner === undefined) continue;
    const spent = timeDeltas[i] ?? 0;
    all += spent;
    micros.set(owner, (micros.get(owner) ?? 0) + spent);
  }
  return Array.from(micros, ([owner, spent]) => ({ owner, part: spent / all })).sort(
    (a, b) => b.part - a.part,
  );
}

type Frame = Profiler.ProfileNode["callFrame"];

/** `undefined` for time in which the process had nothing to do, or began to be profiled. */
function ownerOf({ functionName, url }: Frame, caller: Frame | undefined): string | undefined {
  if (functionName === "(idle)" || url === "node:inspector") return undefined;
  if (functionName === "(garbage collector)") return "garbage";
  const isNative = url === "" && functionName !== "(program)";
  if (DRIVER.test(url) || (isNative && DRIVER.test(caller?.url ?? ""))) return "SQLite";
  const ours = /\/packages\/([^/]+)\/src\//.exec(url)?.[1];
  if (ours !== undefined) return ours;
  if (url.includes("/bench/")) return "the bench";
  return url === "" || url.startsWith("node:") ? "Node and V8" : "other packages";
}

const DRIVER = /\/storage\/src\/sqlite\/file\/driver\.ts$/;
