import { defineAgent } from "holdfast";

/** The state, as version 1 of the code stores it. */
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
