// W2: one session asks for many tasks at once and joins them. Each run of either side is a process of its
// own.

import { createRuntime, defineAgent, silentTracer } from "@holdfast/runtime";
import { withFloor } from "../floors.ts";
import { runInFreshProcess } from "../fresh.ts";
import { assertDone, cpuMicros, inTurns, median, nowMs } from "../measure.ts";
import { withStorage } from "../storages.ts";
import type { Additions, Bench, Workload } from "../workload.ts";

export const parallel: Workload = {
  id: "W2",
  title: "one session, parallel tasks joined",
  async *run(bench) {
    const tasks = bench.size(1_000, 50);
    const run = { workload: "W2", storage: bench.storage, folder: bench.folder, tasks } as const;
    const { ours, floors } = await inTurns(
      bench.isQuick ? 1 : bench.repeats * 2,
      () => runInFreshProcess({ ...run, side: "ours" }),
      () => runInFreshProcess({ ...run, side: "floor" }),
    );
    const value = median(ours.map(({ ms }) => (tasks * 1_000) / ms));
    const floor = median(floors.map(({ ms }) => (tasks * 1_000) / ms));
    const statements = ours[0]?.statements;
    yield {
      variant: `${tasks.toLocaleString("en-US")} tasks, cold`,
      unit: "tasks/s",
      value,
      floor,
      cpuMicrosPerStep: median(ours.map((each) => (each.cpuMicros ?? Number.NaN) / tasks)),
      statementsPerStep: statements === undefined ? null : statements / tasks,
      ...(bench.storage === "memory" ? {} : { goal: ">= 0.4 of the floor", isGoalMet: value >= 0.4 * floor }),
      more: { joinedMs: median(ours.map(({ ms }) => ms)), floorMs: median(floors.map(({ ms }) => ms)) },
    };
  },
};

export function runParallel(
  { storage: kind, folder }: Pick<Bench, "storage" | "folder">,
  tasks: number,
  { tracer = silentTracer, budget }: Additions = {},
) {
  return withStorage(kind, folder, async ({ storage, statements }) => {
    const runtime = createRuntime({ storage, tracer });
    const agent = defineAgent({
      name: "parallel",
      run: async (ctx) => {
        const outputs = await Promise.all(Array.from({ length: tasks }, (_, i) => ctx.run("task", () => i)));
        return outputs.reduce((sum, output) => sum + output, 0);
      },
    });
    const statementsBefore = statements();
    const cpuBefore = process.cpuUsage();
    const startedAt = nowMs();
    const session = await runtime.start(agent, undefined, budget && { budget });
    const sum = await session.result();
    const ms = nowMs() - startedAt;
    const used = cpuMicros(cpuBefore);
    assertDone("the sum of the tasks", sum, ((tasks - 1) * tasks) / 2);
    assertDone("records of the session", (await session.session()).nextSeq, 2 * tasks + 2);
    await runtime.close();
    return {
      ms,
      cpuMicros: used,
      statements: statementsBefore === undefined ? undefined : (statements() ?? 0) - statementsBefore,
    };
  });
}

export function runParallelFloor(
  { storage: kind, folder }: Pick<Bench, "storage" | "folder">,
  tasks: number,
): Promise<number> {
  return withFloor(kind, folder, async (floor) => {
    const startedAt = nowMs();
    await Promise.all(Array.from({ length: tasks }, (_, seq) => floor.keep(1, seq, `{"output":${seq}}`)));
    assertDone("rows of the floor", floor.count, tasks);
    return nowMs() - startedAt;
  });
}
