// K13 and cancellation: the ways in which a session ends, and what happens to its open items.

import { KernelStand, type StandAgent } from "@holdfast/testkit/kernel-stand";
import { describe, expect, test } from "vitest";

describe("K13: on return", () => {
  test("tasks that no code ever observed are awaited, and then the session completes with the returned output", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      void ctx.scheduleTask("other");
      return "output";
    });
    expect(await stand.start()).toEqual({ type: "open" });
    expect(stand.seal().newTasks).toHaveLength(2);
    expect(await stand.completeTask(1)).toEqual({ type: "open" });
    stand.seal();
    expect(await stand.completeTask(0)).toEqual(ended("output"));
    expect(stand.seal().records.map(({ type }) => type)).toEqual(["task_completed", "complete"]);
  });

  test("the failure of such a task fails the session", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      void ctx.scheduleTask("other");
      return "output";
    });
    await stand.start();
    stand.seal();
    expect(await stand.failTask(0, new Error("unseen"))).toMatchObject({
      type: "ended",
      ending: { type: "threw", error: { code: "task_failed", message: expect.stringContaining("unseen") } },
    });
    expect(stand.seal()).toMatchObject({
      records: [{ type: "task_failed" }, { type: "withdraw", targets: [1] }, { type: "fail" }],
      withdrawnTasks: [1],
    });
  });

  test("a task that failed unobserved before the return does not fail the session", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      await ctx.scheduleTask("other");
      return "output";
    });
    await stand.start();
    stand.seal();
    await stand.failTask(0);
    expect(await stand.completeTask(1)).toEqual(ended("output"));
  });

  test("observed open tasks, timers, waits and questions are withdrawn in the batch that ends the session", async () => {
    const stand = new KernelStand(async (ctx) => {
      const loser = ctx.scheduleTask("work");
      void ctx.waitForSignal("s");
      void ctx.sleep(9_000);
      void ctx.requestInput("?");
      await Promise.race([loser, ctx.scheduleTask("other")]);
      return "output";
    });
    await stand.start();
    stand.seal();
    expect(await stand.completeTask(4)).toEqual(ended("output"));
    expect(stand.seal()).toMatchObject({
      records: [
        { type: "task_completed" },
        { type: "withdraw", targets: [0, 1, 2, 3] },
        { type: "complete" },
      ],
      withdrawnTasks: [0],
    });
    expect(stand.kernel.open.waits()).toEqual([]);
  });

  describe("by a hand-over at once", () => {
    const agents = ["next"];
    const handsOver: StandAgent = async (ctx) => {
      void ctx.scheduleTask("work");
      return ctx.handoffToAgent({ type: "local", name: "next" }, 1, { completion: "immediate" });
    };

    test("the successor is created by the batch that ends the session, and not before its tasks are done", async () => {
      const stand = new KernelStand(handsOver, { agents });
      expect(await stand.start()).toEqual({ type: "open" });
      expect(stand.seal()).toMatchObject({ newTasks: [{ kind: "work" }], effects: [] });
      const successor = "ses_test-1";
      expect(await stand.completeTask(0)).toEqual({
        type: "ended",
        ending: {
          type: "returned",
          output: JSON.stringify({ handedOffTo: successor }),
          handedOffTo: successor,
        },
      });
      expect(stand.seal()).toMatchObject({
        records: [{ type: "task_completed" }, { type: "complete" }],
        effects: [{ type: "create_session", sessionId: successor, input: "1" }],
      });
    });

    test("the successor is created also when another process continues the session in between", async () => {
      const first = new KernelStand(handsOver, { agents });
      await first.start();
      first.seal();
      const stand = new KernelStand(handsOver, { agents, recorded: first.journal });
      await stand.replay();
      expect(stand.seal().effects).toEqual([]);
      await stand.completeTask(0);
      expect(stand.seal().effects).toMatchObject([{ type: "create_session", sessionId: "ses_test-1" }]);
    });

    test("a session that fails by an unobserved task has no successor", async () => {
      const stand = new KernelStand(handsOver, { agents });
      await stand.start();
      expect(stand.seal().effects).toEqual([]);
      expect(await stand.failTask(0)).toMatchObject({ type: "ended", ending: { type: "threw" } });
      expect(stand.seal().effects).toEqual([]);
    });

    test("a session that was cancelled before its end has no successor", async () => {
      const stand = new KernelStand(handsOver, { agents });
      await stand.start();
      stand.seal();
      expect(await stand.cancel()).toEqual({
        type: "ended",
        ending: { type: "returned", output: undefined },
      });
      expect(stand.seal().effects).toEqual([]);
    });

    test("a hand-over to an unknown agent is refused at once, with the line", async () => {
      const stand = new KernelStand(handsOver);
      expect(await stand.start()).toMatchObject({
        type: "faulted",
        fault: { code: "agent_not_found", at: expect.stringContaining("end.test.ts") },
      });
    });
  });

  test("an agent that returns nothing has no output", async () => {
    expect(await new KernelStand(async () => {}).start()).toEqual({
      type: "ended",
      ending: { type: "returned", output: undefined },
    });
  });

  test("an agent that asks for more beside its return is faulted, and nothing of it is committed", async () => {
    const stand = new KernelStand(async (ctx) => {
      void Promise.resolve()
        .then(() => Promise.resolve())
        .then(() => Promise.resolve())
        .then(() => ctx.scheduleTask("work"))
        .catch(() => {});
      return "output";
    });
    expect(await stand.start()).toMatchObject({
      type: "faulted",
      fault: { code: "usage", message: expect.stringContaining("after the end") },
    });
  });
});

