// Budgets as a person sees them: no task starts beyond the budget, and a raise resumes the session there.

import { isLastEvent, type Budget, type ChildEvent, type ChildFailedError } from "@holdfast/core";
import { gate, releaseClaim, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type TaskContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}): {
  runtime: Runtime;
  storage: MemoryStorage;
  clock: TestClock;
} {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const runtime = createRuntime({ ...options, storage, clock, development: false });
  opened.push(runtime);
  return { runtime, storage, clock };
}

/** A call that may use 100 tokens and reports its usage, with a count of its runs. */
function calls(used = 100, ready: () => Promise<void> = async () => {}) {
  const ran: number[] = [];
  const call = defineTask({
    name: "call",
    cost: () => ({ maxTokens: 100, maxCostMicroUsd: 1_000 }),
    run: async (n: number, task: TaskContext) => {
      ran.push(n);
      await ready();
      task.reportUsage({ model: "m", inputTokens: used - 1, outputTokens: 1, costMicroUsd: used * 10 });
      return n;
    },
  });
  return { call, ran };
}

function inSequence(count: number, made = calls()) {
  const agent = defineAgent({
    name: "sequence",
    tasks: [made.call],
    run: async (ctx) => {
      const done: number[] = [];
      for (let n = 0; n < count; n++) done.push(await ctx.scheduleTask(made.call, n));
      return done;
    },
  });
  return { ...made, agent };
}

describe("a limit", () => {
  test.each([Number.NaN, Infinity, 0.5, -1_000, undefined as unknown as number])(
    "a limit holds for a task that reports %s: such usage is ignored, and its worst case counts",
    async (inputTokens) => {
      const { runtime, storage } = open();
      const call = defineTask({
        name: "call",
        cost: () => ({ maxTokens: 100 }),
        run: async (_n: number, task: TaskContext) =>
          task.reportUsage({ model: "m", inputTokens, outputTokens: 1 }),
      });
      const { agent } = inSequence(5, { call: call as never, ran: [] });
      const session = await runtime.start(agent, undefined, { budget: { maxTokens: 250 } });
      expect(await session.settled()).toMatchObject({ status: "paused" });
      expect((await session.session()).account).toMatchObject({ spent: { tokens: 200 } });
      const found = (await storage.reader.journal(session.sessionId, 0, 99)).find(
        ({ type }) => type === "warned",
      );
      expect(found?.payload).toContain(`reported inputTokens: ${inputTokens}`);
    },
  );

  test.each<[string, Budget, number]>([
    ["maxTokens", { maxTokens: 250 }, 2],
    ["maxCostMicroUsd", { maxCostMicroUsd: 2_999 }, 2],
    ["maxSteps", { maxSteps: 3 }, 3],
  ])(
    "%s parks before what cannot be paid, and a raise goes on exactly there",
    async (limit, budget, expected) => {
      const { runtime } = open();
      const { agent, ran } = inSequence(4);
      const handle = await runtime.start(agent, undefined, { budget });
      expect(await handle.settled()).toMatchObject({ status: "paused", fault: { code: "budget_exceeded" } });
      expect(ran).toHaveLength(expected);
      expect(await handle.session()).toMatchObject({
        status: "paused",
        pauseReason: "budget_exceeded",
        exhausted: { payer: handle.sessionId, limit },
      });
      await runtime.setBudget(handle.sessionId, {
        maxTokens: 10_000,
        maxCostMicroUsd: 100_000,
        maxSteps: 100,
      });
      await runtime.resume(handle.sessionId);
      expect(await handle.result()).toEqual([0, 1, 2, 3]);
      expect(ran).toEqual([0, 1, 2, 3]);
    },
  );

  test("a limit with onExhausted: cancel ends the session", async () => {
    const { runtime } = open();
    const { agent, ran } = inSequence(4);
    const handle = await runtime.start(agent, undefined, {
      budget: { maxTokens: 150, onExhausted: "cancel" },
    });
    await until(async () => (await handle.session()).status === "cancelled", "it ends");
    expect((await handle.session()).cancel).toMatchObject({ cause: "budget_exceeded" });
    expect(ran).toHaveLength(1);
  });

  test("maxTurns counts checkpoints", async () => {
    const { runtime } = open();
    const agent = defineAgent({
      name: "turns",
      initial: () => 0,
      turn: async (ctx, n: number) => {
        await ctx.run("step", () => 0);
        return n === 5 ? { done: n } : { state: n + 1 };
      },
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTurns: 3 } });
    expect(await handle.settled()).toMatchObject({ status: "paused" });
    expect((await handle.session()).turn).toBe(4); // The turn that could not begin.
    await runtime.setBudget(handle.sessionId, { maxTurns: 4 });
    await runtime.resume(handle.sessionId);
    expect(await handle.settled()).toMatchObject({ status: "paused" });
    expect(await handle.session()).toMatchObject({ turn: 5, account: { spent: { turns: 4 } } });
    await runtime.setBudget(handle.sessionId, { maxTurns: 5 });
    await runtime.resume(handle.sessionId);
    expect(await handle.result()).toBe(5);
  });

  test("maxTokensPerCall refuses the call, and the agent may go on with less", async () => {
    const { runtime } = open();
    const { agent, ran } = inSequence(1);
    const handle = await runtime.start(agent, undefined, { budget: { maxTokensPerCall: 99 } });
    expect(await handle.settled()).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("may use 100 tokens in one call") },
    });
    expect(ran).toEqual([]);
  });

  test("a model without a price is an error before the call, when costs are limited", async () => {
    const { runtime } = open({ prices: ({ model }) => (model === "known" ? 5 : undefined) });
    const ran: string[] = [];
    const call = defineTask({
      name: "call",
      cost: (model: string) => ({ model, maxTokens: 10 }),
      run: (model) => void ran.push(model),
    });
    const agent = defineAgent({
      name: "models",
      tasks: [call],
      run: async (ctx) => {
        await ctx.scheduleTask(call, "known");
        await ctx.scheduleTask(call, "unknown");
      },
    });
    const limited = await runtime.start(agent, undefined, { budget: { maxCostMicroUsd: 100 } });
    expect(await limited.settled()).toMatchObject({
      status: "failed",
      error: { cause: { code: "unknown_price" } },
    });
    expect(ran).toEqual(["known"]);
    const unlimited = await runtime.start(agent, undefined, { budget: { maxTokens: 100 } });
    expect((await unlimited.settled()).status).toBe("completed");
  });

  test.each([
    { maxTokens: 0 },
    { maxTokens: -1 },
    { maxTokens: 1.5 },
    { maxTokens: Number.NaN },
    { maxCostMicroUsd: "5" as never },
    { onExhausted: "explode" as never },
    { maxMoney: 1 } as never,
  ])("an invalid budget is refused: %j", async (budget: Budget) => {
    const { runtime } = open();
    await expect(runtime.start(inSequence(1).agent, undefined, { budget })).rejects.toMatchObject({
      code: "usage",
    });
  });
});

