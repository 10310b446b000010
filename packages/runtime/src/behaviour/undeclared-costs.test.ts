// Budgets of tasks that declare no cost: such a task may exceed a limit once.

import { TestClock, until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

test.each([
  ["maxTokens", 100],
  ["maxCostMicroUsd", 1_000],
] as const)(
  "a session that has spent more than %s starts no task, also without a declared cost",
  async (limit, max) => {
    const runtime = createRuntime({
      storage: new MemoryStorage(),
      clock: new TestClock(),
      development: false,
    });
    const ran: number[] = [];
    const agent = defineAgent({
      name: "undeclared",
      run: async (ctx) => {
        for (let n = 0; n < 4; n++)
          await ctx.run("call", (task) => {
            ran.push(n);
            task.reportUsage({ model: "m", inputTokens: 60, outputTokens: 0, costMicroUsd: 600 });
          });
        return ran.length;
      },
    });
    const { sessionId: id } = await runtime.start(agent, undefined, { budget: { [limit]: max } });
    await until(async () => (await runtime.handle(id).session()).status === "paused", "it is paused");
    expect(ran).toEqual([0, 1]);
    await runtime.setBudget(id, { [limit]: 10 * max });
    await until(async () => (await runtime.handle(id).session()).status === "completed", "it ends");
    expect(ran).toEqual([0, 1, 2, 3]);
    await runtime.close();
  },
);
