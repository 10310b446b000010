// K7: a checkpoint ends a kernel. Open items prevent it, are awaited or are withdrawn, and another kernel
// follows.

import { KernelStand, type StandAgent, type StandOptions } from "@holdfast/testkit/kernel-stand";
import { describe, expect, test } from "vitest";
import type { AgentContext } from "./context.ts";
import type { DurableFuture } from "../replay/future.ts";

describe("a checkpoint and open items", () => {
  test("open tasks prevent a checkpoint, by name, and nothing is committed", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      void ctx.scheduleTask("other");
      await ctx.checkpoint({ n: 1 });
    });
    expect(await stand.start()).toMatchObject({
      type: "faulted",
      fault: {
        code: "usage",
        message: expect.stringMatching(/2 open task.*"work" \(ses_test-0\).*"other" \(ses_test-1\)/),
        fix: expect.stringContaining('"wait"'),
      },
    });
    expect(() => stand.seal()).toThrow();
  });

  test("a checkpoint with `cancel` withdraws open tasks in its own batch", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      await ctx.scheduleTask("other");
      void ctx.scheduleTask("test");
      await ctx.checkpoint({ n: 1 }, { openTasks: "cancel" });
    });
    await stand.start();
    stand.seal();
    expect(await stand.completeTask(1)).toMatchObject({ type: "checkpointed", turn: 1 });
    const segment = stand.seal();
    expect(segment.records.slice(-2)).toMatchObject([
      { type: "withdraw", targets: [0, 2] },
      { type: "checkpoint" },
    ]);
    expect(segment.withdrawnTasks).toEqual([0]); // The other was never started.
    expect(segment.newTasks).toEqual([]);
  });

  test("a checkpoint with `wait` lets open tasks finish, but not the code that follows them", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      void ctx.scheduleTask("other");
      await ctx.checkpoint("s", { openTasks: "wait" });
    });
    expect(await stand.start()).toEqual({ type: "open" });
    expect(stand.seal().newTasks).toHaveLength(2);
    expect(await stand.completeTask(1)).toEqual({ type: "open" });
    expect(stand.seal().records.map(({ type }) => type)).toEqual(["task_completed"]);
    expect(await stand.failTask(0)).toMatchObject({ type: "checkpointed", turn: 1 });
  });

  test("a waiting checkpoint lets no wait that it will withdraw consume a signal", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      void ctx.waitForSignal("go");
      void ctx.signalReady("steer");
      await ctx.checkpoint("s", { openTasks: "wait" });
    });
    await stand.start();
    stand.seal();
    stand.send("go", 1);
    stand.send("steer");
    expect(await stand.deliverOwn()).toBeUndefined();
    expect(await stand.completeTask(0)).toMatchObject({ type: "checkpointed" });
    expect(stand.seal().consumed).toEqual([]);
    expect(stand.kernel.pending.all().map(({ name }) => name)).toEqual(["go", "steer"]);
  });

  test("a chain of checkpoints examines no signal of a backlog again, and loses none", async () => {
    let reads = 0;
    const signals = Array.from({ length: 2_000 }, (_, i) => ({
      ...pending(`s${i % 3}`),
      signalId: `sig-${i}`,
      order: i + 1,
      get payload() {
        reads++;
        return "1";
      },
    }));
    const agent: StandAgent = async (ctx) => {
      ctx.takeSignal("s1");
      await ctx.checkpoint(1);
    };
    let stand = new KernelStand(agent, { signals });
    for (let turn = 0; turn < 10; turn++) {
      expect((await stand.start()).type).toBe("checkpointed");
      stand.seal();
      reads = 0;
      const { kernel } = stand;
      stand = after(stand, agent);
      expect(stand.kernel.pending).not.toBe(kernel.pending);
      expect(kernel.pending.all()).toEqual([]);
    }
    expect(reads).toBeLessThan(20);
    const left = stand.kernel.pending.all();
    expect(left).toHaveLength(1_990);
    expect(stand.kernel.pending.chars).toBe(1_990);
    expect(left.slice(0, 3).map(({ signalId }) => signalId)).toEqual(["sig-0", "sig-2", "sig-3"]);
  });

  test("an agent that asks for more while its checkpoint waits is faulted", async () => {
    const stand = new KernelStand(async (ctx) => {
      ctx
        .scheduleTask("work")
        .then(() => ctx.scheduleTask("other"))
        .catch(() => {});
      await ctx.checkpoint("s", { openTasks: "wait" });
    });
    await stand.start();
    stand.seal();
    expect(await stand.completeTask(0)).toMatchObject({
      type: "faulted",
      fault: { code: "usage", message: expect.stringContaining("after ctx.checkpoint()") },
    });
  });

  test("timers, waits and questions are withdrawn in the checkpoint's batch", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.sleep(5);
      void ctx.waitForSignal("a");
      void ctx.signalReady("b");
      void ctx.requestInput("?");
      await ctx.checkpoint("s");
    });
    expect((await stand.start()).type).toBe("checkpointed");
    expect(stand.seal().records.slice(-2)).toMatchObject([
      { type: "withdraw", targets: [0, 1, 2, 3] },
      { type: "checkpoint" },
    ]);
    expect(stand.kernel.open.waits()).toEqual([]);
    expect(stand.kernel.open.wakeAt).toBeUndefined();
  });

  test("a checkpoint stores state, turn, entries and leaf, and a cancel that was requested", async () => {
    const stand = new KernelStand(
      async (ctx) => {
        ctx.appendEntry({ role: "user", content: 1 });
        await ctx.waitForSignal("go").catch(() => {});
        await ctx.checkpoint({ deep: [1, { a: null }] });
      },
      { turn: 4, entryCount: 7 },
    );
    await stand.start();
    stand.seal();
    await stand.cancel("enough", 9_000);
    expect(stand.seal().records.at(-1)).toMatchObject({
      type: "checkpoint",
      turn: 5,
      entryCount: 8,
      leaf: 0,
      cancel: { deadlineAt: 9_000, reason: "enough" },
      payload: '{"deep":[1,{"a":null}]}',
    });
  });

  test("unread signals survive a checkpoint", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.waitForSignal("a");
      await ctx.checkpoint("s");
    });
    await stand.start();
    for (const name of ["a", "b", "a"]) stand.send(name, name);
    await stand.deliverOwn();
    stand.seal();
    const next = after(stand, async (ctx) => [ctx.takeSignal("a"), ctx.takeSignal("b")]);
    expect(await next.start()).toEqual(ended(["a", "b"]));
  });
});

