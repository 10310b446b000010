// Agents for tests of the page. The input of one has a schema, one talks, two ask for permissions, and one edits
// a file. One spends, one meets a usage limit, one fails, and one works until it is stopped.

import { defineAgent, defineTask, PauseError } from "holdfast";
import { z } from "zod";

const input = z.object({
  repo: z.string().min(3).describe("owner/name of the repository"),
  depth: z.number().int().min(1).max(5).default(2),
  mode: z.enum(["fast", "thorough"]),
  isDryRun: z.boolean().optional(),
  labels: z.array(z.string()).optional(),
});

export const reviewer = defineAgent({
  name: "reviewer",
  description: "Reviews a repository and **reports** what it found. <script>window.attacked = 1</script>",
  input,
  run: async (ctx) => Promise.resolve({ reviewed: ctx.input.repo, mode: ctx.input.mode }),
});

const text = z.union([z.string(), z.object({ text: z.string(), conversation: z.boolean().optional() })]);

export const talker = defineAgent({
  name: "talker",
  description: "Answers each message until it hears `bye`.",
  input: text,
  async run(ctx) {
    let said = typeof ctx.input === "string" ? ctx.input : ctx.input.text;
    const stays = typeof ctx.input !== "string" && ctx.input.conversation === true;
    for (;;) {
      ctx.appendEntry({ role: "user", content: said });
      ctx.appendEntry({ role: "assistant", content: `You said: **${said}**` });
      if (!stays || said === "bye") return said;
      said = await ctx.waitForSignal<string>("next_input");
    }
  },
});

export const asker = defineAgent({
  name: "asker",
  input: z.object({ command: z.string() }),
  run: (ctx) =>
    ctx.requestInput({
      prompt: "Allow shell?",
      details: { tool: "shell", input: { command: ctx.input.command } },
    }),
});

export const pusher = defineAgent({
  name: "pusher",
  async run(ctx) {
    const answer = await ctx.requestInput({
      prompt: "Allow shell: git push?",
      details: {
        tool: "shell",
        input: { command: "git push origin main" },
        folder: "/srv/app",
        lastingRule: "shell(git push:*)",
      },
    });
    return answer;
  },
});

/** It asks as a coding agent does: with the whole path of a file deep in its folder. */
export const mender = defineAgent({
  name: "mender",
  run: (ctx) =>
    ctx.requestInput({
      prompt: "Allow Edit?",
      details: {
        tool: "Edit",
        input: {
          file_path: "/srv/app/packages/orders/src/totals/of-each-month/add-the-amounts.ts",
          old_string: "a - b",
          new_string: "a + b",
        },
        folder: "/srv/app",
      },
    }),
});

/** Stands for calls of a model: it says what a call may cost before, and what it did cost after. */
const call = defineTask({
  name: "model_call",
  cost: () => ({ maxTokens: 1_000, maxCostMicroUsd: 60_000 }),
  run: (at: number, task) => {
    task.reportUsage({ model: "none", inputTokens: 500, outputTokens: 100, costMicroUsd: 40_000 });
    return at;
  },
});

export const spender = defineAgent({
  name: "spender",
  tasks: [call],
  input: z.object({ calls: z.number() }),
  async run(ctx) {
    for (let at = 0; at < ctx.input.calls; at++) await ctx.scheduleTask(call, at);
    return "spent";
  },
});

const limited = defineTask({
  name: "limited_call",
  run: ({ resumeAtReset }: { readonly resumeAtReset: boolean }): string => {
    throw new PauseError("quota_exceeded", "the plan of the crawler is used up", {
      fix: "wait until the reset, or buy more",
      pause: { reason: "quota", pool: "crawler", resetsAt: Date.now() + 7_200_000, resumeAtReset },
    });
  },
});

export const crawler = defineAgent({
  name: "crawler",
  tasks: [limited],
  input: z.object({ resumeAtReset: z.boolean() }),
  run: (ctx) => ctx.scheduleTask(limited, ctx.input),
});

export const editor = defineAgent({
  name: "editor",
  async run(ctx) {
    const edit = { path: "src/add.ts", oldText: "return a - b;", newText: "return a + b;" };
    const toolCalls = [{ id: "1", name: "edit_file", input: edit }];
    ctx.appendEntry({
      role: "assistant",
      content: { text: "The fix:\n\n```diff\n@@ -1 +1 @@\n-minus\n+plus\n```", toolCalls },
    });
    ctx.appendEntry({ role: "tool", content: { name: "shell", text: "2 tests fail", isError: true } });
    await ctx.waitForSignal("on");
  },
});

const broken = defineTask({
  name: "connect",
  retry: { maxAttempts: 1 },
  run: (): string => {
    throw new Error("connect ECONNREFUSED 10.0.0.7:5432");
  },
});

export const breaker = defineAgent({
  name: "breaker",
  tasks: [broken],
  run: (ctx) => ctx.scheduleTask(broken, null),
});

/** Works until its process ends. */
const endless = defineTask({
  name: "endless",
  run: (_: null, task) =>
    new Promise<never>((_resolve, reject) => {
      task.signal.addEventListener("abort", () => reject(new Error("it was stopped")), { once: true });
    }),
});

export const worker = defineAgent({
  name: "worker",
  tasks: [endless],
  async run(ctx) {
    ctx.reportProgress("reads the orders <b>of June</b>");
    await ctx.scheduleTask(endless, null);
  },
});
