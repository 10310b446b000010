// The agents whose sessions stand in the stores of `make-store.ts`. Written for the API of every version: builds of before run them to
// make a store, today's build runs them on.

import type { defineAgent, defineTask, local } from "../../index.ts";

/** The exports of a build for authors. */
export interface Authoring {
  readonly defineAgent: typeof defineAgent;
  readonly defineTask: typeof defineTask;
  readonly local: typeof local;
}

/** Called by each attempt of the task; the attempt lasts as long as the promise. */
export type OnAttempt = (label: string, sessionId: string) => Promise<void> | void;

/** Sessions of each store, by what they are for. */
export const SESSIONS = {
  ended: "ses-ended",
  hold: "ses-hold",
  queued: "ses-queued",
  leased: "ses-leased",
  question: "ses-question",
  timer: "ses-timer",
  listening: "ses-listening",
  signalled: "ses-signalled",
  parent: "ses-parent",
  child: "ses-parent-0",
} as const;

export const BUDGET = { maxTokens: 5_000 } as const;
export const WORST_TOKENS = 100;
/** How many tasks run at once when the process is killed: more than one row keeps holds for. */
export const WIDTH = 12;
export const USED_TOKENS = 30;
export const SLEEP_MS = 3_600_000;
/** Long enough to be stored apart from the row that names it. */
export const LARGE_INPUT: string = "x".repeat(65_536);

// oxlint-disable-next-line typescript/explicit-module-boundary-types -- the types of seven agents are what this makes.
export function agentsOf({ defineAgent, defineTask, local }: Authoring, onAttempt: OnAttempt) {
  const call = defineTask({
    name: "call",
    cost: () => ({ maxTokens: WORST_TOKENS }),
    run: async (label: string, task) => {
      await onAttempt(label, task.sessionId);
      task.reportUsage({ model: "model", inputTokens: 20, outputTokens: 10 });
      return `${label} done`;
    },
  });
  const brief = defineAgent({
    name: "brief",
    tasks: [call],
    run: async (ctx, input: string) => {
      ctx.appendEntry({ role: "user", content: "begin" });
      const output = await ctx.scheduleTask(call, "only");
      ctx.appendEntry({ role: "assistant", content: output });
      return { length: input.length, output };
    },
  });
  const spender = defineAgent({
    name: "spender",
    tasks: [call],
    run: async (ctx) => {
      const first = await ctx.scheduleTask(call, "first");
      const labels = Array.from({ length: WIDTH }, (_, index) => `wide ${index}`);
      const wide = await Promise.all(labels.map((label) => ctx.scheduleTask(call, label)));
      return [first, ...wide];
    },
  });
  const asker = defineAgent({
    name: "asker",
    run: async (ctx) => ctx.requestInput({ prompt: "Deploy?", details: { version: 2 } }),
  });
  const sleeper = defineAgent({
    name: "sleeper",
    run: async (ctx) => {
      const from = ctx.now();
      await ctx.sleep(SLEEP_MS);
      return ctx.now() - from;
    },
  });
  const listener = defineAgent({
    name: "listener",
    tasks: [call],
    run: async (ctx) => {
      const before = await ctx.scheduleTask(call, "before");
      ctx.appendEntry({ role: "user", content: before });
      const go = await ctx.waitForSignal<number>("go");
      return { before, go, later: ctx.takeSignal("later") ?? null };
    },
  });
  const child = defineAgent({
    name: "child",
    run: async (ctx) => ctx.waitForSignal<string>("finish"),
  });
  const parent = defineAgent({
    name: "parent",
    agents: [child],
    run: async (ctx) => {
      const output = await ctx.waitForChild(ctx.spawnAgent(local(child)));
      return { child: output };
    },
  });
  return { brief, spender, asker, sleeper, listener, child, parent };
}
