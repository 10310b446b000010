// K2a and the combinators: which items may be raced, by which function, and that no acknowledged signal is
// ever lost.

import { KernelStand, type StandAgent } from "@holdfast/testkit/kernel-stand";
import { describe, expect, test } from "vitest";
import type { AgentContext } from "./context.ts";

describe("a signal name with an open consuming wait is reserved", () => {
  const holders: readonly (readonly [string, (ctx: AgentContext) => unknown])[] = [
    ["waitForSignal", (ctx) => ctx.waitForSignal("ci.x")],
    ["waitForSignal with a time-out", (ctx) => ctx.waitForSignal("ci.x", { timeoutMs: 5 })],
  ];
  const intruders: readonly (readonly [string, (ctx: AgentContext) => unknown])[] = [
    ["waitForSignal", (ctx) => ctx.waitForSignal("ci.x")],
    ["signalReady", (ctx) => ctx.signalReady("ci.x")],
    ["hasSignal", (ctx) => ctx.hasSignal("ci.x")],
    ["takeSignal", (ctx) => ctx.takeSignal("ci.x")],
    ["drainSignals by name", (ctx) => ctx.drainSignals("ci.x")],
    ["drainSignals by pattern", (ctx) => ctx.drainSignals("ci.*")],
    ["drainSignals of everything", (ctx) => ctx.drainSignals("**")],
  ];
  for (const [holder, hold] of holders) {
    test.each(intruders)(
      `by ${holder}: %s is a mistake that says where the wait is`,
      async (_name, intrude) => {
        const stand = new KernelStand(async (ctx) => {
          void hold(ctx);
          void intrude(ctx);
          await ctx.sleep(1);
        });
        stand.send("ci.x", "kept");
        const stands = await stand.start();
        expect(stands).toMatchObject({
          type: "faulted",
          fault: { code: "usage", message: expect.stringContaining("already has an open wait") },
        });
        expect(() => stand.seal()).toThrow();
        expect(stand.kernel.pending.all().map(({ payload }) => payload)).toEqual(['"kept"']);
      },
    );
  }

  test("other names stay free, and so do patterns that do not match", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.waitForSignal("ci.x");
      void ctx.waitForSignal("ci.y");
      void ctx.requestInput("first?");
      void ctx.requestInput("second?");
      return [
        ctx.hasSignal("ci"),
        ctx.takeSignal("x") ?? null,
        ctx.drainSignals("cd.*"),
        ctx.drainSignals("*"),
      ];
    });
    expect((await stand.start()).type).toBe("ended");
  });

  test("the answer to a question cannot be drained", async () => {
    const stand = new KernelStand(async (ctx) => {
      const question = ctx.requestInput("sure?");
      await ctx.signalReady("go");
      return [ctx.drainSignals("**").map(({ name }) => name), await question];
    });
    stand.answer(0, "yes");
    stand.send("go");
    await stand.start();
    await stand.slice({ type: "signal_ready", wait: 1, at: 1 });
    expect(await stand.deliverAllOwn()).toEqual(ended([["go"], "yes"]));
  });

  test("a wait for a child conflicts with no pattern, and no pattern takes the child's signals", async () => {
    const stand = new KernelStand(
      async (ctx) => {
        const child = ctx.spawnAgent({ type: "local", name: "one" });
        const event = ctx.waitForChildEvent(child);
        const end = ctx.waitForChild(child);
        await ctx.signalReady("go");
        return [ctx.drainSignals("**").map(({ name }) => name), await event, await end];
      },
      { agents: ["one"] },
    );
    await stand.start();
    stand.send("go");
    expect(await stand.deliverAllOwn()).toEqual({ type: "open" });
    const completed = { type: "completed", output: 7 };
    stand.send("child:0", completed);
    stand.send("child-end:0", completed);
    expect(await stand.deliverAllOwn()).toEqual(ended([["go"], completed, 7]));
  });

  test("a name is free again once its wait is answered, timed out or withdrawn", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.waitForSignal("s");
      await ctx.waitForSignal("s", { timeoutMs: 5 }).catch(() => {});
      const third = ctx.waitForSignal("s");
      third.cancel();
      return [ctx.hasSignal("s"), ctx.takeSignal("s") ?? null];
    });
    await stand.start();
    stand.send("s", 1);
    await stand.deliverOwn();
    const stands = await stand.timeOut(1);
    expect(stands).toEqual(ended([false, null]));
  });
});