describe("K13: on throw", () => {
  test("all open items are cancelled, observed or not, and the error is recorded with its cause", async () => {
    const stand = new KernelStand(async (ctx) => {
      void ctx.scheduleTask("work");
      void ctx.sleep(9);
      await ctx.scheduleTask("other");
      throw new RangeError("bad", { cause: new Error("root") });
    });
    await stand.start();
    stand.seal();
    await stand.completeTask(2);
    const segment = stand.seal();
    expect(segment.records.slice(1)).toMatchObject([{ type: "withdraw", targets: [0, 1] }, { type: "fail" }]);
    expect(JSON.parse(segment.records.at(-1)!.payload!)).toMatchObject({
      name: "RangeError",
      message: "bad",
      cause: { name: "Error", message: "root" },
    });
    expect(segment.withdrawnTasks).toEqual([0]);
  });

  test("an agent may throw before its first await, and a value that is no error", async () => {
    const sync = new KernelStand(() => {
      throw new Error("at once");
    });
    expect(await sync.start()).toMatchObject({ ending: { type: "threw", error: { message: "at once" } } });
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- users do
    const odd = new KernelStand(() => Promise.reject());
    expect(await odd.start()).toMatchObject({
      ending: { type: "threw", error: { name: "Error", message: "undefined" } },
    });
  });

  test("an ended session accepts no outcome", async () => {
    const stand = new KernelStand(async () => 1);
    await stand.start();
    expect(stand.kernel.turn.closed).toBe(true);
    expect(stand.kernel.segment.isEmpty).toBe(false);
    stand.seal();
    expect(() => stand.ctx.scheduleTask("work")).toThrow();
    expect(stand.strayFaults).toBe(0); // It is over: nobody is to be told.
    expect(stand.seal().records).toEqual([]);
  });
});

