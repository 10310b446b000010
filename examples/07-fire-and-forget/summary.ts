import { readFile } from "node:fs/promises";
import { defineAgent } from "holdfast";

export default defineAgent({
  name: "summary",
  async run(ctx, input: { readonly file: string }) {
    const text = await ctx.run("read", () => readFile(input.file, "utf8"));
    // Stands for a model call: one task, recorded once, whatever happens to the process.
    return ctx.run("summarise", () => ({
      words: text.split(/\s+/).filter(Boolean).length,
      begins: text.slice(0, 20),
    }));
  },
});
