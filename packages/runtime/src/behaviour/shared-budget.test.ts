// One budget for several sessions, as their agents see it: every session finds what the others have left.

import { storageWith, turns, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defineAgent, defineTask, local } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(): { runtime: Runtime; clock: TestClock } {
  const clock = new TestClock();
  const runtime = createRuntime({ storage: new MemoryStorage(), clock, development: false });
  opened.push(runtime);
  return { runtime, clock };
}

/** Spends 100 tokens as many times as its input says. */
function spenders() {
  const spent: number[] = [];
  const call = defineTask({
    name: "call",
    cost: () => ({ maxTokens: 100 }),
    run(n: number, task) {
      spent.push(n);
      task.reportUsage({ model: "m", inputTokens: 90, outputTokens: 10 });
      return n;
    },
  });
  const spender = defineAgent({
    name: "spender",
    tasks: [call],
    async run(ctx, times: number) {
      for (let n = 0; n < times; n++) await ctx.scheduleTask(call, n);
      return times;
    },
  });
  return { call, spender, spent };
}

describe("a fork of a session that others pay for", () => {
  const ttlMs = 60_000;
  test.each([
    ["is allowed what the one above it was, anew", { maxTokens: 300, ttlMs }, undefined, 300],
    ["is allowed what it was itself", { maxTokens: 300, ttlMs }, { maxTokens: 200 }, 200],
  ])("%s", async (_how, above, own, limit) => {
    const { runtime, clock } = open();
    const { spender, spent } = spenders();
    const agent = defineAgent({
      name: "parent",
      agents: [spender],
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(spender), 2, own && { budget: own })),
    });
    const handle = await runtime.start(agent, undefined, { budget: above });
    expect(await handle.result()).toBe(2);
    const fork = await runtime.fork(`${handle.sessionId}-0`, { at: 0, input: 50 });
    expect(await fork.settled()).toMatchObject({ status: "paused", fault: { code: "budget_exceeded" } });
    expect(spent).toHaveLength(2 + limit / 100);
    const row = await fork.session();
    expect(row).toMatchObject({ payers: [fork.sessionId], account: { limits: { maxTokens: limit } } });
    expect(row.deadlineAt).toBe(own === undefined ? clock.now() + ttlMs : undefined);
  });

  test("a fork of a successor gets the budget of its predecessor", async () => {
    const { runtime } = open();
    const { spender, spent } = spenders();
    const agent = defineAgent({
      name: "first",
      agents: [spender],
      run: async (ctx) => ctx.handoffToAgent(local(spender), 2, { completion: "immediate" }),
    });
    const { sessionId } = await runtime.start(agent, undefined, { budget: { maxTokens: 300 } });
    const successor = runtime.handle(`${sessionId}-0`);
    await until(
      async () => (await successor.session().catch(() => undefined))?.status === "completed",
      "it has ended",
    );
    const fork = await runtime.fork(successor.sessionId, { at: 0, input: 50 });
    expect(await fork.settled()).toMatchObject({ status: "paused" });
    expect(spent).toHaveLength(5);
  });
});

describe("the remaining budget", () => {
  test("the remaining budget is up to date for an agent that receives its child's end", async () => {
    const { runtime } = open();
    const { spender } = spenders();
    const agent = defineAgent({
      name: "parent",
      agents: [spender],
      async run(ctx) {
        const before = ctx.remainingBudget().tokens;
        await ctx.waitForChild(ctx.spawnAgent(local(spender), 6));
        return [before, ctx.remainingBudget().tokens];
      },
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 1_000 } });
    expect(await handle.result()).toEqual([1_000, 400]);
  });

  test("the remaining budget after a raise is known to an agent that waited meanwhile", async () => {
    const { runtime } = open();
    const agent = defineAgent({
      name: "waiting",
      async run(ctx) {
        await ctx.waitForSignal("go");
        return ctx.remainingBudget().tokens;
      },
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 1_000 } });
    await runtime.setBudget(handle.sessionId, { maxTokens: 5_000 });
    await handle.signal("go");
    expect(await handle.result()).toBe(5_000);
  });
});

