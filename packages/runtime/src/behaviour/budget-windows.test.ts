// Budgets per window as an author and a person see them. A session that is paused for a window that rolls
// continues without a person. A session that is paused for a run or a turn waits for somebody.

import { isLastEvent, type Budget, type ChildEvent } from "@holdfast/core";
import { TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defineAgent, defineTask, local, type TaskContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = (options.clock ?? new TestClock()) as TestClock;
  const runtime = createRuntime({ ...options, storage, clock, development: false });
  opened.push(runtime);
  return { runtime, storage, clock };
}

/** A call that may use 100 tokens, and does. */
function calls() {
  const ran: number[] = [];
  const call = defineTask({
    name: "call",
    cost: () => ({ maxTokens: 100 }),
    run: (n: number, task: TaskContext) => {
      ran.push(n);
      task.reportUsage({ model: "m", inputTokens: 90, outputTokens: 10 });
      return n;
    },
  });
  return { call, ran };
}

function inSequence(count: number) {
  const { call, ran } = calls();
  const agent = defineAgent({
    name: "sequence",
    tasks: [call],
    run: async (ctx) => {
      for (let n = 0; n < count; n++) await ctx.scheduleTask(call, n);
      return "done";
    },
  });
  return { agent, call, ran };
}

/** A daemon: for each prompt two calls, and what it was told is left before them. */
function daemon() {
  const { call, ran } = calls();
  const left: unknown[] = [];
  const agent = defineAgent({
    name: "daemon",
    tasks: [call],
    run: async (ctx) => {
      for (let prompt = 0; ; prompt++) {
        const payload = await ctx.waitForSignal("prompt");
        left[prompt] = ctx.remainingBudget().tokens; // Again on replay.
        if (payload === "stop") return ran.length;
        for (let n = 0; n < (payload as number); n++) await ctx.scheduleTask(call, n);
      }
    },
  });
  return { agent, ran, left };
}

const perDay: Budget = { windows: [{ per: "day", maxTokens: 250 }] };
const paused = (runtime: Runtime, sessionId: string) =>
  until(async () => (await runtime.handle(sessionId).session()).status === "paused", "it pauses");

describe.each([
  ["that adopts sessions", {}],
  ["that runs only its own sessions", { adopt: false }],
] as const)("a runtime %s", (_, options) => {
  test(
    "a session that is paused for a day continues on the next day, as often as it must",
    ofCampaign,
    async () => {
      const { runtime, clock } = open(options);
      const { agent, ran } = inSequence(5);
      const handle = await runtime.start(agent, undefined, { sessionId: "s", budget: perDay });
      let result: unknown;
      void handle.result().then((output) => (result = output));
      await paused(runtime, "s");
      const begunAt = (await handle.session()).createdAt;
      expect(ran).toEqual([0, 1]);
      const { exhausted, error } = await handle.session();
      expect(exhausted).toMatchObject({ per: "day", used: 200, max: 250, until: begunAt + DAY });
      expect(error?.message).toContain("maxTokens is 250 per day, and 200 are spent");
      await clock.advance(DAY - 1);
      expect([ran.length, result]).toEqual([2, undefined]);
      await clock.advance(1);
      await until(async () => ran.length === 4, "the second day");
      await paused(runtime, "s");
      await clock.advance(DAY);
      await until(async () => result === "done", "it ends");
      expect(ran).toEqual([0, 1, 2, 3, 4]);
      expect((await handle.session()).account?.spent.tokens).toBe(500);
    },
  );
});

test("a result that is asked for while the session is paused comes on the next day", ofCampaign, async () => {
  const first = open();
  const { agent } = inSequence(3);
  await first.runtime.start(agent, undefined, { sessionId: "s", budget: perDay });
  await paused(first.runtime, "s");
  vanishRuntime(first.runtime);
  const { runtime, clock } = open({ storage: first.storage, clock: first.clock, agents: [agent] });
  const result = runtime.handle("s").result();
  await clock.advance(DAY);
  expect(await result).toBe("done");
});

test("another process continues it when the first is gone", async () => {
  const first = open();
  const { agent, ran } = inSequence(3);
  await first.runtime.start(agent, undefined, { sessionId: "s", budget: perDay });
  await paused(first.runtime, "s");
  vanishRuntime(first.runtime);
  await first.clock.advance(3 * DAY);
  const second = open({ storage: first.storage, clock: first.clock, agents: [agent] });
  await second.runtime.recover();
  expect(await second.runtime.handle("s").result()).toBe("done");
  expect(ran).toEqual([0, 1, 2]);
});

test("a grant or a raise continues it at once", async () => {
  const { runtime } = open();
  const { agent, ran } = inSequence(6);
  const handle = await runtime.start(agent, undefined, { sessionId: "s", budget: perDay });
  await paused(runtime, "s");
  expect(await handle.grantWindow("day")).toBe("paused");
  await until(async () => ran.length === 4, "the granted window is used");
  await paused(runtime, "s");
  await runtime.setBudget("s", { windows: [{ per: "day", maxTokens: 400 }] });
  expect(await handle.result()).toBe("done");
});

test("grantWindow refuses what is no window, and what this budget has none of", async () => {
  const { runtime } = open();
  await runtime.start(inSequence(1).agent, undefined, { sessionId: "s", budget: perDay });
  await expect(runtime.grantWindow("s", "week" as "day")).rejects.toMatchObject({ code: "usage" });
  await expect(runtime.grantWindow("s", "hour")).rejects.toMatchObject({
    message: expect.stringContaining("has no limit per hour") as string,
  });
});