describe("a reservation", () => {
  test("an unused part of a reservation is released for other calls", async () => {
    const { runtime } = open();
    const { agent, ran } = inSequence(8, calls(10));
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 180 } });
    expect(await handle.result()).toHaveLength(8);
    expect(ran).toHaveLength(8);
    expect((await handle.session()).account).toMatchObject({
      spent: { tokens: 80, steps: 8 },
      reserved: { tokens: 0 },
    });
  });

  test("a reservation makes other calls wait until it is settled, so that no more run than fit", async () => {
    const { runtime } = open();
    const ready = gate();
    const { call, ran } = calls(10, () => ready.opened);
    const agent = defineAgent({
      name: "parallel",
      tasks: [call],
      run: async (ctx) => Promise.all([0, 1, 2, 3].map((n) => ctx.scheduleTask(call, n))),
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 250 } });
    await turns(10);
    expect(ran).toEqual([0, 1]);
    ready.open();
    expect(await handle.result()).toEqual([0, 1, 2, 3]);
  });

  test("a reservation that another process settles is asked for again after a delay", async () => {
    const storage = new MemoryStorage();
    const ready = gate();
    const made = calls(10, () => ready.opened);
    const { agent } = inSequence(1, made);
    const parent = defineAgent({
      name: "parent",
      agents: [agent],
      run: async (ctx) => ctx.waitForSignal("never"),
    });
    const clock = new TestClock();
    const processes = ["a", "b"].map((owner) =>
      createRuntime({ storage, clock, owner, development: false, agents: [parent] }),
    ) as [Runtime, Runtime];
    opened.push(...processes);
    await processes[0].start(parent, undefined, { sessionId: "p", budget: { maxTokens: 150 } });
    const now = clock.now();
    const born = (sessionId: string, child: number) =>
      ({
        type: "create_session",
        sessionId,
        agent: { name: "sequence", version: "1" },
        input: undefined,
        seed: 1,
        flags: 0,
        format: 1,
        depth: 1,
        parent: { sessionId: "p", child, onEnd: "cancel" },
      }) as const;
    await storage.commit([born("p-100", 100), born("p-101", 101)], now);
    await processes[0].resume("p-100");
    await until(() => made.ran.length === 1, "the first runs");
    await processes[1].resume("p-101");
    await turns(10);
    expect(made.ran).toHaveLength(1);
    ready.open();
    await clock.advance(2_000);
    expect(await processes[1].handle("p-101").session()).toMatchObject({ status: "completed" });
  });

  test("a reservation is charged along the tree, as children spend their parent's budget", async () => {
    const { runtime } = open();
    const { agent: child, ran } = inSequence(3);
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        const children = [ctx.spawnAgent(local(child)), ctx.spawnAgent(local(child))];
        const first = await ctx.race(children.map((one) => ctx.waitForChildEvent(one)));
        return first;
      },
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 420 } });
    const found = await handle.result();
    expect(found).toMatchObject({ type: "budget_exceeded", limit: "maxTokens", max: 420 });
    expect(ran.length).toBe(4);
  });

  test("a limit with onExhausted: cancel ends the payer and all sessions below it", async () => {
    const { runtime } = open();
    const { agent: child, ran } = inSequence(4);
    const idle = defineAgent({ name: "idle", run: async (ctx) => ctx.waitForSignal("never") });
    const middle = defineAgent({
      name: "middle",
      agents: [child, idle],
      run: async (ctx) => {
        ctx.spawnAgent(local(idle));
        return ctx.waitForChild(ctx.spawnAgent(local(child))).catch(() => "went on");
      },
    });
    const top = defineAgent({
      name: "top",
      agents: [middle],
      run: async (ctx) =>
        ctx
          .waitForChild(
            ctx.spawnAgent(local(middle), undefined, { budget: { maxTokens: 150, onExhausted: "cancel" } }),
          )
          .catch((error: Error) => error.message),
    });
    const handle = await runtime.start(top);
    expect(await handle.result()).toContain("-0 was cancelled: the budget of session");
    expect(ran).toHaveLength(1);
    const payer = `${handle.sessionId}-0`;
    expect(await runtime.handle(payer).session()).toMatchObject({
      status: "cancelled",
      cancel: { cause: "budget_exceeded" },
    });
    for (const below of [`${payer}-0`, `${payer}-1`])
      expect(await runtime.handle(below).session()).toMatchObject({
        status: "cancelled",
        cancel: { cause: "parent" },
      });
  });

  test("a limit with onExhausted: cancel notifies the payer's parent of the reason, then of the end", async () => {
    const { runtime } = open();
    const { agent: child } = inSequence(2);
    const budget = { maxTokens: 150, onExhausted: "cancel" } as const;
    const top = defineAgent({
      name: "top",
      agents: [child],
      run: async (ctx) => {
        const one = ctx.spawnAgent(local(child), undefined, { budget });
        const found: ChildEvent[] = [];
        while (found.every((event) => !isLastEvent(event))) found.push(await ctx.waitForChildEvent(one));
        const ending = await ctx.waitForChild(one).catch((error: ChildFailedError) => error.ending);
        return [found.filter(({ type }) => type !== "signal"), ending];
      },
    });
    const handle = await runtime.start(top);
    const used = { limit: "maxTokens", used: 100, max: 150 };
    const reason = expect.stringContaining("the budget of session") as string;
    expect(await handle.result()).toEqual([
      [
        { type: "budget_exceeded", ...used },
        { type: "cancelled", reason, cause: "budget_exceeded" },
      ],
      "budget_exceeded",
    ]);
  });

  test("a session whose payer has ended is cancelled at a limit with onExhausted: cancel", async () => {
    const { runtime } = open();
    const { agent: child } = inSequence(4);
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => void ctx.spawnAgent(local(child), undefined, { onParentEnd: "leave" }),
    });
    const budget = { maxTokens: 150, onExhausted: "cancel" } as const;
    const handle = await runtime.start(agent, undefined, { budget });
    await handle.settled();
    const left = runtime.handle(`${handle.sessionId}-0`);
    await until(async () => (await left.session().catch(() => undefined))?.endedAt !== undefined, "it ends");
    expect(await left.session()).toMatchObject({
      status: "cancelled",
      cancel: { cause: "budget_exceeded" },
    });
  });

  test("the budget of an ended payer can be raised while a session that it left still runs", async () => {
    const { runtime } = open();
    const { agent: child } = inSequence(2);
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => void ctx.spawnAgent(local(child), undefined, { onParentEnd: "leave" }),
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 150 } });
    await handle.settled();
    const left = runtime.handle(`${handle.sessionId}-0`);
    await until(
      async () => (await left.session().catch(() => undefined))?.status === "paused",
      "it is paused",
    );
    await expect(left.setBudget({ maxTokens: 500 })).rejects.toThrow(
      `session ${handle.sessionId} pays for it`,
    );
    expect(await handle.setBudget({ maxTokens: 500 })).toBe("completed");
    expect(await left.result()).toEqual([0, 1]);
    await expect(handle.setBudget({ maxTokens: 900 })).rejects.toMatchObject({ code: "session_ended" });
  });

  test("a parent is notified once when less than a tenth of a child's budget is left", async () => {
    const { runtime } = open();
    const { call } = calls(100);
    const child = defineAgent({
      name: "child",
      tasks: [call],
      run: async (ctx) => {
        for (let n = 0; n < 4; n++) await ctx.scheduleTask(call, n);
        await ctx.run("more", () => 0);
      },
    });
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        const one = ctx.spawnAgent(local(child), undefined, { budget: { maxTokens: 410 } });
        const events = [];
        for (;;) {
          const event = await ctx.waitForChildEvent(one);
          events.push(event.type === "signal" ? event.name : event.type);
          if (event.type === "completed") return events;
        }
      },
    });
    expect(await (await runtime.start(agent)).result()).toEqual(["budget-low", "completed"]);
  });

  test("an agent may read its remaining budget, and gets the same on replay", async () => {
    const { runtime } = open();
    const { call } = calls(60);
    const agent = defineAgent({
      name: "careful",
      tasks: [call],
      run: async (ctx) => {
        const before = ctx.remainingBudget().tokens;
        await ctx.scheduleTask(call, 1);
        return [before, ctx.remainingBudget().tokens];
      },
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 1_000 } });
    expect(await handle.result()).toEqual([1_000, 940]);
  });
});

