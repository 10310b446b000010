import { defineAgent, defineTask, local } from "holdfast";

/** Stands for a model call: it says what it may cost before, and what it did cost after. */
const review = defineTask({
  name: "review",
  cost: () => ({ maxTokens: 1_000, maxCostMicroUsd: 10_000 }),
  run: (file: string, task) => {
    task.reportUsage({ model: "none", inputTokens: 500, outputTokens: 100, costMicroUsd: 6_000 });
    return `${file}: fine`;
  },
});

const reviewer = defineAgent({
  name: "reviewer",
  tasks: [review],
  async run(ctx, files: readonly string[]) {
    const remarks: string[] = [];
    for (const file of files) {
      remarks.push(await ctx.scheduleTask(review, file));
      ctx.reportProgress({ done: remarks.length, of: files.length });
    }
    return remarks;
  },
});

export default defineAgent({
  name: "family",
  agents: [reviewer],
  async run(ctx, groups: readonly (readonly string[])[] = [["a.ts", "b.ts"], ["c.ts"], ["d.ts", "e.ts"]]) {
    const children = groups.map((files) => ctx.spawnAgent(local(reviewer), files));
    const remarks = await ctx.all(children.map((child) => ctx.waitForChild(child)));
    return remarks.flat();
  },
});
