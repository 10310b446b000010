// More agents of the local stack under kills. One uses a secret in every way that could show it, one ends its
// runner, and one has an effect that happens once.
//
// The harness copies this file with `../agents.ts` and `../observed.ts` into the stack's project.

import { execFileSync } from "node:child_process";
import { defineAgent, defineTask } from "holdfast";
import { setTimeout as sleep } from "node:timers/promises";
import { report } from "../agents.ts";

/** The name of the secret that the stack is given. */
export const SECRET = "STACK_SECRET";

/** Writes the secret to everything that a task can write to. Its first attempt fails. @returns the length of the secret. */
const useSecret = defineTask<null, { readonly length: number; readonly leaked: string }>({
  name: "use secret",
  secrets: [SECRET],
  run: (_, task) => {
    report(task, "begin", "use secret");
    const secret = task.secret(SECRET);
    task.streamToken(`token ${secret}`);
    task.progress({ secret });
    console.log(`an agent's output has ${secret}`);
    console.error(new Error(`an agent's error has ${secret}`).message);
    process.stderr.write(`${JSON.stringify({ secret })}\n`);
    void Promise.reject(new Error(`nobody handles ${secret}`));
    execFileSync("sleep", ["0.05"]);
    if (task.attempt === 1) throw new Error(`refused ${secret}`, { cause: new Error(btoa(secret)) });
    report(task, "end", "use secret");
    return { length: secret.length, leaked: secret };
  },
});

export const keyed = defineAgent({
  name: "keyed",
  secrets: [SECRET],
  tasks: [useSecret],
  run: async (ctx) => {
    const { length, leaked } = await ctx.scheduleTask(useSecret, null);
    ctx.appendEntry({ role: "assistant", content: leaked });
    return { length };
  },
});

/** Ends the runner with the secret in the error, or with all its memory in a core file where the system writes one. */
const endRunner = defineTask<"throw" | "abort", string>({
  name: "end runner",
  secrets: [SECRET],
  run: async (way, task) => {
    report(task, "begin", "end runner");
    const secret = task.secret(SECRET);
    if (task.attempt === 1 && way === "abort") process.abort();
    if (task.attempt === 1)
      setTimeout(() => {
        throw new Error(`nobody catches ${secret}`);
      });
    await sleep(100);
    report(task, "end", "end runner");
    return "survived";
  },
});

export const crasher = defineAgent<{ readonly way: "throw" | "abort" }, string>({
  name: "crasher",
  secrets: [SECRET],
  tasks: [endRunner],
  run: (ctx, { way }) => ctx.scheduleTask(endRunner, way),
});

/** An effect that must not happen twice, though it may be interrupted. */
const pay = defineTask<{ readonly takesMs: number }, string>({
  name: "pay",
  effect: "once",
  run: async ({ takesMs }, task) => {
    report(task, "begin", "pay");
    await sleep(takesMs);
    report(task, "end", "pay");
    return "paid";
  },
});

export const payer = defineAgent<{ readonly takesMs: number }, string>({
  name: "payer",
  tasks: [pay],
  run: async (ctx, { takesMs }) => {
    try {
      return await ctx.scheduleTask(pay, { takesMs });
    } catch (error) {
      return (error as Error).name;
    }
  },
});
