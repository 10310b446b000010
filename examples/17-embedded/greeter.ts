import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent } from "holdfast";

export const greeter = defineAgent({
  name: "greeter",
  run: async (ctx, input: { name: string }) => {
    const text = await ctx.run("compose", async () => {
      await sleep(500); // A model would take longer.
      return `Hello, ${input.name}!`;
    });
    const { approved } = await ctx.requestInput({ prompt: `Say "${text}"?` });
    return approved ? text : "kept";
  },
});
