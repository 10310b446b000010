// A parent of many children comes back after a restart, until all of them are driven.
//
// It does not measure children with long journals to replay, or deeper trees.

import { join } from "node:path";
import type { AgentStorage } from "@holdfast/core";
import { createRuntime, defineAgent, local, type Agent, type Runtime } from "@holdfast/runtime";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import type { Measured } from "../line.ts";
import { median, nowMs, until } from "../measure.ts";
import { withFolder } from "../storages.ts";
import type { Bench, Workload } from "../workload.ts";

const RESUME_GOAL_MS = 2_000;

export const families: Workload = {
  id: "families",
  title: "children: a parent of many resumes",
  refuses: (storage) => {
    if (storage === "postgres") return "it is not measured with a server";
    return storage === "memory" ? "memory does not outlive the restart" : undefined;
  },
  async *run(bench) {
    yield await measureResume(bench);
  },
};

const waits = defineAgent({
  name: "waits",
  run: async (ctx, n: number) => {
    await ctx.run("work", () => n);
    return ctx.waitForSignal("go");
  },
});

async function measureResume(bench: Bench): Promise<Measured> {
  const count = bench.size(1_000, 10);
  const parent = defineAgent({
    name: "parent",
    agents: [waits],
    run: async (ctx) => {
      const children = Array.from({ length: count }, (_, n) => ctx.spawnAgent(local(waits), n));
      return (await Promise.all(children.map((child) => ctx.waitForChild(child)))).length;
    },
  }) as Agent;
  const times: number[] = [];
  for (let i = 0; i < bench.repeats; i++)
    times.push(
      await withFolder(bench.folder, (folder) => resumeOnce(join(folder, "bench.db"), parent, count)),
    );
  const value = median(times);
  return {
    variant: `${count} children under one parent resume`,
    unit: "ms",
    value,
    goal: `<= ${RESUME_GOAL_MS} ms`,
    isGoalMet: value <= RESUME_GOAL_MS,
  };
}

async function resumeOnce(path: string, parent: Agent, count: number): Promise<number> {
  const isBorn = async (storage: AgentStorage): Promise<boolean> =>
    (await storage.reader.sessions({ limit: count, status: "waiting", parent: "p" })).length === count;
  const work = async (run: (runtime: Runtime, storage: AgentStorage) => Promise<number>): Promise<number> => {
    const storage = await openSqliteStorage({ path });
    const runtime = createRuntime({ storage, development: false, agents: [parent] });
    try {
      return await run(runtime, storage);
    } finally {
      await runtime.close();
      await storage.close();
    }
  };
  await work(async (runtime, storage) => {
    await runtime.start(parent, undefined, { sessionId: "p" });
    while (!(await isBorn(storage))) await new Promise((resolve) => setTimeout(resolve, 10));
    return 0;
  });
  return work(async (runtime) => {
    const startedAt = nowMs();
    await runtime.resume("p");
    await until("all to be driven", () => runtime.live === count + 1);
    return nowMs() - startedAt;
  });
}
