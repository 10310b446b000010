// The agent of takeover tests: a few steps, each told when it runs, of which the last one is the test's own
// affair.

import { defineAgent } from "@holdfast/runtime";

export const SESSION_ID = "ses-1";
/** The last one is number `STEPS - 1`. */
export const STEPS = 4;

export interface Stepping {
  readonly onStep: (n: number) => void;
  readonly last: () => Promise<void>;
}

export const stepping = ({ onStep, last }: Stepping) =>
  defineAgent<unknown, string>({
    name: "stepping",
    run: async (ctx) => {
      for (let n = 0; n < STEPS; n++) {
        await ctx.run("step", async () => {
          onStep(n);
          if (n === STEPS - 1) await last();
          return n;
        });
      }
      return "done";
    },
  });