describe("after a checkpoint", () => {
  test("no code of the agent runs after a checkpoint", async () => {
    const reached: string[] = [];
    const stand = new KernelStand(async (ctx) => {
      try {
        await Promise.race([ctx.checkpoint("s"), new Promise(() => {})]);
        reached.push("returned");
      } finally {
        reached.push("finally");
      }
    });
    expect((await stand.start()).type).toBe("checkpointed");
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(reached).toEqual([]);
  });

  test("a second checkpoint, or any other command in the same slice, is a mistake", async () => {
    for (const more of [
      (ctx: AgentContext) => ctx.checkpoint("t"),
      (ctx: AgentContext) => ctx.scheduleTask("work"),
      (ctx: AgentContext) => ctx.now(),
    ]) {
      const stand = new KernelStand(async (ctx) => {
        void ctx.checkpoint("s");
        return more(ctx);
      });
      expect(await stand.start(), String(more)).toMatchObject({ type: "faulted", fault: { code: "usage" } });
    }
  });

  test("a return past a checkpoint that is not awaited is a mistake, so no state is silently lost", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.checkpoint({ precious: true });
      return "gone";
    });
    expect(await stand.start()).toMatchObject({
      type: "faulted",
      fault: { code: "usage", message: expect.stringContaining("checkpoint") },
    });
  });

  test("an error beside a checkpoint wins: the agent fails", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.checkpoint("s");
      throw new Error("beside");
    });
    expect(await stand.start()).toMatchObject({
      type: "ended",
      ending: { type: "threw", error: { message: "beside" } },
    });
  });

  test("a future from before a checkpoint is refused after it, answered or not, live and after a recovery", async () => {
    const kept: DurableFuture<unknown>[] = [];
    const stand = new KernelStand(async (ctx) => {
      kept.push(ctx.scheduleTask("work"));
      await kept[0];
      kept.push(ctx.sleep(5), ctx.waitForSignal("s"));
      await ctx.checkpoint("s");
    });
    await stand.start();
    stand.seal();
    await stand.completeTask(0, "old answer");
    stand.seal();
    const uses: ((future: DurableFuture<unknown>) => Promise<unknown>)[] = [
      async (future) => future,
      (future) => future.then((value) => value),
      (future) => future.catch((error: unknown) => Promise.reject(error as Error)),
      (future) => future.finally(() => {}),
      (future) => Promise.resolve(future),
    ];
    for (const future of kept) {
      for (const use of uses) {
        const next = after(stand, () => use(future));
        expect(await next.start(), `${future.type} ${String(use)}`).toMatchObject({
          type: "ended",
          ending: {
            type: "threw",
            error: { code: "usage", message: expect.stringContaining("before the last checkpoint") },
          },
        });
      }
      future.cancel(); // Nothing to do, and no harm.
    }
    expect(stand.kernel.fault).toBeUndefined();
  });

  test("the next kernel starts with the decoded state, at the next position and number, with other random numbers", async () => {
    const draws: number[] = [];
    const stand = new KernelStand(async (ctx) => {
      draws.push(ctx.random(), ctx.random());
      await ctx.scheduleTask("work");
      await ctx.checkpoint({ at: new URL("file:///a") });
    });
    await stand.start();
    stand.seal();
    await stand.completeTask(0);
    stand.seal();
    const next = after(stand, async (ctx) => {
      draws.push(ctx.random(), ctx.random());
      ctx.appendEntry({ role: "user", content: "next" });
      return [ctx.state, ctx.turn];
    });
    expect(await next.start()).toEqual(ended([{ at: "file:///a" }, 1]));
    expect(next.seal().records.map(({ type, seq }) => [type, seq])).toEqual([
      ["started", 4],
      ["append_entry", 5],
      ["complete", 6],
    ]);
    expect(next.recorded("append_entry")[0]?.id).toBe(2);
    expect(new Set(draws).size).toBe(4);
  });

  test("random numbers do not depend on notes that a crash left in the journal", async () => {
    const agent: StandAgent = async (ctx) => ctx.random();
    const one = new KernelStand(agent, { baseSeq: 10, baseId: 4, state: 1 });
    const other = new KernelStand(agent, { baseSeq: 12, baseId: 4, state: 1 });
    expect(await one.start()).toEqual(await other.start());
  });
});

