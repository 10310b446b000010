// Costs that may grow within one session: with its open items, its queued signals, its stored records.

import { createRuntime, defineAgent, local, type Agent, type Runtime } from "@holdfast/runtime";
import { assertDone } from "../measure.ts";
import { cpuOf, type Cost, type Growing } from "./growth-cost.ts";
import type { OpenStorage } from "../storages.ts";

type Context = Parameters<Agent["main"]>[0];

/** Limits that would forbid the sizes, and are not what is measured. */
const LIMITS = { commandsPerSlice: 1_000_000, blockedOnNothingMs: 600_000 };

/** From the start of a session to its end. */
function session(
  name: string,
  run: (ctx: Context, n: number) => Promise<unknown>,
  { concurrency = 256, most }: { readonly concurrency?: number; readonly most?: number } = {},
): Growing {
  return {
    ...(most === undefined ? {} : { most }),
    run: (open, n) =>
      withRuntime(open, concurrency, async (runtime) => {
        const agent = defineAgent({ name: "grows", run: (ctx) => run(ctx, n) });
        const micros = await cpuOf(async () => {
          const handle = await runtime.start(agent);
          assertDone(name, await handle.result(), n);
        });
        return [{ operation: name, micros, count: n }];
      }),
  };
}

/** From the signal that begins it, when `send` was stored, to the end. */
function signals(name: string, nameOf: (i: number) => string, areAwaited: boolean): Growing {
  return {
    most: 50_000, // Twice in the inbox of one session, of which the limit is 100,000.
    run: (open, n) =>
      withRuntime(open, 256, async (runtime) => {
        const names = Array.from({ length: n }, (_, i) => nameOf(i));
        const agent = defineAgent({
          name: "listens",
          run: async (ctx) => {
            if (areAwaited) return (await ctx.all(names.map((each) => ctx.waitForSignal(each)))).length;
            await ctx.waitForSignal("go");
            let received = 0;
            for (const each of names) {
              await ctx.waitForSignal(each);
              received++;
            }
            return received;
          },
        });
        const handle = await runtime.start(agent);
        const micros = await cpuOf(async () => {
          await Promise.all(names.map((each) => handle.signal(each)));
          if (!areAwaited) await handle.signal("go");
          assertDone(name, await handle.result(), n);
        });
        return [{ operation: name, micros, count: n }];
      }),
  };
}

async function withRuntime(
  { storage }: OpenStorage,
  concurrency: number,
  work: (runtime: Runtime) => Promise<readonly Cost[]>,
): Promise<readonly Cost[]> {
  const runtime = createRuntime({ storage, concurrency, limits: LIMITS, development: false });
  try {
    return await work(runtime);
  } finally {
    await runtime.close();
  }
}

const child = defineAgent({ name: "child", run: async () => "done" });

const parent: Growing = {
  most: 1_000,
  run: (open, n) =>
    withRuntime(open, 256, async (runtime) => {
      const agent = defineAgent({
        name: "parent",
        agents: [child],
        run: async (ctx) => {
          const children = Array.from({ length: n }, () => ctx.spawnAgent(local(child)));
          return (await ctx.all(children.map((each) => ctx.waitForChild(each)))).length;
        },
      });
      const micros = await cpuOf(async () => {
        const handle = await runtime.start(agent);
        assertDone("children", await handle.result(), n);
      });
      return [{ operation: "children of one parent", micros, count: n }];
    }),
};

export const ofOneSession: readonly Growing[] = [
  session("timers open at once", async (ctx, n) => {
    const at = ctx.now() + 1;
    return (await ctx.all(Array.from({ length: n }, () => ctx.sleepUntil(at)))).length;
  }),
  session(
    "tasks at once",
    async (ctx, n) => (await ctx.all(Array.from({ length: n }, (_, i) => ctx.run("task", () => i)))).length,
    { concurrency: 1_000_000 },
  ),
  session(
    "tasks queued beyond the concurrency limit",
    async (ctx, n) =>
      (await ctx.all(Array.from({ length: n }, (_, i) => ctx.run("task", async () => i)))).length,
    { concurrency: 8 },
  ),
  session("entries", async (ctx, n) => {
    for (let i = 0; i < n; i++) {
      ctx.appendEntry({ role: "user", content: "one more" });
      if (i % 100 === 99) await ctx.run("step", () => i);
    }
    return n;
  }),
  signals("signals pending of one name", () => "item", false),
  signals("signals pending of many names", (i) => `item-${i}`, false),
  signals("waits of many names", (i) => `item-${i}`, true),
  parent,
];