describe("ctx.race, any and select withdraw the losers in the same batch", () => {
  const races: readonly (readonly [string, (ctx: AgentContext) => Promise<unknown>])[] = [
    ["race", (ctx) => ctx.race([ctx.waitForSignal("go"), ctx.sleep(5), ctx.scheduleTask("work")])],
    ["any", (ctx) => ctx.any([ctx.waitForSignal("go"), ctx.sleep(5), ctx.scheduleTask("work")])],
    [
      "select",
      async (ctx) =>
        (
          await ctx.select({
            go: ctx.waitForSignal("go"),
            late: ctx.sleep(5),
            work: ctx.scheduleTask("work"),
          })
        ).value,
    ],
  ];

  test.each(races)("ctx.%s: a later signal finds a later wait", async (_name, race) => {
    const stand = new KernelStand(async (ctx) => {
      const won = (await race(ctx)) ?? null;
      return [won, await ctx.waitForSignal("go")];
    });
    await stand.start();
    stand.seal();
    await stand.fireTimer(1);
    const { records } = stand.seal();
    expect(records).toMatchObject([
      { type: "timer_fired" },
      { type: "withdraw", targets: [0] },
      { type: "wait_signal", name: "go" },
    ]);
    expect(stand.kernel.open.waits()).toHaveLength(1);
    stand.send("go", "mine");
    expect(await stand.deliverOwn()).toEqual(ended([null, "mine"]));
  });

  test.each(races)("ctx.%s: the winner may be the wait, and running tasks continue", async (_name, race) => {
    const stand = new KernelStand(async (ctx) => [await race(ctx), await ctx.scheduleTask("other")]);
    await stand.start();
    stand.seal();
    stand.send("go", "won");
    await stand.deliverOwn();
    expect(stand.seal().records).toMatchObject([
      { type: "signal_received" },
      { type: "withdraw", targets: [1] },
      { type: "schedule_task", kind: "other" },
    ]);
    expect(stand.kernel.open.tasks().map(({ kind }) => kind)).toEqual(["work", "other"]);
  });

  test("a losing combinator withdraws its own items, however deep", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.race([
        ctx.all([ctx.waitForSignal("a"), ctx.race([ctx.waitForSignal("b"), ctx.sleep(900)])]),
        ctx.select({ c: ctx.waitForSignal("c"), never: ctx.sleep(800) }),
        ctx.sleep(5),
      ]);
      return [await ctx.waitForSignal("a"), await ctx.waitForSignal("b"), await ctx.waitForSignal("c")];
    });
    await stand.start();
    expect(stand.kernel.open.waits()).toHaveLength(6);
    await stand.deliverDue(2_000);
    expect(stand.kernel.fault).toBeUndefined();
    expect(stand.kernel.open.waits()).toHaveLength(1);
    stand.send("c", 3);
    stand.send("b", 2);
    stand.send("a", 1);
    expect(await stand.deliverAllOwn()).toEqual(ended([1, 2, 3]));
  });

  test.each([
    ["a checkpoint", async (ctx: AgentContext) => ctx.checkpoint(1), "checkpointed"],
    ["the end", async () => 1, "ended"],
  ] as const)(
    "a race nobody awaits, decided by what led to %s, asks for nothing after it",
    async (...[, leave, how]) => {
      const stand = new KernelStand(async (ctx) => {
        const timer = ctx.sleep(10);
        const inner = ctx.race([timer, ctx.waitForSignal("a")]);
        void ctx.race([ctx.all([inner]), ctx.waitForSignal("b")]);
        await timer;
        return leave(ctx);
      });
      await stand.start();
      expect(await stand.fireTimer(0)).toMatchObject({ type: how });
      stand.seal();
      expect(stand.recorded("withdraw").flatMap(({ targets }) => targets)).toEqual([1, 2]);
    },
  );

  test("a race that ends with an error withdraws the losers too", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.race([ctx.waitForSignal("go"), ctx.scheduleTask("work")]).catch(() => {});
      return ctx.waitForSignal("go");
    });
    await stand.start();
    stand.seal();
    await stand.failTask(1);
    expect(stand.kernel.fault).toBeUndefined();
    stand.send("go", "mine");
    expect(await stand.deliverOwn()).toEqual(ended("mine"));
  });

  test("ctx.any ignores errors, and rejects only when all items do", async () => {
    const agent: StandAgent = (ctx) =>
      ctx
        .any([ctx.scheduleTask("work", 1), ctx.scheduleTask("work", 2)])
        .catch((error: AggregateError) => error.errors.length);
    const one = new KernelStand(agent);
    await one.start();
    one.seal();
    expect(await one.failTask(0)).toEqual({ type: "open" });
    expect(await one.completeTask(1, "yes")).toEqual(ended("yes"));
    const none = new KernelStand(agent);
    await none.start();
    none.seal();
    await none.failTask(0);
    expect(await none.failTask(1)).toEqual(ended(2));
  });

  test("ctx.all returns all outputs in order, and withdraws the rest on the first error", async () => {
    const agent: StandAgent = async (ctx) => {
      const [task, signal, plain] = await ctx.all([ctx.scheduleTask("work"), ctx.waitForSignal("go"), 7]);
      return [task, signal, plain];
    };
    const good = new KernelStand(agent);
    await good.start();
    good.seal();
    good.send("go", "s");
    await good.deliverOwn();
    expect(await good.completeTask(0, "t")).toEqual(ended(["t", "s", 7]));

    const bad = new KernelStand(async (ctx) => {
      await agent(ctx, undefined).catch(() => {});
      return ctx.waitForSignal("go");
    });
    await bad.start();
    bad.seal();
    await bad.failTask(0);
    bad.send("go", "mine");
    expect(await bad.deliverOwn()).toEqual(ended("mine"));
  });

  test("ctx.allSettled reports each outcome, and withdraws nothing", async () => {
    const stand = new KernelStand(async (ctx) => {
      const settled = await ctx.allSettled([
        ctx.scheduleTask("work"),
        ctx.waitForSignal("go", { timeoutMs: 5 }),
        1,
      ]);
      return settled.map((each) =>
        each.status === "fulfilled" ? each.value : (each.reason as { code: string }).code,
      );
    });
    await stand.start();
    stand.seal();
    await stand.failTask(0);
    expect(await stand.timeOut(1)).toEqual(ended(["task_failed", "wait_timed_out", 1]));
    expect(stand.seal().records.map(({ type }) => type)).not.toContain("withdraw");
  });

  test("items that are answered at once are not withdrawn, and the first by order wins", async () => {
    const stand = new KernelStand(async (ctx) => {
      const a = ctx.scheduleTask("work", "a");
      const b = ctx.scheduleTask("work", "b");
      await Promise.all([a, b]);
      return ctx.race([b, a, ctx.sleep(5)]);
    });
    await stand.start();
    stand.seal();
    await stand.completeTask(1, "b");
    expect(await stand.completeTask(0, "a")).toEqual(ended("b"));
  });

  test("code that awaits a withdrawn future gets an error, and no rejection is left unhandled", async () => {
    const stand = new KernelStand(async (ctx) => {
      const wait = ctx.waitForSignal("go");
      const other = wait.then(
        () => "signal",
        (error: { code: string }) => error.code,
      );
      await ctx.race([wait, ctx.sleep(5)]);
      return other;
    });
    await stand.start();
    stand.seal();
    expect(await stand.fireTimer(1)).toEqual(ended("cancelled"));
  });
});

