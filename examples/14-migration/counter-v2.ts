import { defineAgent } from "holdfast";
import type { CountsV1 } from "./counter-v1.ts";

/** Version 2 counts, and forgets the order. */
interface Counts {
  readonly counts: { readonly [word: string]: number };
}

const counted = ({ words }: CountsV1): Counts => {
  const counts: { [word: string]: number } = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return { counts };
};

export default defineAgent<unknown, unknown, Counts>({
  name: "counter",
  state: {
    version: 2,
    initial: () => ({ counts: {} }),
    reducers: { counts: "merge" },
    // Called once, when a session of version 1 resumes; the next checkpoint stores its result.
    migrate: (state, from) => (from === 1 ? counted(state as CountsV1) : (state as Counts)),
  },
  async turn(ctx, state) {
    const word = await ctx.waitForSignal<string>("word");
    if (word === "stop") return { done: state.counts };
    return { update: { counts: { [word]: (state.counts[word] ?? 0) + 1 } } };
  },
});
