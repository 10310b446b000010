// An agent of four turns with a state, for tests of the journal on the page. Its texts attack the page that
// shows them.

import { defineAgent } from "holdfast";

interface State {
  readonly step: number;
  readonly notes: Readonly<Record<string, string>>;
}

const HOSTILE = "<script>window.attacked = 1</script><img src=x onerror='window.attacked = 2'> \u202egnp.exe";

export default defineAgent({
  name: "turns",
  initial: (): State => ({ step: 0, notes: {} }),
  turn: async (ctx, { step, notes }: State) => {
    ctx.appendEntry({ role: "user", content: `step ${step} ${HOSTILE}` });
    const seen = await ctx.run("look", () => `file ${step} ${HOSTILE}`);
    if (step === 3) return { done: ctx.input };
    return { state: { step: step + 1, notes: { ...notes, [`step${step}`]: seen } } };
  },
});
