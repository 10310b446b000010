// The agents of the transcripts in this folder.

import { defineAgent } from "holdfast";

/** Asks before it says something. */
export const greeter = defineAgent({
  name: "greeter",
  run: async (ctx, input: { name: string }) => {
    const text = await ctx.run("compose", () => `Hello, ${input.name}!`);
    const { approved } = await ctx.requestInput({ prompt: "Say it?", details: text });
    return approved ? text : "kept";
  },
});

/** Waits for a signal. */
export const waits = defineAgent({ name: "waits", run: (ctx) => ctx.waitForSignal("go") });