describe("time to live", () => {
  test("the end of its time to live cancels a session, with that cause", async () => {
    const { runtime, clock } = open();
    const agent = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("never") });
    const handle = await runtime.start(agent, undefined, { budget: { ttlMs: 5_000 } });
    await clock.advance(4_999);
    expect((await handle.session()).status).toBe("waiting");
    await clock.advance(20_000);
    expect(await handle.session()).toMatchObject({ status: "cancelled", cancel: { cause: "deadline" } });
  });

  test("a question that nobody answers in time cancels its session, which may clean up", async () => {
    const { runtime, clock } = open();
    const agent = defineAgent({
      name: "asks",
      run: async (ctx) => {
        try {
          return await ctx.requestInput("sure?", { ttlMs: 1_000 });
        } catch {
          return { partial: true };
        }
      },
    });
    const handle = await runtime.start(agent);
    expect((await handle.session()).status).toBe("input_required");
    await clock.advance(1_100);
    expect(await handle.session()).toMatchObject({
      status: "cancelled",
      output: '{"partial":true}',
      cancel: { cause: "input_timeout" },
    });
  });
});

describe("a session whose time is up before it is stored", () => {
  test("a session whose time is up before it is stored is cancelled once it is stored", async () => {
    const { runtime, clock } = open();
    const agent = defineAgent({
      name: "slow-to-ask",
      run: async (ctx) => {
        const answer = ctx.requestInput("sure?", { ttlMs: 5 });
        clock.jump(10); // As a first slice that takes long.
        return answer;
      },
    });
    const handle = await runtime.start(agent);
    await clock.advance(1_000);
    expect(await handle.session()).toMatchObject({ status: "cancelled", cancel: { cause: "input_timeout" } });
  });
});

