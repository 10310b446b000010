// The random numbers of sessions that belong to one tree.

import { expect, test } from "vitest";
import { defineAgent, local } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

test("no two sessions of a tree draw the same UUIDs, however alike their commands are", async () => {
  const chain = defineAgent({
    name: "chain",
    run: async (ctx, depth: number): Promise<readonly string[]> => {
      const own = ctx.randomUuid();
      if (depth === 0) return [own];
      return [own, ...(await ctx.waitForChild(ctx.spawnAgent(local<number, string[]>("chain"), depth - 1)))];
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage(), development: false });
  const drawn = await (await runtime.start(chain, 6)).result();
  await runtime.close();
  expect(new Set(drawn).size).toBe(7);
});
