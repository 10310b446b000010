// The agents of a nemesis run, with every kind of command. Their tasks record what they did in files that
// survive a crash.
//
//   - Each attempt of a task writes a line when it begins, while it runs, and when it ends. The line is
//     written at once, with the machine's monotonic time, which no clock step changes.
//   - A process that an attempt starts has a mark in its environment, which identifies it.
//
// The harness imports the names; a runner loads this file like any other agent file.

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { UncertainEffect } from "@holdfast/core";
import { defineAgent, remote, type TaskContext } from "@holdfast/runtime";
import { EFFECTS_FOLDER, MARK, monotonicMs, RUNNER_NAME, type Effect } from "./observed.ts";

const BEAT_MS = 200;

export function report(task: TaskContext, phase: Effect["phase"], name: string): void {
  const line: Effect = {
    at: monotonicMs(),
    phase,
    name,
    runner: process.env[RUNNER_NAME] ?? "",
    pid: process.pid,
    sessionId: task.sessionId,
    taskId: task.taskId,
    attempt: task.attempt,
  };
  const file = join(process.env[EFFECTS_FOLDER] ?? ".", task.sessionId);
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

async function effect(task: TaskContext, name: string, takesMs: number): Promise<void> {
  report(task, "begin", name);
  for (let left = takesMs; left > 0; left -= BEAT_MS) {
    await sleep(Math.min(left, BEAT_MS), undefined, { signal: task.signal });
    report(task, "beat", name);
  }
  report(task, "end", name);
}

interface Paced {
  readonly count: number;
  readonly takesMs: number;
}

/** A checkpoint after each step. */
export const walker = defineAgent<Paced & { readonly trail?: readonly number[] }, readonly number[]>({
  name: "walker",
  initial: (input) => ({ ...input, trail: [] }),
  turn: async (ctx, state) => {
    const { count, takesMs, trail = [] } = state as Paced & { readonly trail?: readonly number[] };
    if (trail.length === count) return { done: trail };
    const step = trail.length;
    await ctx.run("step", (task) => effect(task, "step", takesMs));
    ctx.appendEntry({ role: "assistant", content: step });
    return { state: { count, takesMs, trail: [...trail, step] } };
  },
});

export const SIGNAL_NAMES = ["left", "right"] as const;

/** Its output is the payloads of its signals, by name, in the order of their arrival. */
export const collector = defineAgent<{ readonly count: number }, Readonly<Record<string, readonly number[]>>>(
  {
    name: "collector",
    run: async (ctx, { count }) => {
      const got: Record<string, number[]> = { left: [], right: [] };
      for (let i = 0; i < count; i++) {
        for (const name of SIGNAL_NAMES) {
          got[name]!.push(await ctx.waitForSignal<number>(name));
          if (i % 2 === 0) await ctx.run("note", (task) => effect(task, "note", 0));
        }
      }
      return got;
    },
  },
);

/** Its output is the lengths of its sleeps, by the machine's monotonic time. */
export const sleeper = defineAgent<{ readonly sleepMs: number; readonly times: number }, readonly number[]>({
  name: "sleeper",
  run: async (ctx, { sleepMs, times }) => {
    const slept: number[] = [];
    for (let i = 0; i < times; i++) {
      const from = await ctx.run("before", async (task) => {
        await effect(task, "before", 0);
        return monotonicMs();
      });
      await ctx.sleep(sleepMs);
      const to = await ctx.run("after", async (task) => {
        await effect(task, "after", 0);
        return monotonicMs();
      });
      slept.push(to - from);
    }
    return slept;
  },
});

export const parent = defineAgent<Paced, readonly (readonly number[])[]>({
  name: "parent",
  agents: [walker],
  run: async (ctx, { count, takesMs }) => {
    const children = [1, 2].map(() => ctx.spawnAgent(remote(walker), { count, takesMs }));
    const outputs: (readonly number[])[] = [];
    for (const child of children) outputs.push(await ctx.waitForChild(child));
    await ctx.run("sum", (task) => effect(task, "sum", 0));
    return outputs;
  },
});

/** An agent that starts a process, and completes when that process has ended. */
export const keeper = defineAgent<{ readonly takesMs: number }, string>({
  name: "keeper",
  run: async (ctx, { takesMs }) =>
    ctx.run("keep", async (task) => {
      report(task, "begin", "keep");
      const mark = `${process.env[RUNNER_NAME]} ${process.pid} ${task.sessionId}`;
      const child = spawn("sleep", [String(takesMs / 1_000)], {
        env: { ...process.env, [MARK]: mark },
        signal: task.signal,
        stdio: "ignore",
      });
      const code = await new Promise<number | null>((resolve, reject) => {
        child.on("error", reject);
        child.on("exit", resolve);
      });
      if (code !== 0) throw new Error(`what it kept ended with ${code}`);
      report(task, "end", "keep");
      return "kept";
    }),
});

/** The maximum number of attempts of a task of `limited`. */
export const ATTEMPTS_MAX = 2;

export const limited = defineAgent<{ readonly takesMs: number }, string>({
  name: "limited",
  run: async (ctx, { takesMs }) => {
    try {
      await ctx.run("limited", (task) => effect(task, "limited", takesMs), {
        retry: { maxAttempts: ATTEMPTS_MAX },
      });
      return "done";
    } catch {
      return "given up";
    }
  },
});

/** Its output is the tasks of which nobody knows whether they happened. */
export const payer = defineAgent<{ readonly waitMs: number; readonly count: number }, readonly string[]>({
  name: "once-payer",
  run: async (ctx, { waitMs, count }) => {
    const uncertain: string[] = [];
    for (let i = 0; i < count; i++) {
      await ctx.sleep(waitMs);
      const pay = async (task: TaskContext): Promise<string> => {
        await effect(task, "pay", 0);
        return "paid";
      };
      const paid = await ctx.run<string | UncertainEffect>("pay", pay, {
        effect: "once",
        onUncertain: "return",
      });
      if (typeof paid === "object") uncertain.push(paid.taskId);
    }
    return uncertain;
  },
});

/** An agent whose task runs in another runner's process. */
export const errand = defineAgent<{ readonly takesMs: number }, number>({
  name: "errand",
  run: async (ctx, { takesMs }) => ctx.scheduleTask<number>("work", takesMs),
});

/** An agent that never ends unless it is cancelled. */
export const endless = defineAgent<{ readonly takesMs: number; readonly turn?: number }, never>({
  name: "endless",
  initial: (input) => input,
  turn: async (ctx, state) => {
    const { takesMs, turn = 0 } = state as { readonly takesMs: number; readonly turn?: number };
    await ctx.run("again", (task) => effect(task, "again", takesMs));
    await ctx.sleep(300);
    return { state: { takesMs, turn: turn + 1 } };
  },
});

/** An agent that crashes its runner each time. */
export const poison = defineAgent<Record<string, never>, string>({
  name: "poison",
  run: async (ctx) =>
    ctx.run("swallow", (task) => {
      report(task, "begin", "swallow");
      process.kill(process.pid, "SIGKILL");
      return "never";
    }),
});
