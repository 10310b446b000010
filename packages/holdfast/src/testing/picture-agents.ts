// Agents of the pictures in the documents. They work as agents with a model do, from a script and without a key.

import { defineAgent, defineTask } from "holdfast";
import { z } from "zod";

const MODEL = "claude-sonnet-5";

/** Stands for a call of a model. */
const think = defineTask({
  name: "model",
  cost: () => ({ maxTokens: 20_000, maxCostMicroUsd: 60_000 }),
  run: (costMicroUsd: number, task) => {
    task.reportUsage({ model: MODEL, inputTokens: 6_400, outputTokens: 380, costMicroUsd });
    return "";
  },
});

const read = {
  id: "1",
  name: "Read",
  input: { file_path: "src/discount.js" },
  result:
    "export function discounted(cents, percent) {\n  return Math.floor((cents * (100 - percent)) / 100);\n}",
};
const failing = {
  id: "2",
  name: "Bash",
  input: { command: "npm test" },
  result: "exit code 1\nstdout:\n✖ 12.5 % off 19.99 is 17.49\n  expected 1749, got 1748\nℹ pass 11, fail 1",
};
const edit = {
  id: "3",
  name: "Edit",
  input: {
    file_path: "src/discount.js",
    old_string: "  return Math.floor((cents * (100 - percent)) / 100);",
    new_string: "  return Math.round((cents * (100 - percent)) / 100);",
  },
  result: "edited",
};
const passing = {
  id: "4",
  name: "Bash",
  input: { command: "npm test" },
  result: "exit code 0\nstdout:\nℹ pass 12, fail 0",
};
const push = { command: "git push origin fix-rounding" };

/** Repairs a test, and asks before it publishes. */
export const maintainer = defineAgent({
  name: "maintainer",
  tasks: [think],
  input: z.object({ text: z.string() }),
  async run(ctx) {
    const work = async (text: string, call: typeof read | typeof edit | typeof failing): Promise<void> => {
      await ctx.scheduleTask(think, 21_000);
      const { result, ...made } = call;
      ctx.appendEntry({ role: "assistant", content: { text, toolCalls: [made] } });
      ctx.appendEntry({ role: "tool", content: { toolCallId: call.id, text: result } });
    };
    ctx.appendEntry({ role: "user", content: { text: ctx.input.text } });
    await work("I read how the discount is rounded.", read);
    await work("", failing);
    await work("The total is cut instead of rounded. I change that line.", edit);
    await work("", passing);
    await ctx.scheduleTask(think, 21_000);
    ctx.appendEntry({ role: "assistant", content: { text: "All 12 tests pass. May I publish the branch?" } });
    return ctx.requestInput({
      prompt: `Allow Bash: ${push.command}?`,
      details: { tool: "Bash", input: push, folder: "/srv/shop", lastingRule: "Bash(git push:*)" },
    });
  },
});

const publish = "The notes of 2.4.0 are ready: 3 features, 11 fixes. Publish them?";

export const announcer = defineAgent({
  name: "announcer",
  tasks: [think],
  async run(ctx) {
    await ctx.scheduleTask(think, 34_000);
    return ctx.requestInput({ prompt: publish });
  },
});

const migrate = defineTask({
  name: "migrate",
  retry: { maxAttempts: 1 },
  run: (): string => {
    throw new Error("connect ECONNREFUSED 10.0.0.7:5432");
  },
});

export const migrator = defineAgent({
  name: "migrator",
  tasks: [migrate],
  run: (ctx) => ctx.scheduleTask(migrate, null),
});

/** Works until its process ends. */
const endless = defineTask({
  name: "research",
  run: (_: null, task) =>
    new Promise<never>((_resolve, reject) => {
      task.signal.addEventListener("abort", () => reject(new Error("it was stopped")), { once: true });
    }),
});

export const researcher = defineAgent({
  name: "researcher",
  tasks: [endless, think],
  input: z.object({ doing: z.string() }),
  async run(ctx) {
    await ctx.scheduleTask(think, 48_000);
    ctx.reportProgress(ctx.input.doing);
    await ctx.scheduleTask(endless, null);
  },
});

/** Makes calls until its budget is used up, or its calls are made. */
export const reviewer = defineAgent({
  name: "reviewer",
  tasks: [think],
  input: z.object({ calls: z.number() }),
  async run(ctx) {
    for (let at = 0; at < ctx.input.calls; at++) await ctx.scheduleTask(think, 39_000);
    return "reviewed";
  },
});
