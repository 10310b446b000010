import { defineAgent } from "holdfast";

/** One chapter a turn: each ends with a checkpoint, and so is a place to go on from in another way. */
export default defineAgent({
  name: "story",
  initial: (): readonly string[] => [],
  async turn(ctx, chapters: readonly string[]) {
    const { hero } = ctx.input as { readonly hero: string };
    const plot = ["sets out", "gets lost", "comes home"][chapters.length]!;
    // A model, in a real one: what it was paid for is not asked for again in a fork.
    const chapter = await ctx.run("write-chapter", () => `${hero} ${plot}.`);
    ctx.appendEntry({ role: "assistant", content: chapter });
    const story = [...chapters, chapter];
    return story.length === 3 ? { done: story } : { state: story };
  },
});
