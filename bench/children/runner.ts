// A runner of a fleet, and the agents it runs.

import { setTimeout as sleep } from "node:timers/promises";
import { startRunner } from "@holdfast/runner";
import { defineAgent } from "@holdfast/runtime";
import type { RunnerOptions } from "../fleet.ts";
import { nowMs } from "../measure.ts";
import { optionsOf, notifyParent } from "./parent.ts";

const { url, token, folder, name, maxRuns } = optionsOf<RunnerOptions>();

/** Its output is the sum, and when each step ran if that is asked for. */
const sequential = defineAgent({
  name: "sequential",
  run: async (ctx, { steps, isTimed }: { steps: number; isTimed?: boolean }) => {
    const marks: number[] = [];
    let sum = 0;
    for (let i = 0; i < steps; i++) {
      sum += await ctx.run("step", () => {
        if (isTimed === true) marks.push(nowMs());
        return i;
      });
    }
    return { sum, marks };
  },
});

const parallel = defineAgent({
  name: "parallel",
  run: async (ctx, { tasks }: { tasks: number }) => {
    const outputs = await Promise.all(Array.from({ length: tasks }, (_, i) => ctx.run("task", () => i)));
    return outputs.reduce((sum, output) => sum + output, 0);
  },
});

/** Its output is when it ran. */
const dispatched = defineAgent({ name: "dispatched", run: async () => nowMs() });

/** Its output is when it went on. */
const waiting = defineAgent({
  name: "waiting",
  run: async (ctx) => {
    await ctx.waitForSignal("go");
    return nowMs();
  },
});

const pong = defineAgent({
  name: "pong",
  run: async (ctx, { rounds }: { rounds: number }) => {
    let sum = 0;
    for (let i = 0; i < rounds; i++) {
      sum += await ctx.waitForSignal<number>("ping");
      notifyParent("pong", { sessionId: ctx.sessionId });
    }
    return sum;
  },
});

/** Steps without end, some ms each, that say when they run. */
const ticking = defineAgent({
  name: "ticking",
  run: async (ctx, { stepMs }: { stepMs: number }) => {
    for (let i = 0; ; i++) {
      await ctx.run("step", async () => {
        notifyParent("step", { step: i });
        await sleep(stepMs);
      });
    }
  },
});

const runner = await startRunner({
  url,
  token,
  stateFolder: folder,
  workspace: folder,
  name,
  maxRuns,
  agents: [sequential, parallel, dispatched, waiting, pong, ticking],
  log: (event) => {
    if (event.type === "lost") process.stderr.write(`${name}: ${event.error.message}\n`);
  },
});
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  notifyParent("report", { cpuMicros: user + system, held: runner.health().held });
});
process.once("disconnect", () => void runner.stop().then(() => process.exit()));
notifyParent("ready");