describe("progress", () => {
  test("a checkpoint with the same state and nothing done since the last one is a mistake", async () => {
    const stand = new KernelStand(async (ctx) => ctx.checkpoint({ n: 1 }), { state: { n: 1 } });
    expect(await stand.start()).toMatchObject({
      type: "faulted",
      fault: { code: "usage", fix: expect.stringContaining("ctx.state") },
    });
  });

  test.each<readonly [string, StandAgent, StandOptions]>([
    ["the first one", async (ctx) => ctx.checkpoint({ n: 1 }), {}],
    ["another state", async (ctx) => ctx.checkpoint({ n: 2 }), { state: { n: 1 } }],
    [
      "a signal taken",
      async (ctx) => (ctx.takeSignal("s"), ctx.checkpoint({ n: 1 })),
      { state: { n: 1 }, signals: [pending("s")] },
    ],
    [
      "signals drained",
      async (ctx) => (ctx.drainSignals("*"), ctx.checkpoint({ n: 1 })),
      { state: { n: 1 }, signals: [pending("s")] },
    ],
  ])("%s is progress", async (_name, agent, options) => {
    expect((await new KernelStand(agent, options).start()).type).toBe("checkpointed");
  });

  test("an answered task is progress, also with the same state", async () => {
    const stand = new KernelStand(
      async (ctx) => {
        await ctx.scheduleTask("work");
        await ctx.checkpoint({ n: 1 });
      },
      { state: { n: 1 } },
    );
    await stand.start();
    stand.seal();
    expect((await stand.completeTask(0)).type).toBe("checkpointed");
  });

  test("a look for a signal that is not there is no progress", async () => {
    const stand = new KernelStand(async (ctx) => (ctx.takeSignal("s"), ctx.checkpoint({ n: 1 })), {
      state: { n: 1 },
    });
    expect((await stand.start()).type).toBe("faulted");
  });
});

/** Makes the kernel after a checkpoint as the runtime does. */
function after(stand: KernelStand, agent: StandAgent): KernelStand {
  const { kernel } = stand;
  const checkpoint = stand.recorded("checkpoint").at(-1)!;
  return new KernelStand(agent, {
    baseSeq: kernel.cursor.seq,
    baseId: kernel.cursor.id,
    state: JSON.parse(checkpoint.payload!) as unknown,
    turn: kernel.turn.number,
    entryCount: kernel.tip.count,
    signals: kernel.pending,
    ...(kernel.tip.leaf === undefined ? {} : { leaf: kernel.tip.leaf }),
    ...(kernel.turn.cancel === undefined ? {} : { cancel: kernel.turn.cancel }),
  });
}

function pending(name: string) {
  return { signalId: `sig_${name}`, name, payload: "1", order: 1, sentAt: 0 };
}

function ended(output: unknown): unknown {
  return { type: "ended", ending: { type: "returned", output: JSON.stringify(output) } };
}