describe("a successor", () => {
  function handingOver(times: number, options: { readonly budget?: { readonly maxTokens: number } } = {}) {
    const { spender, spent } = spenders();
    const agent = defineAgent({
      name: "first",
      agents: [spender],
      async run(ctx) {
        await ctx.waitForChild(ctx.spawnAgent(local(spender), 6));
        return ctx.handoffToAgent(local(spender), times, { ...options, completion: "immediate" });
      },
    });
    return { agent, spent };
  }

  test.each([{}, { budget: { maxTokens: 100_000 } }])(
    "a successor spends only the budget that its predecessor left (%o)",
    async (options) => {
      const { runtime } = open();
      const { agent, spent } = handingOver(100, options);
      const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 1_000 } });
      const { handedOffTo } = (await handle.result()) as unknown as { handedOffTo: string };
      const successor = runtime.handle(handedOffTo);
      await until(async () => (await successor.session()).status === "paused", "it is paused");
      expect(spent).toHaveLength(10);
      expect((await handle.session()).account?.spent.tokens).toBe(1_000);

      expect(await runtime.setBudget(handle.sessionId, { maxTokens: 1_200 })).toBe("completed");
      await until(() => spent.length === 12, "it has gone on");
      await turns(20);
      expect(spent).toHaveLength(12);
    },
  );

  test("a successor is cancelled by the budget and the deadline of its predecessor", async () => {
    const { runtime, clock } = open();
    const { agent } = handingOver(100);
    const budget = { maxTokens: 1_000, onExhausted: "cancel" } as const;
    const { handedOffTo } = (await (
      await runtime.start(agent, undefined, { budget })
    ).result()) as unknown as {
      handedOffTo: string;
    };
    const successor = runtime.handle(handedOffTo);
    await until(async () => (await successor.session()).endedAt !== undefined, "it has ended");
    expect(await successor.session()).toMatchObject({ cancel: { cause: "budget_exceeded" } });

    const waiter = defineAgent({ name: "waiter", run: async (ctx) => ctx.waitForSignal("never") });
    const first = defineAgent({
      name: "giver",
      agents: [waiter],
      run: async (ctx) =>
        ctx.handoffToAgent(local(waiter), undefined, { completion: "immediate", timeoutMs: 90_000 }),
    });
    const late = (await (await runtime.start(first, undefined, { timeoutMs: 5_000 })).result()) as {
      handedOffTo: string;
    };
    await clock.advance(6_000);
    expect(await runtime.handle(late.handedOffTo).session()).toMatchObject({ cancel: { cause: "deadline" } });
  });
});

// Each settlement once woke every session that waited for room, so all of them together cost the square of
// their number.
test(
  "the reservations of sessions that wait for one budget are in proportion to the sessions",
  ofCampaign,
  async () => {
    const reservationsOf = async (sessions: number): Promise<number> => {
      const memory = new MemoryStorage();
      let asked = 0;
      const storage = storageWith(memory, {
        async commit(changes, now) {
          for (const change of changes)
            if (change.type === "commit_batch")
              asked += (change.charges ?? []).filter(({ type }) => type === "reserve").length;
          return memory.commit(changes, now);
        },
      });
      const work = defineTask({
        name: "work",
        cost: () => ({ maxTokens: 100 }),
        async run(_: number, task) {
          await turns(3);
          task.reportUsage({ model: "m", inputTokens: 1, outputTokens: 0 });
        },
      });
      const child = defineAgent({
        name: "child",
        tasks: [work],
        run: async (ctx) => ctx.scheduleTask(work, 1),
      });
      const parent = defineAgent({
        name: "parent",
        agents: [child],
        async run(ctx) {
          const children = Array.from({ length: sessions }, () => ctx.spawnAgent(local(child)));
          for (const each of children) await ctx.waitForChild(each);
        },
      });
      const runtime = createRuntime({ storage, clock: new TestClock(), development: false });
      opened.push(runtime);
      // One task at a time: its worst case is all that is left.
      await (await runtime.start(parent, undefined, { budget: { maxTokens: 100 + sessions } })).result();
      return asked;
    };
    const [few, many] = [await reservationsOf(40), await reservationsOf(160)];
    expect(many / few).toBeLessThan(8); // Its square would be 16 times as many.
  },
);
