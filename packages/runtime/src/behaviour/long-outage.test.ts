// Storage is away for longer than a lease, and sessions wake up meanwhile.

import { UnavailableError, type AgentStorage } from "@holdfast/core";
import { countingRandom, journalOf, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { expect, onTestFinished, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import type { RuntimeOptions } from "../api/runtime-api.ts";
import { createRuntime } from "../runtime.ts";

const LEASE_MS = 15_000;

/** One process, whose storage can be away. */
function open(agents: readonly Agent[], options: Pick<RuntimeOptions, "concurrency"> = {}) {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  let isAway = false;
  let losesAnswers = false;
  /** As in a fleet, whose coordinator first takes the commits that come back, and gives claims later. */
  let givesClaims = true;
  let hidesConversations = false;
  let held = Promise.resolve();
  const asked = <T>(ask: () => Promise<T>): Promise<T> =>
    isAway ? Promise.reject(new UnavailableError("storage_unavailable", "away")) : ask();
  const reached: AgentStorage = storageWith(storage, {
    commit: async (changes, now) => {
      await held;
      if (losesAnswers) await storage.commit(changes, now);
      return asked(() => storage.commit(changes, now));
    },
    claim: async (claim) =>
      asked(() => {
        if (!givesClaims) throw new UnavailableError("storage_unavailable", "no claims yet");
        return storage.claim(claim);
      }),
    load: (sessionId) => asked(() => storage.load(sessionId)),
    conversation: (sessionId, leaf) =>
      asked(() => {
        if (hidesConversations) throw new UnavailableError("storage_unavailable", "no conversations yet");
        return storage.conversation(sessionId, leaf);
      }),
    arrivals: (sessionId, after) => asked(() => storage.arrivals(sessionId, after)),
    due: (query) => asked(() => storage.due(query)),
    renew: (renewal) => asked(() => storage.renew(renewal)),
  });
  const runtime = createRuntime({
    ...options,
    storage: reached,
    agents,
    clock,
    random: countingRandom(),
    leaseMs: LEASE_MS,
  });
  onTestFinished(() => runtime.close());
  /** @param how whether commits still arrive, and only their answers are lost. */
  const away = async (ms: number, how: { readonly losesAnswers?: boolean } = {}): Promise<void> => {
    isAway = true;
    losesAnswers = how.losesAnswers === true;
    givesClaims = false;
    await clock.advance(ms);
    isAway = false;
    losesAnswers = false;
    await clock.advance(10_000);
    givesClaims = true;
  };
  /** Commits wait from now on. @returns what lets them go on. */
  const hold = (): (() => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  };
  const hideConversations = (hides: boolean): void => void (hidesConversations = hides);
  return { storage, clock, runtime, away, hold, hideConversations };
}

test.each([
  ["once", 1],
  ["keyed", 1],
] as const)(
  "O16: a %s task that was asked for in a long outage has lost no attempt",
  async (effect, attempt) => {
    const attempts: number[] = [];
    const agent = defineAgent({
      name: "agent",
      run: async (ctx) => {
        await ctx.sleep(4_000);
        return ctx.run("pay", (task) => attempts.push(task.attempt), { effect });
      },
    });
    const { storage, clock, runtime, away } = open([agent]);
    await runtime.start(agent, undefined, { sessionId: "s" });
    await clock.advance(1_000);
    await away(22_000);
    expect((await journalOf(storage, "s")).map(({ type }) => type)).not.toContain("schedule_task");
    await clock.advance(60_000);
    expect(await storage.reader.session("s")).toMatchObject({ status: "completed" });
    expect(attempts).toEqual([attempt]);
    expect((await journalOf(storage, "s")).filter(({ type }) => type === "attempt_lost")).toEqual([]);
  },
);

test("O16: a session that was started in a long outage has lost no attempt", async () => {
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "agent",
    run: (ctx) => ctx.run("pay", (task) => attempts.push(task.attempt), { effect: "once" }),
  });
  const { storage, clock, runtime, away } = open([agent]);
  const started = runtime.start(agent, undefined, { sessionId: "s" }).catch((error: unknown) => error);
  await away(22_000);
  await clock.advance(60_000);
  expect(await started).toBeDefined();
  expect(await storage.reader.session("s")).toMatchObject({ status: "completed" });
  expect(attempts).toEqual([1]);
});

