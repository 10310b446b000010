import { defineAgent } from "holdfast";

export default defineAgent({
  name: "hello-world",
  async run(ctx, name?: string) {
    const greeting = await ctx.run("greet", () => `Hello, ${name ?? "world"}!`);
    await ctx.sleep(1_000); // Kill it here: `npx holdfast resume --last` goes on, and greets nobody twice.
    return greeting;
  },
});
