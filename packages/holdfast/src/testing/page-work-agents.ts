// Agents for tests of the screens of one session. One works as a coding agent does. A step of its model ends when
// the test writes the file `open-N` into the folder of the runner.

import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent, defineTask, local } from "holdfast";
import { z } from "zod";

const POLL_MS = 30;

/** Stands for a call of a model. */
const prepare = defineTask({
  name: "prepare",
  run: async (gate: number, task) => {
    while (!existsSync(`open-${gate}`)) await sleep(POLL_MS, undefined, { signal: task.signal });
    task.reportUsage({ model: "none", inputTokens: 1_200, outputTokens: 34, costMicroUsd: 12_000 });
    return gate;
  },
});

const HOSTILE = "<script>window.attacked = 1</script> \u202egnp.exe";
const EDIT = {
  file_path: "src/add.ts",
  old_string: "function add(a, b) {\n  return a - b;\n}",
  new_string: "function add(a, b) {\n  return a + b;\n}",
};
const FAILED = ["exit code 1", ...Array.from({ length: 30 }, (_, n) => `  at line ${n}`), "2 tests fail"];
const FINAL = `The sum is right now. ${HOSTILE}`;

export const coder = defineAgent({
  name: "coder",
  tasks: [prepare],
  input: z.object({ text: z.string(), isGated: z.boolean().optional() }),
  async run(ctx) {
    let step = 0;
    const think = async (): Promise<void> => {
      if (ctx.input.isGated !== false) await ctx.scheduleTask(prepare, ++step);
    };
    const say = (text: string, ...toolCalls: readonly object[]): void =>
      void ctx.appendEntry({ role: "assistant", content: { text, toolCalls } });
    const result = (toolCallId: string, text: string, isError = false): void =>
      void ctx.appendEntry({ role: "tool", content: { toolCallId, text, isError } });
    ctx.appendEntry({ role: "user", content: { text: ctx.input.text } });
    await think();
    say("I look at the function first.", { id: "1", name: "Read", input: { file_path: "src/add.ts" } });
    result("1", `${EDIT.old_string}\n${HOSTILE}`);
    say("", { id: "2", name: "Bash", input: { command: "npm test" } });
    await think();
    result("2", FAILED.join("\n"));
    const steps = ["find the mistake", "mend it", "run the tests"];
    const status = ["completed", "in_progress", "pending"];
    ctx.appendEntry({
      role: "plan",
      content: { steps: steps.map((text, at) => ({ text, status: status[at] })) },
    });
    say("", { id: "3", name: "Edit", input: EDIT });
    result("3", "edited");
    const todos = [
      { text: "publish the fix", status: "in_progress" },
      { text: "tell the others", status: "open" },
    ];
    say("", { id: "5", name: "todo", input: { todos } });
    result("5", "The list has 2 steps, 2 of them open.");
    const push = { command: "git push --force origin main", description: "Publish the fix" };
    const { approved, input, reason } = await ctx.requestInput({
      prompt: "Allow Bash: git push --force origin main?",
      details: { tool: "Bash", input: push, folder: "/srv/app", takesInput: true },
    });
    say("", { id: "4", name: "Bash", input: input ?? push });
    result("4", approved ? "exit code 0\nstdout:\npushed" : `not allowed: ${reason ?? ""}`, !approved);
    await think();
    say(FINAL);
    return FINAL;
  },
});

/** It fails with a cause below the error, a code and an advice. */
export const faulty = defineAgent({
  name: "faulty",
  input: z.object({ path: z.string() }),
  async run(ctx) {
    await ctx.run("prepare", () => "ready");
    await ctx.run("deploy", (): string => {
      const cause = Object.assign(new Error(`connect ECONNREFUSED 127.0.0.1:5432 ${HOSTILE}`), {
        code: "ECONNREFUSED",
      });
      throw Object.assign(new Error(`could not deploy ${ctx.input.path}`, { cause }), {
        code: "invalid_argument",
        fix: "start the database, and try again",
      });
    });
  },
});

/** A child that waits until it hears `on`. */
const waiter = defineAgent({
  name: "waiter",
  input: z.object({ n: z.number() }),
  run: async (ctx) => ctx.waitForSignal("on"),
});

/** It starts children and waits for their ends. */
export const planner = defineAgent({
  name: "planner",
  agents: [waiter],
  async run(ctx) {
    await ctx.run("measure", () => ({ lines: 12 }));
    const children = [1, 2].map((n) => ctx.spawnAgent(local(waiter), { n }));
    return ctx.all(children.map((child) => ctx.waitForChild(child)));
  },
});

const HALVES = ["The first half of **the answer**, ", `and the second. ${HOSTILE}`] as const;

/** Stands for a call of a model whose text comes in two parts. Each waits for its gate, and so does the end. */
const write = defineTask({
  name: "write",
  run: async (_: null, task) => {
    for (const [at, half] of HALVES.entries()) {
      task.streamToken(half);
      while (!existsSync(`open-${at + 1}`)) await sleep(POLL_MS, undefined, { signal: task.signal });
    }
    return HALVES.join("");
  },
});

/** Its text comes while it is written. */
export const writer = defineAgent({
  name: "writer",
  tasks: [write],
  async run(ctx) {
    ctx.appendEntry({ role: "user", content: "Write the answer" });
    const text = await ctx.scheduleTask(write, null);
    ctx.appendEntry({ role: "assistant", content: text });
    return text;
  },
});

const LINE = "a line of a long log, as it was written\n";

/** Its result and its output have as many characters as it is told. */
export const lengthy = defineAgent({
  name: "lengthy",
  input: z.object({ chars: z.number() }),
  run: async (ctx) => {
    const text = await ctx.run("read", () => LINE.repeat(Math.ceil(ctx.input.chars / LINE.length)));
    const call = { id: "1", name: "Bash", input: { command: "cat log" } };
    ctx.appendEntry({ role: "assistant", content: { text: "", toolCalls: [call] } });
    ctx.appendEntry({ role: "tool", content: { toolCallId: "1", text } });
    return text;
  },
});