test.each(["once", "keyed"] as const)(
  "O16: a %s task whose request was stored without an answer in a long outage has lost no attempt",
  async (effect) => {
    const attempts: number[] = [];
    const agent = defineAgent({
      name: "agent",
      run: async (ctx) => {
        await ctx.sleep(4_000);
        return ctx.run("pay", (task) => attempts.push(task.attempt), { effect });
      },
    });
    const { storage, clock, runtime, away } = open([agent]);
    await runtime.start(agent, undefined, { sessionId: "s" });
    await clock.advance(1_000);
    await away(22_000, { losesAnswers: true });
    expect((await journalOf(storage, "s")).map(({ type }) => type)).toContain("schedule_task");
    await clock.advance(60_000);
    expect(await storage.reader.session("s")).toMatchObject({ status: "completed" });
    expect(attempts).toEqual([1]);
    expect((await journalOf(storage, "s")).filter(({ type }) => type === "attempt_lost")).toEqual([]);
  },
);

test("O16: several sessions whose requests were stored without an answer have lost no attempt", async () => {
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "agent",
    run: async (ctx) => {
      await ctx.sleep(4_000);
      return ctx.run("pay", (task) => attempts.push(task.attempt), { effect: "once" });
    },
  });
  const { storage, clock, runtime, away } = open([agent]);
  const sessionIds = ["s1", "s2", "s3"];
  for (const sessionId of sessionIds) await runtime.start(agent, undefined, { sessionId });
  await clock.advance(1_000);
  await away(22_000, { losesAnswers: true });
  await clock.advance(60_000);
  for (const sessionId of sessionIds)
    expect(await storage.reader.session(sessionId)).toMatchObject({ status: "completed" });
  expect(attempts).toEqual([1, 1, 1]);
});

test("O16: a paid task whose request was stored without an answer has lost no attempt", async () => {
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "agent",
    run: async (ctx) => {
      await ctx.sleep(4_000);
      return ctx.run("pay", (task) => attempts.push(task.attempt), { effect: "once" });
    },
  });
  const { storage, clock, runtime, away } = open([agent]);
  await runtime.start(agent, undefined, { sessionId: "s", budget: { maxSteps: 1 } });
  await clock.advance(1_000);
  await away(22_000, { losesAnswers: true });
  await clock.advance(60_000);
  expect(await storage.reader.session("s")).toMatchObject({
    status: "completed",
    account: { spent: { steps: 1 }, reserved: { steps: 0 } },
  });
  expect(attempts).toEqual([1]);
});

test("O4: a paid task begins when a commit has confirmed the claim", async () => {
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "agent",
    run: async (ctx) => {
      await ctx.sleep(4_000);
      return ctx.run("pay", (task) => attempts.push(task.attempt), { effect: "once" });
    },
  });
  const { storage, clock, runtime, away, hold } = open([agent]);
  await runtime.start(agent, undefined, { sessionId: "s", budget: { maxSteps: 1 } });
  await clock.advance(1_000);
  await away(22_000, { losesAnswers: true });
  const release = hold();
  await clock.advance(5_000);
  const begun = [...attempts];
  release();
  await clock.advance(60_000);
  expect([begun, attempts]).toEqual([[], [1]]);
  expect(await storage.reader.session("s")).toMatchObject({ status: "completed" });
});

test.each([false, true])(
  "O16: a retry that was due in a long outage has lost no attempt, with the failure %s",
  async (losesAnswers) => {
    const attempts: number[] = [];
    const agent = defineAgent({
      name: "agent",
      run: (ctx) =>
        ctx.run(
          "pay",
          async (task) => {
            attempts.push(task.attempt);
            await new Promise<void>((resolve) => void clock.setTimer(resolve, 4_000));
            if (task.attempt === 1) throw new Error("no connection");
            return "paid";
          },
          {
            effect: "once",
            retry: { maxAttempts: 2, initialDelayMs: losesAnswers ? 1_000 : 30_000, maxDelayMs: 30_000 },
          },
        ),
    });
    const { storage, clock, runtime, away } = open([agent]);
    await runtime.start(agent, undefined, { sessionId: "s" });
    await clock.advance(losesAnswers ? 2_000 : 6_000);
    await away(40_000, { losesAnswers });
    await clock.advance(60_000);
    expect(await storage.reader.session("s")).toMatchObject({ status: "completed", output: '"paid"' });
    expect(attempts).toEqual([1, 2]);
  },
);