describe("a graceful cancel", () => {
  test("a graceful cancel is one delivery: open waits and timers reject, running tasks continue, the output is kept", async () => {
    const agent: StandAgent = async (ctx) => {
      const task = ctx.scheduleTask("work");
      const codes = await Promise.all(
        [ctx.waitForSignal("s"), ctx.sleep(50), ctx.requestInput("?"), ctx.signalReady("t")].map((wait) =>
          wait.catch((error: { code: string; message: string }) => `${error.code}: ${error.message}`),
        ),
      );
      return [codes, ctx.isCancellationRequested(), await task];
    };
    const stand = new KernelStand(agent);
    await stand.start();
    stand.seal();
    await stand.cancel("enough");
    expect(stand.seal().records).toMatchObject([{ type: "cancel_requested", reason: "enough" }]);
    expect(stand.kernel.open.waits()).toEqual([]);
    expect(stand.kernel.open.tasks()).toHaveLength(1);
    const live = await stand.completeTask(0, "finished");
    expect(live).toEqual(
      ended([
        [
          'cancelled: the wait for signal "s" was cancelled: enough',
          "cancelled: the timer was cancelled: enough",
          'cancelled: the question "?" was cancelled: enough',
          'cancelled: the wait for signal "t" was cancelled: enough',
        ],
        true,
        "finished",
      ]),
    );
    stand.seal();
    expect(await new KernelStand(agent, { recorded: stand.journal }).replay()).toEqual(live);
  });

  test("later waits reject by counted deliveries of their own, and hang after the limit", async () => {
    let rejected = 0;
    const agent: StandAgent = async (ctx) => {
      for (;;) {
        try {
          await ctx.waitForSignal("s");
        } catch {
          rejected++;
        }
      }
    };
    const limits = { cancelledWaits: 5 };
    const stand = new KernelStand(agent, { limits });
    await stand.start();
    await stand.cancel();
    await stand.deliverAllOwn();
    expect(rejected).toBe(6);
    expect(
      stand.recorded("wait_cancelled").length +
        stand.seal().records.filter(({ type }) => type === "wait_cancelled").length,
    ).toBe(5);
    expect(stand.kernel.open.waits()).toHaveLength(1);
    stand.send("s", "too late");
    expect(await stand.deliverOwn()).toBeUndefined(); // It hangs: no signal is eaten by an agent that is going.
    expect(await stand.deliverDue(Number.MAX_SAFE_INTEGER)).toBeUndefined();
  });

  test("timers hang after the limit as well", async () => {
    const stand = new KernelStand(
      async (ctx) => {
        for (;;) await ctx.sleep(1).catch(() => {});
      },
      { limits: { cancelledWaits: 2 } },
    );
    await stand.start();
    await stand.cancel();
    await stand.deliverAllOwn();
    expect(await stand.deliverDue(Number.MAX_SAFE_INTEGER)).toBeUndefined();
  });

  test("a wait inside ctx.cleanup survives a graceful cancel, and a wait beside it does not", async () => {
    const agent: StandAgent = async (ctx) => {
      const outside = ctx.waitForSignal("s").catch((error: { code: string }) => error.code);
      const inside = await ctx.cleanup(async (c) => {
        const first = await c.waitForSignal("t");
        await c.sleep(5);
        return [first, await c.race([c.waitForSignal("never"), c.sleep(7)]).then(() => "slept")];
      });
      return [await outside, inside];
    };
    const stand = new KernelStand(agent);
    await stand.start();
    await stand.cancel();
    stand.send("t", "tidied");
    await stand.deliverOwn();
    const slept = stand.kernel.open.waits()[0]!;
    await stand.fireTimer(slept.id);
    await stand.fireTimer(stand.kernel.open.waits().find(({ type }) => type === "timer")!.id);
    expect(stand.seal().records.at(-1)).toMatchObject({
      type: "complete",
      payload: '["cancelled",["tidied","slept"]]',
    });
  });

  test("an agent that has returned ends at once, and the tasks that its end waited for are withdrawn", async () => {
    const agent: StandAgent = async (ctx) => {
      void ctx.scheduleTask("work");
      return "whole";
    };
    const stand = new KernelStand(agent);
    expect(await stand.start()).toEqual({ type: "open" });
    stand.seal();
    expect(await stand.cancel()).toEqual(ended("whole"));
    expect(stand.seal()).toMatchObject({
      records: [{ type: "cancel_requested" }, { type: "withdraw", targets: [0] }, { type: "complete" }],
      withdrawnTasks: [0],
    });
    const replayed = new KernelStand(agent, { recorded: stand.journal });
    expect(await replayed.replay()).toEqual(ended("whole"));
  });

  test("an agent that returns after the cancel still waits for the tasks that it asked for", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.sleep(5).catch(() => void ctx.scheduleTask("work"));
      return "partial";
    });
    await stand.start();
    stand.seal();
    expect(await stand.cancel()).toEqual({ type: "open" });
    expect(await stand.completeTask(1)).toEqual(ended("partial"));
  });

  test("a second graceful cancel changes nothing", async () => {
    const stand = new KernelStand(async (ctx) => {
      await ctx.sleep(5).catch(() => {});
      return ctx.cleanup((c) => c.waitForSignal("s"));
    });
    await stand.start();
    await stand.cancel("first", 9_000);
    await stand.cancel("second", 99_000);
    expect(stand.kernel.turn.cancel).toEqual({ deadlineAt: 9_000, reason: "first" });
    stand.send("s", "done");
    expect(await stand.deliverOwn()).toEqual(ended("done"));
  });

  test("a kernel that begins under a cancel rejects its waits, and is not told of the cancel again", async () => {
    const stand = new KernelStand(
      async (ctx) => [
        ctx.isCancellationRequested(),
        await ctx.waitForSignal("s").catch((error: { code: string }) => error.code),
      ],
      { baseSeq: 9, baseId: 3, state: 1, cancel: { deadlineAt: 9_000 } },
    );
    await stand.start();
    expect(await stand.deliverOwn()).toEqual(ended([true, "cancelled"]));
  });
});

function ended(output: unknown): unknown {
  return { type: "ended", ending: { type: "returned", output: JSON.stringify(output) } };
}