test("a person who pauses such a session continues it, nothing else", ofCampaign, async () => {
  const { runtime, clock } = open();
  const { agent, ran } = inSequence(3);
  const handle = await runtime.start(agent, undefined, { sessionId: "s", budget: perDay });
  await paused(runtime, "s");
  await handle.pause();
  expect(await handle.settled()).toMatchObject({ status: "paused", fault: { code: "budget_exceeded" } });
  await clock.advance(3 * DAY);
  expect(ran).toHaveLength(2);
  await handle.unpause();
  expect(await handle.result()).toBe("done");
});

test(
  "children draw from the window of the payer, and their parent is told when they continue",
  ofCampaign,
  async () => {
    const { runtime, clock } = open();
    const { agent: child } = inSequence(2);
    const events: ChildEvent[] = [];
    const parent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        const children = [0, 1].map(() => ctx.spawnAgent(local(child), undefined));
        for (const one of children)
          do events.push(await ctx.waitForChildEvent(one));
          while (!isLastEvent(events.at(-1)!));
        return children.length;
      },
    });
    const handle = await runtime.start(parent, undefined, { sessionId: "p", budget: perDay });
    await until(async () => events.length > 0, "a child is paused");
    const { createdAt } = await handle.session();
    expect(events[0]).toMatchObject({ type: "budget_exceeded", per: "day", until: createdAt + DAY });
    await clock.advance(DAY);
    expect(await handle.result()).toBe(2);
    expect((await handle.session()).account?.spent.tokens).toBe(400);
  },
);

describe("runs and turns", () => {
  test("each run of a daemon has its own window, also after many, and a person continues an exhausted one", async () => {
    const { runtime, clock } = open();
    const { agent, ran, left } = daemon();
    const budget: Budget = { windows: [{ per: "run", maxTokens: 250 }] };
    const handle = await runtime.start(agent, undefined, { sessionId: "s", budget });
    for (let prompt = 1; prompt <= 5; prompt++) {
      await handle.signal("prompt", 2);
      await until(async () => ran.length === 2 * prompt, "two calls");
      await until(async () => (await handle.session()).status === "waiting", "it waits");
    }
    await handle.signal("prompt", 3);
    expect(await handle.settled()).toMatchObject({ status: "paused" });
    expect((await handle.session()).exhausted).toMatchObject({ per: "run", used: 200 });
    expect((await handle.session()).exhausted).not.toHaveProperty("until");
    await clock.advance(100 * DAY);
    expect(ran).toHaveLength(12);
    await handle.grantWindow("run");
    await until(async () => ran.length === 13, "the third call");
    await handle.signal("prompt", "stop");
    expect(await handle.result()).toBe(13);
    expect(left).toEqual(Array.from({ length: 7 }, () => 250));
  });

  test("a process that ends in a run does not end the run", async () => {
    const first = open();
    const { agent, ran } = inSequence(3);
    const budget: Budget = { windows: [{ per: "run", maxTokens: 250 }] };
    await first.runtime.start(agent, undefined, { sessionId: "s", budget });
    await until(async () => ran.length === 1, "the first call");
    vanishRuntime(first.runtime);
    const second = open({ storage: first.storage, clock: first.clock, agents: [agent] });
    await second.storage.commit([{ type: "release_claim", sessionId: "s", token: 1 }], second.clock.now());
    await second.runtime.recover();
    await paused(second.runtime, "s");
    const { exhausted, account } = await second.runtime.handle("s").session();
    expect(exhausted).toMatchObject({ per: "run" });
    expect(account?.spent.tokens).toBeLessThanOrEqual(250);
  });

  test("each turn has its own window", async () => {
    const { runtime } = open();
    const { call, ran } = calls();
    const agent = defineAgent({
      name: "turns",
      tasks: [call],
      initial: () => 0,
      turn: async (ctx, n: number) => {
        for (let i = 0; i <= n; i++) await ctx.scheduleTask(call, n);
        return { state: n + 1 };
      },
    });
    const budget: Budget = { windows: [{ per: "turn", maxTokens: 250 }] };
    const handle = await runtime.start(agent, undefined, { sessionId: "s", budget });
    expect(await handle.settled()).toMatchObject({ status: "paused" });
    expect(ran).toEqual([0, 1, 1, 2, 2]);
    expect((await handle.session()).exhausted).toMatchObject({ per: "turn", used: 200, max: 250 });
  });
});

test("a daemon that waits for weeks is told that its window is free", async () => {
  const { runtime, clock } = open({ warmMs: 0 });
  const { agent, left, ran } = daemon();
  const handle = await runtime.start(agent, undefined, { sessionId: "s", budget: perDay });
  await handle.signal("prompt", 2);
  await until(async () => ran.length === 2, "two calls");
  await until(async () => (await handle.session()).status === "waiting", "it waits");
  await clock.advance(14 * DAY);
  await handle.signal("prompt", "stop");
  await handle.result();
  expect(left).toEqual([250, 250]);
});

test("where bounds are strict, a daemon may have a window that rolls in place of a limit for life", async () => {
  const { runtime } = open({ strictBounds: true });
  const agent = defineAgent({
    name: "d",
    initial: () => 0,
    turn: async (ctx) => ({ done: ctx.now() }),
  });
  const windows = (per: "turn" | "month") => ({ budget: { windows: [{ per, maxSteps: 5 }] } });
  await expect(runtime.start(agent, undefined, windows("turn"))).rejects.toMatchObject({ code: "usage" });
  await runtime.start(agent, undefined, windows("month"));
  await turns(1);
});