test("O16: a task that waited for a slot when its session was abandoned has lost no attempt", async () => {
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "agent",
    run: (ctx) =>
      Promise.all([
        ctx.run("slow", async ({ attempt }) => {
          if (attempt === 1) await new Promise<void>((resolve) => void clock.setTimer(resolve, 60_000));
          return "done";
        }),
        ctx.run("pay", (task) => attempts.push(task.attempt), { effect: "once" }),
      ]),
  });
  const { storage, clock, runtime, away } = open([agent], { concurrency: 1 });
  await runtime.start(agent, undefined, { sessionId: "s" });
  await clock.advance(1_000);
  await away(22_000);
  await clock.advance(60_000);
  expect(await storage.reader.session("s")).toMatchObject({ status: "completed" });
  expect(attempts).toEqual([1]);
});

test("O16: an attempt that timed out before its handler was called has lost nothing", async () => {
  const attempts: number[] = [];
  const pay = defineTask({
    name: "pay",
    timeoutMs: 5_000,
    effect: "once",
    retry: { maxAttempts: 3, initialDelayMs: 30_000, maxDelayMs: 30_000 },
    run: (_: unknown, { attempt }) => attempts.push(attempt),
  });
  const agent = defineAgent({
    name: "agent",
    tasks: [pay],
    run: async (ctx) => {
      ctx.appendEntry({ role: "user", content: "pay" });
      await Promise.all([ctx.scheduleTask(pay, ctx.conversation()), ctx.sleep(3_000)]);
    },
  });
  const { storage, clock, runtime, away, hideConversations } = open([agent]);
  hideConversations(true);
  await runtime.start(agent, undefined, { sessionId: "s" });
  await clock.advance(1_000);
  await away(22_000);
  hideConversations(false);
  await clock.advance(60_000);
  expect(await storage.reader.session("s")).toMatchObject({ status: "completed" });
  expect((await journalOf(storage, "s")).filter(({ type }) => type === "attempt_lost")).toEqual([]);
  expect(attempts).toHaveLength(1);
});

test("O16: a task that another process has held since counts as lost, as it may have begun there", async () => {
  const attempts: number[] = [];
  const agent = defineAgent({
    name: "agent",
    run: async (ctx) => {
      await ctx.sleep(4_000);
      return ctx.run("pay", (task) => attempts.push(task.attempt), { effect: "once" });
    },
  });
  const { storage, clock, runtime, away } = open([agent]);
  await runtime.start(agent, undefined, { sessionId: "s" });
  await clock.advance(1_000);
  await away(22_000, { losesAnswers: true });
  const now = clock.now();
  const claim = await storage.claim({ sessionId: "s", owner: "other", now, leaseMs: 1_000 });
  if (claim.status !== "claimed") throw new Error("the claim is refused");
  await storage.commit([{ type: "release_claim", sessionId: "s", token: claim.token }], now);
  await runtime.recover();
  await clock.advance(60_000);
  expect(await storage.reader.session("s")).toMatchObject({ status: "failed" });
  expect(attempts).toEqual([]);
});

test("K11: a minimal session that becomes persistent in a long outage stores no outcomes without their tasks", async () => {
  const child = defineAgent({ name: "child", run: async () => "heard" });
  const agent = defineAgent({
    name: "agent",
    agents: [child],
    run: async (ctx) => {
      await ctx.run("first", () => 1);
      await ctx.sleep(4_000);
      return ctx.waitForChild(ctx.spawnAgent(local(child)));
    },
  });
  const { storage, clock, runtime, away } = open([agent]);
  await runtime.start(agent, undefined, { sessionId: "s", persistence: "minimal" });
  await clock.advance(1_000);
  await away(22_000);
  await clock.advance(60_000);
  expect(await storage.reader.session("s")).toMatchObject({ status: "completed", output: '"heard"' });
  expect((await journalOf(storage, "s"))[0]).toMatchObject({ type: "started" });
});
