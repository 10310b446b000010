import { setTimeout as delay } from "node:timers/promises";
import { defineAgent, defineTask, type TaskContext } from "holdfast";

interface Draft {
  readonly section: string;
  /** The person's notes since the last draft. */
  readonly notes: readonly string[];
  readonly thinkMs: number;
}

/** Stands for a model call: it takes a while, and stops when it is no longer wanted. */
const write = defineTask({
  name: "write",
  run: async ({ section, notes, thinkMs }: Draft, task: TaskContext) => {
    await delay(notes.length === 0 ? thinkMs : 0, undefined, { signal: task.signal });
    return notes.length === 0 ? `All about ${section}.` : `${section}, ${notes.join(", ")}.`;
  },
});

export default defineAgent({
  name: "report",
  tasks: [write],
  async run(ctx, input: { readonly topic: string; readonly thinkMs?: number }) {
    const sections = ["history", "present"].map((part) => `the ${part} of ${input.topic}`);
    const plan = await ctx.requestInput({ prompt: `Write about ${input.topic}?`, details: sections });
    if (!plan.approved) return { refused: plan.reason ?? "not approved" };

    const text: string[] = [];
    for (const section of sections) {
      ctx.reportProgress({ done: text.length, of: sections.length, now: section });
      text.push(await draft(section));
    }
    return { text };

    /** A word of the person while the model works withdraws the call, and begins it again with that word. */
    async function draft(section: string): Promise<string> {
      const notes: string[] = [];
      for (;;) {
        const task = ctx.scheduleTask(write, { section, notes: [...notes], thinkMs: input.thinkMs ?? 3_000 });
        const { key, value } = await ctx.select({ written: task, steered: ctx.signalReady("steer") });
        if (key === "written") return value;
        notes.push(ctx.takeSignal<string>("steer") ?? "");
      }
    }
  },
});
