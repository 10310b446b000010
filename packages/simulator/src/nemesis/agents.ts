// What runners run while the nemesis is about: agents of every kind of command, whose tasks tell what they did in a file that no crash
// of theirs takes back.
//
//   agents-1. Each attempt of a task says that it begins, that it still goes on, and that it has ended: one line each,
//       written at once, with the machine's monotonic time, which no clock step moves.
//   agents-2. What an attempt starts carries a mark in its environment, by which it is found.
//
// The harness imports the names; a runner loads the file as it loads anybody's.

import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent, remote, type TaskContext } from "@holdfast/runtime";
import { EFFECTS_FOLDER, MARK, monotonicMs, RUNNER_NAME, type Effect } from "./observed.ts";

const BEAT_MS = 200;

/** agents-1. */
export function tell(task: TaskContext, phase: Effect["phase"], name: string): void {
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
  tell(task, "begin", name);
  for (let left = takesMs; left > 0; left -= BEAT_MS) {
    await sleep(Math.min(left, BEAT_MS), undefined, { signal: task.signal });
    tell(task, "beat", name);
  }
  tell(task, "end", name);
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

/** Its output is what it was sent, by name, in the order it came. */
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

/** Its output is how long it slept, by the machine's monotonic time. */
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

/** Starts a process of its own, and is done when that is. */
export const keeper = defineAgent<{ readonly takesMs: number }, string>({
  name: "keeper",
  run: async (ctx, { takesMs }) =>
    ctx.run("keep", async (task) => {
      tell(task, "begin", "keep");
      const mark = `${process.env[RUNNER_NAME]} ${process.pid} ${task.sessionId}`; // agents-2.
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
      tell(task, "end", "keep");
      return "kept";
    }),
});

/** How often a task of this agent may be begun, whatever happens. */
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

/** Has its work done by another runner's process. */
export const errand = defineAgent<{ readonly takesMs: number }, number>({
  name: "errand",
  run: async (ctx, { takesMs }) => ctx.scheduleTask<number>("work", takesMs),
});

/** Never ends by itself. */
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

/** Takes its runner with it, each time. */
export const poison = defineAgent<Record<string, never>, string>({
  name: "poison",
  run: async (ctx) =>
    ctx.run("swallow", (task) => {
      tell(task, "begin", "swallow");
      process.kill(process.pid, "SIGKILL");
      return "never";
    }),
});