describe("a pause", () => {
  // The driver has noticed the pause, and stores the running task's outcome after the pause was taken back.
  test("a pause that is taken back before the driver has released the session has no effect", async () => {
    const { runtime, clock } = open();
    const ready = gate();
    const { agent, ran } = inSequence(
      2,
      calls(1, () => ready.opened),
    );
    const handle = await runtime.start(agent);
    await until(() => ran.length === 1, "the first runs");
    await handle.pause();
    await turns(10);
    await handle.unpause();
    ready.open();
    await clock.advance(1_000);
    expect(await handle.session()).toMatchObject({ status: "completed", output: "[0,1]" });
  });

  // An outcome after a lost attempt is stored before its delivery, which must not store it again.
  test("a pause stores an outcome once, even one that was stored before", async () => {
    const { runtime, storage } = open();
    const ready = gate();
    const { agent, ran } = inSequence(
      1,
      calls(1, () => ready.opened),
    );
    const lost = createRuntime({ storage, clock: new TestClock(), owner: "lost", development: false });
    await lost.start(agent, undefined, { sessionId: "kept" });
    await until(() => ran.length === 1, "it runs");
    vanishRuntime(lost);
    await releaseClaim(storage, "kept");
    const commit = storage.commit.bind(storage);
    storage.commit = async (changes, now) => {
      const isKept = changes.some(
        (change) =>
          change.type === "commit_batch" && change.records.some(({ type }) => type === "outcome_kept"),
      );
      // In the same transaction as the stored outcome, so that the driver gets the pause with the answer.
      return isKept
        ? (await commit([...changes, { type: "pause_session", sessionId: "kept" }], now)).slice(0, -1)
        : commit(changes, now);
    };
    const handle = await runtime.start(agent, undefined, { sessionId: "kept" });
    await until(() => ran.length === 2, "it runs again");
    ready.open();
    await handle.settled();
    const journal = await storage.reader.journal("kept", 0, 1_000);
    expect(journal.filter(({ type }) => type === "outcome_kept")).toHaveLength(1);
    await handle.unpause();
    expect(await handle.result()).toEqual([0]);
  });

  test("a pause waits for running tasks, starts nothing more, and the session resumes where it was", async () => {
    const { runtime } = open();
    const ready = gate();
    const { agent, ran } = inSequence(
      3,
      calls(1, () => ready.opened),
    );
    const handle = await runtime.start(agent);
    await until(() => ran.length === 1, "the first runs");
    expect(await handle.pause()).toBe("paused");
    await turns(10);
    ready.open();
    expect(await handle.settled()).toMatchObject({ status: "paused", fault: { code: "session_paused" } });
    expect(await handle.session()).toMatchObject({ status: "paused", pauseReason: "by_user" });
    expect(ran).toEqual([0]);
    await handle.unpause();
    expect(await handle.result()).toEqual([0, 1, 2]);
    expect(ran).toEqual([0, 1, 2]);
  });

  test("a pause that another process takes back leaves the session running where it is", async () => {
    const storage = new MemoryStorage();
    const ready = gate();
    const agent = defineAgent({
      name: "slow",
      run: async (ctx) => [
        await ctx.run("slow", () => ready.opened.then(() => 1)),
        await ctx.run("b", () => 2),
      ],
    });
    const [one, other] = ["one", "other"].map((owner) => {
      const runtime = createRuntime({ storage, owner, agents: [agent], adopt: false, development: false });
      opened.push(runtime);
      return runtime;
    }) as [Runtime, Runtime];
    const handle = await one.start(agent);
    await other.pause(handle.sessionId); // The running task is waited for, so the session is still claimed.
    expect(await other.unpause(handle.sessionId)).toBe("working");
    ready.open();
    await until(async () => (await handle.session()).status === "completed", "it goes on where it was");
    expect((await handle.session()).output).toBe("[1,2]");
  });

  test("a pause holds back arrivals, and a cancel ends the paused session", async () => {
    const { runtime, clock } = open();
    const agent = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("go") });
    const handle = await runtime.start(agent);
    await handle.pause();
    await turns(5);
    await handle.signal("go", 1);
    await clock.advance(60_000);
    expect((await handle.session()).status).toBe("paused");
    await handle.unpause();
    expect(await handle.result()).toBe(1);

    const other = await runtime.start(agent);
    await other.pause();
    await other.cancel();
    await clock.advance(20_000);
    expect((await other.session()).status).toBe("cancelled");
  });
});
