import { readFileSync } from "node:fs";
import { defineAgent, defineTask } from "holdfast";

interface Input {
  /** The log that is watched. */
  readonly file: string;
  /** Stop when it has this many lines. */
  readonly linesMax: number;
  /** Stop after this many looks. */
  readonly looksMax: number;
}

interface State {
  readonly looks: number;
  readonly lines: number;
}

interface Output extends State {
  readonly why: "enough lines" | "enough looks" | "told to stop";
}

/** Each look is a step of the session's budget. */
const countLines = defineTask({
  name: "count lines",
  run: ({ file }: { readonly file: string }) => readFileSync(file, "utf8").split("\n").length - 1,
});

export default defineAgent<Input, Output, State>({
  name: "watch",
  tasks: [countLines],
  initial: () => ({ looks: 0, lines: 0 }),
  // One turn is one tick of the schedule. The code decides the end, and the budget of the start limits the
  // spending.
  async turn(ctx, { looks, lines: before }) {
    if (looks >= ctx.input.looksMax) return { done: { why: "enough looks", looks, lines: before } };

    const { key } = await ctx.select({ tick: ctx.waitForSignal("tick"), stop: ctx.waitForSignal("stop") });
    if (key === "stop") return { done: { why: "told to stop", looks, lines: before } };

    const lines = await ctx.scheduleTask(countLines, { file: ctx.input.file });
    if (lines !== before) ctx.appendEntry({ role: "assistant", content: `${lines} lines, not ${before}` });
    const state = { looks: looks + 1, lines };
    return lines >= ctx.input.linesMax ? { done: { why: "enough lines", ...state } } : { state };
  },
});
