import { defineAgent } from "holdfast";

/** What it remembers, as version 1 of its code stores it. */
export interface CountsV1 {
  readonly words: readonly string[];
}

export default defineAgent<unknown, unknown, CountsV1>({
  name: "counter",
  state: { version: 1, initial: () => ({ words: [] }), reducers: { words: "append" } },
  async turn(ctx, state) {
    const word = await ctx.waitForSignal<string>("word");
    return word === "stop" ? { done: state.words } : { update: { words: [word] } };
  },
});