describe("native combinators are safe with tasks, timers and signalReady", () => {
  test("Promise.race of all three leaves a later signal for takeSignal", async () => {
    const stand = new KernelStand(async (ctx) => {
      const ready = ctx.signalReady("go");
      const winner = await Promise.race([ctx.scheduleTask("work"), ctx.sleep(5), ready]);
      await ready;
      return [winner, ctx.takeSignal("go")];
    });
    await stand.start();
    stand.seal();
    await stand.completeTask(1, "task");
    stand.send("go", "there");
    expect(await stand.deliverOwn()).toEqual(ended(["task", "there"]));
    expect(stand.seal().consumed).toHaveLength(1);
  });

  test("signalReady consumes nothing: two may wait at once, and only takeSignal takes", async () => {
    const stand = new KernelStand(async (ctx) => {
      await Promise.all([ctx.signalReady("go"), ctx.signalReady("go")]);
      return [ctx.hasSignal("go"), ctx.takeSignal("go"), ctx.takeSignal("go") ?? null, ctx.hasSignal("go")];
    });
    await stand.start();
    stand.send("go", 1);
    expect(await stand.deliverAllOwn()).toEqual(ended([true, 1, null, false]));
    expect(stand.seal().consumed).toEqual(["sig_1"]);
  });

  test("Promise.any, all and allSettled over tasks answer as they do over promises", async () => {
    const stand = new KernelStand(async (ctx) => {
      const any = Promise.any([ctx.scheduleTask("work", 0), ctx.scheduleTask("work", 1)]);
      const settled = Promise.allSettled([ctx.scheduleTask("work", 2), any]);
      return [await any, (await settled).map(({ status }) => status)];
    });
    await stand.start();
    stand.seal();
    await stand.failTask(0);
    await stand.completeTask(1, "b");
    expect(await stand.failTask(2)).toEqual(ended(["b", ["rejected", "fulfilled"]]));
  });
});

describe("one signal, one wait, in every interleaving of sends and waits", () => {
  test("a steering loop of races loses and doubles nothing", async () => {
    const stand = new KernelStand(async (ctx) => {
      const got: unknown[] = [];
      for (let turn = 0; turn < 6; turn++) {
        const { key, value } = await ctx.select({
          steer: ctx.waitForSignal("steer"),
          done: ctx.scheduleTask("work", turn),
        });
        if (key === "steer") got.push(value);
      }
      while (ctx.hasSignal("steer")) got.push(ctx.takeSignal("steer"));
      return got;
    });
    await stand.start();
    stand.seal();
    const sent: number[] = [];
    for (let round = 0; !stand.kernel.turn.closed && round < 20; round++) {
      if (round % 3 === 1) {
        stand.send("steer", round);
        sent.push(round);
      }
      const own = await stand.deliverOwn();
      if (own === undefined) {
        const task = stand.kernel.open.tasks().at(-1);
        if (task !== undefined) await stand.completeTask(task.id);
      }
      if (stand.kernel.fault !== undefined) throw stand.kernel.fault;
      stand.seal();
    }
    const complete = stand.recorded("complete")[0];
    expect(JSON.parse(complete?.payload ?? "null")).toEqual(sent);
    expect(stand.kernel.pending.all()).toEqual([]);
  });
});

function ended(output: unknown): unknown {
  return { type: "ended", ending: { type: "returned", output: JSON.stringify(output) } };
}
