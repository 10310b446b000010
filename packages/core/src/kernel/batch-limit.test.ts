// L5: the limit for what an agent records, stores or sends at once. All asks of one slice are in one batch.

import { KernelStand, type StandAgent } from "@holdfast/testkit/kernel-stand";
import { expect, test } from "vitest";

const MAX = 1_000;

/** A text whose JSON has this length. */
const text = (length: number) => "x".repeat(length - 2);

const kinds: { readonly [what: string]: (length: number) => StandAgent } = {
  "a task's input": (length) => async (ctx) => {
    await ctx.scheduleTask("work", text(length));
  },
  "inputs of several tasks": (length) => async (ctx) => {
    await Promise.all([300, 300, length - 600].map((part) => ctx.scheduleTask("work", text(part))));
  },
  "an entry": (length) => async (ctx) => {
    ctx.appendEntry({ role: "user", content: text(length) });
    await ctx.waitForSignal("never");
  },
  "a child's input": (length) => async (ctx) => {
    ctx.spawnAgent({ type: "local", name: "agent" }, text(length));
    await ctx.waitForSignal("never");
  },
  "what a child is told": (length) => async (ctx) => {
    const child = ctx.spawnAgent({ type: "local", name: "agent" });
    ctx.signalChild(child, "go", text(length));
    await ctx.waitForSignal("never");
  },
  "progress, of which the last counts": (length) => async (ctx) => {
    ctx.reportProgress(text(900));
    ctx.reportProgress(text(length));
    await ctx.scheduleTask("work");
  },
  "a checkpoint's state": (length) => async (ctx) => {
    await ctx.checkpoint(text(length));
  },
  "the output": (length) => async () => text(length),
};

for (const [what, agent] of Object.entries(kinds)) {
  test(`L5: a slice that asks for more than the limit is refused: ${what}`, async () => {
    const standOf = (length: number) =>
      new KernelStand(agent(length), { limits: { batchChars: MAX }, agents: ["agent"] });
    for (const length of [MAX - 1, MAX]) {
      const within = standOf(length);
      expect(await within.start()).not.toMatchObject({ type: "faulted" });
      expect(within.seal().records.length).toBeGreaterThan(0);
    }
    const over = standOf(MAX + 1);
    expect(await over.start()).toMatchObject({
      type: "faulted",
      fault: { code: "limit_exceeded", message: 'the agent reached the limit "batchChars" (1000)' },
    });
    expect(() => over.seal()).toThrow('"batchChars"');
  });
}

test("L5: an agent that swallows the error cannot continue to ask", async () => {
  let asked = 0;
  const stubborn = new KernelStand(
    async (ctx) => {
      for (let i = 0; i < 1_000; i++) {
        try {
          void ctx.scheduleTask("work", text(100));
          asked++;
        } catch {}
      }
    },
    { limits: { batchChars: MAX } },
  );
  expect(await stubborn.start()).toMatchObject({ type: "faulted", fault: { code: "limit_exceeded" } });
  expect(asked).toBe(10);
});

const echoing: StandAgent = async (ctx) => {
  const output = (await ctx.scheduleTask("work")) as string;
  return ctx.scheduleTask("work", output);
};

test("L5: delivered outcomes do not count as asked, and each slice begins at zero", async () => {
  const stand = new KernelStand(echoing, { limits: { batchChars: MAX } });
  await stand.start();
  stand.seal();
  expect((await stand.completeTask(0, text(MAX))).type).toBe("open");
  expect(stand.kernel.segment.chars).toBe(2 * MAX);
  stand.seal();
  expect(stand.kernel.segment.chars).toBe(0);
});

test("L5: records replay under any limit", async () => {
  const stand = new KernelStand(echoing);
  await stand.start();
  stand.seal();
  await stand.completeTask(0, text(MAX));
  stand.seal();
  const again = new KernelStand(echoing, { recorded: stand.journal, limits: { batchChars: 1 } });
  expect(await again.replay()).toEqual({ type: "open" });
});
