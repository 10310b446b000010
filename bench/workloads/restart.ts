// W5: kill -9 after N committed steps, restart, and how long until the first new step runs.
//
// Measured from the moment the new process is asked for, so Node's own start is in it, in ours as in the
// floor's.

import { join } from "node:path";
import { startChild, type Child } from "../child.ts";
import { openFloor } from "../floors.ts";
import type { Measured } from "../line.ts";
import { inTurns, median, nowMs, percentile } from "../measure.ts";
import { newPlace } from "../postgres.ts";
import type { Bench, Workload } from "../workload.ts";
import { measureFailover } from "./failover.ts";

/** Not a divisor of any N, so that there is something to replay. */
const CHECKPOINT_EVERY = 128;
const GOAL_MS = 500;

export const restart: Workload = {
  id: "W5",
  title: "kill -9 and restart, or failover",
  refuses: (storage) =>
    storage === "memory" ? "memory does not outlive the process that W5 kills" : undefined,
  async *run(bench) {
    const counts = bench.isQuick ? [20] : [500, 5_000, 20_000];
    yield await measureFailover(bench);
    if (bench.storage === "postgres") yield await measureTakeover(bench, counts[0]!);
    for (const checkpointEvery of [0, CHECKPOINT_EVERY]) yield* measure(bench, counts, checkpointEvery);
  },
};

/** One session that is killed again and again, and each time goes on to the next count. */
async function* measure(
  bench: Bench,
  counts: readonly number[],
  checkpointEvery: number,
): AsyncGenerator<Measured> {
  const newDatabase = (name: string): string =>
    bench.storage === "postgres" ? newPlace() : join(bench.folder, `${name}-${checkpointEvery}`, "bench.db");
  const place = newDatabase("restart");
  for (const steps of counts) {
    // Untimed: the steps themselves. The step after them hangs, so all before it are committed.
    await restartOurs({ place, steps, checkpointEvery });
    const floorPlace = newDatabase(`restart-floor-${steps}`);
    await fillFloor(floorPlace, steps);
    const { ours, floors } = await inTurns(
      bench.repeats,
      () => restartOurs({ place, steps, checkpointEvery }),
      () => restartFloor(floorPlace, steps),
    );
    const value = median(ours);
    const checkpoints = checkpointEvery === 0 ? "no checkpoints" : `a checkpoint every ${checkpointEvery}`;
    yield {
      variant: `${steps.toLocaleString("en-US")} steps, ${checkpoints}`,
      unit: "ms",
      value,
      floor: median(floors),
      p50Ms: value,
      p99Ms: percentile(ours, 0.99),
      ...(checkpointEvery === 0 ? {} : { goal: `<= ${GOAL_MS} ms`, isGoalMet: value <= GOAL_MS }),
    };
  }
}

/** From kill -9 of the process that runs a session until a process that was there already runs its next step. */
async function measureTakeover(bench: Bench, steps: number): Promise<Measured> {
  const options = { place: newPlace(), steps, checkpointEvery: 0 };
  const tookMs: number[] = [];
  let holder = startChild("restart", options);
  await holder.next("running");
  for (let i = 0; i < bench.repeats; i++) {
    const successor = startChild("restart", { ...options, isStandby: true });
    await successor.next("standing-by");
    const killedAt = nowMs();
    await holder.kill();
    tookMs.push((await successor.next("running")).at - killedAt);
    holder = successor;
  }
  await holder.kill();
  const value = median(tookMs);
  return {
    variant: "to another process of the same host",
    unit: "ms",
    value,
    p50Ms: value,
    p99Ms: percentile(tookMs, 0.99),
    goal: `<= ${GOAL_MS} ms`,
    isGoalMet: value <= GOAL_MS,
  };
}

/** Start or go on until `steps` are committed and the next one runs, then kill -9. Answers how long that took. */
function restartOurs(options: { place: string; steps: number; checkpointEvery: number }): Promise<number> {
  return msUntilRunning(() => startChild("restart", options));
}

/** A process that reads as many rows back and adds one. */
function restartFloor(place: string, steps: number): Promise<number> {
  return msUntilRunning(() => startChild("floor-restart", { place, steps }));
}

async function msUntilRunning(start: () => Child): Promise<number> {
  const startedAt = nowMs();
  const child = start();
  try {
    return (await child.next("running")).at - startedAt;
  } finally {
    await child.kill();
  }
}

async function fillFloor(place: string, steps: number): Promise<void> {
  const { floor, close } = await openFloor(place);
  await Promise.all(Array.from({ length: steps }, (_, seq) => floor.keep(1, seq, `{"output":${seq}}`)));
  await close();
}
