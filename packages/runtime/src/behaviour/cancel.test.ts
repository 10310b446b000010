// Cancellation: the agent is notified once and may clean up. After the acknowledgement no path leads to
// `completed`.

import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

describe("graceful", () => {
  test("a cancel with an invalid time is refused, and nothing is cancelled", async () => {
    const { runtime } = open();
    const handle = await runtime.start(agentOf((ctx) => ctx.waitForSignal("go")));
    await turns(10);
    for (const graceMs of [Number.NaN, Infinity, -1]) {
      await expect(handle.cancel({ graceMs })).rejects.toMatchObject({ code: "usage" });
    }
    expect((await handle.session()).status).toBe("waiting");
  });

  test("a graceful cancel rejects waits, running tasks finish, and the agent returns a partial output", async () => {
    const { runtime } = open();
    const task = gate<string>();
    const agent = agentOf(async (ctx) => {
      const running = ctx.run("running", () => task.opened);
      const wait = await ctx
        .waitForSignal("never")
        .catch((error: { code: string; message: string }) => error.message);
      return [wait, await running, ctx.isCancellationRequested()];
    });
    const handle = await runtime.start(agent);
    await turns(10);
    expect(await handle.cancel({ reason: "enough" })).toEqual({
      status: "requested",
      sessionStatus: "cancelling",
    });
    await turns(10);
    task.open("finished");
    expect(await handle.settled()).toMatchObject({
      status: "cancelled",
      output: ['the wait for signal "never" was cancelled: enough', "finished", true],
    });
    expect((await handle.session()).status).toBe("cancelled");
  });

  test("an agent that lets the rejection through is cancelled, and one with an error of its own has failed", async () => {
    const { runtime } = open();
    const through = await runtime.start(agentOf((ctx) => ctx.sleep(1e9), "through"));
    const own = await runtime.start(
      agentOf((ctx) => ctx.sleep(1e9).catch(() => fail(new Error("own"))), "own"),
    );
    await turns(10);
    await Promise.all([through.cancel(), own.cancel()]);
    expect((await through.settled()).status).toBe("cancelled");
    expect(await own.settled()).toMatchObject({ status: "failed", error: { message: "own" } });
  });

  test("a clean-up may wait, ask and work until the deadline ends the session without the agent", async () => {
    const { runtime, clock } = open();
    const steps: string[] = [];
    const aborted = gate();
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        await ctx.waitForSignal("never").catch(() => steps.push("cancelled"));
        await ctx.cleanup(async (c) => {
          await c.sleep(1_000);
          steps.push("slept");
          steps.push(String(await c.waitForSignal("tidy")));
          await c.run("long", ({ signal }) => {
            signal.addEventListener("abort", () => aborted.open());
            return aborted.opened;
          });
        });
        steps.push("never");
      }),
    );
    await turns(10);
    await handle.cancel({ graceMs: 5_000 });
    await clock.advance(1_000);
    await handle.signal("tidy", "tidied");
    await clock.advance(3_999);
    expect(steps).toEqual(["cancelled", "slept", "tidied"]);
    expect((await handle.session()).status).toBe("cancelling");
    await clock.advance(1);
    expect((await handle.settled()).status).toBe("cancelled");
    await aborted.opened;
    expect(steps).not.toContain("never");
  });

  test("the deadline of a cancel ends a session whose agent hangs", async () => {
    const { runtime, clock } = open();
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        for (;;) await ctx.sleep(10).catch(() => {});
      }),
    );
    await turns(10);
    await handle.cancel({ graceMs: 2_000 });
    await clock.advance(1_999);
    expect((await handle.session()).status).toBe("cancelling");
    await clock.advance(1);
    expect((await handle.settled()).status).toBe("cancelled");
  });

  test("a cancel outlives its process: the next one notifies the agent, with the same deadline", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const received: string[] = [];
    const agent = agentOf(async (ctx) => {
      await ctx.waitForSignal("never").catch((error: { code: string }) => received.push(error.code));
      await ctx.cleanup((c) => c.waitForSignal("also never"));
    });
    const first = open({ storage, clock });
    const { sessionId } = await first.runtime.start(agent);
    await turns(10);
    first.mortalStorage.die();
    vanishRuntime(first.runtime);
    const second = open({ storage, clock, agents: [agent], adopt: false });
    expect(await second.runtime.cancel(sessionId, { graceMs: 9_000 })).toMatchObject({ status: "requested" });
    await second.runtime.close();
    expect(received).toEqual([]);
    const third = open({ storage, clock, agents: [agent] });
    await third.runtime.resume(sessionId);
    await turns(20);
    expect(received).toEqual(["cancelled"]);
    // The process that resumes the clean-up does not notify the agent again.
    third.mortalStorage.die();
    vanishRuntime(third.runtime);
    const fourth = open({ storage, clock, agents: [agent] });
    const handle = await fourth.runtime.resume(sessionId);
    await turns(20);
    const notified = (await journalOf(storage, sessionId)).filter(({ type }) => type === "cancel_requested");
    expect(notified).toHaveLength(1);
    await clock.advance(9_000);
    expect((await handle.settled()).status).toBe("cancelled");
  });

  test("a session with an unknown or diverging agent ends at the deadline of its cancel", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const agent = agentOf(async (ctx) => {
      await ctx.run("a", () => 1);
      await ctx.waitForSignal("never");
    });
    const changed = agentOf((ctx) => ctx.waitForSignal("other"));
    const first = open({ storage, clock });
    const unknown = await first.runtime.start(agent);
    const diverging = await first.runtime.start(agent);
    await turns(20);
    first.mortalStorage.die();
    vanishRuntime(first.runtime);

    const none = open({ storage, clock });
    await none.runtime.cancel(unknown.sessionId, { graceMs: 1_000 });
    await clock.advance(1_000);
    expect((await storage.reader.session(unknown.sessionId))?.status).toBe("cancelled");

    const other = open({ storage, clock, agents: [changed] });
    await other.runtime.resume(diverging.sessionId);
    await turns(20);
    expect((await storage.reader.session(diverging.sessionId))?.status).toBe("paused");
    await other.runtime.cancel(diverging.sessionId, { graceMs: 1_000 });
    await clock.advance(1_000);
    expect((await storage.reader.session(diverging.sessionId))?.status).toBe("cancelled");
  });

  test("a session whose agent has returned ends at once, and the tasks that its end waited for are aborted", async () => {
    const { runtime } = open();
    const aborted = gate();
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        void ctx.run("long", ({ signal }) => {
          signal.addEventListener("abort", () => aborted.open());
          return aborted.opened;
        });
        return "whole";
      }),
    );
    await turns(10);
    await handle.cancel({ graceMs: 60_000 });
    await until(async () => (await handle.session()).endedAt !== undefined, "it ends within its grace");
    expect(await handle.settled()).toMatchObject({ status: "cancelled", output: "whole" });
    await aborted.opened;
  });

  test("a second cancel changes nothing, and a cancel of an ended session says so", async () => {
    const { runtime, clock } = open();
    const handle = await runtime.start(agentOf((ctx) => ctx.cleanup((c) => c.sleep(1e9))));
    await turns(10);
    await handle.cancel({ graceMs: 1_000 });
    expect(await handle.cancel({ graceMs: 99_000 })).toMatchObject({ status: "requested" });
    await clock.advance(1_000);
    expect((await handle.settled()).status).toBe("cancelled");
    expect(await handle.cancel()).toEqual({ status: "already_ended", sessionStatus: "cancelled" });
    await expect(runtime.cancel("nobody")).rejects.toMatchObject({ code: "session_not_found" });
  });

  test("an agent that is cancelled in any of its turns still knows it in the next turn", async () => {
    const { runtime } = open();
    const handle = await runtime.start(
      defineAgent<unknown, unknown, number>({
        name: "turns",
        initial: () => 0,
        async turn(ctx, n) {
          const code = await ctx.waitForSignal("go").then(
            () => "went",
            (error: { code: string }) => error.code,
          );
          return ctx.isCancellationRequested() && n > 2 ? { done: [n, code] } : { state: n + 1 };
        },
      }),
    );
    await handle.signal("go");
    await turns(20);
    await handle.cancel();
    expect(await handle.settled()).toMatchObject({ status: "cancelled", output: [3, "cancelled"] });
  });
});

describe("hard", () => {
  test("a hard cancel ends the session at once, aborts its tasks and ignores their late answers", async () => {
    const { runtime } = open();
    const reasons: unknown[] = [];
    const late = gate<string>();
    const handle = await runtime.start(
      agentOf((ctx) =>
        ctx.run("t", ({ signal }) => {
          signal.addEventListener("abort", () => reasons.push(signal.aborted));
          return late.opened;
        }),
      ),
    );
    await turns(10);
    expect(await handle.cancel({ hard: true })).toEqual({ status: "requested", sessionStatus: "cancelled" });
    expect((await handle.settled()).status).toBe("cancelled");
    expect(reasons).toEqual([true]);
    late.open("too late");
    await turns(10);
    expect((await handle.session()).status).toBe("cancelled");
  });
});

describe("against completion", () => {
  test("wherever the request falls, an acknowledged cancel is never followed by completed", async () => {
    for (let delay = 0; delay < 40; delay++) {
      const { runtime, storage } = open();
      const handle = await runtime.start(
        agentOf(async (ctx) => {
          for (let i = 0; i < 5; i++) await ctx.run(`step ${i}`, () => i);
          return "whole";
        }),
      );
      await turns(delay);
      const receipt = await handle.cancel();
      const settled = await handle.settled();
      const { status } = (await storage.reader.session(handle.sessionId))!;
      if (receipt.status === "requested")
        expect([status, settled.status], `after ${delay} turns`).toEqual(["cancelled", "cancelled"]);
      else expect(status).toBe("completed");
      const ends = (await journalOf(storage, handle.sessionId)).filter(
        ({ type }) => type === "complete" || type === "fail",
      );
      expect(ends).toHaveLength(1);
    }
  });
});

describe("that is stored right before the end", () => {
  test.each([
    ["what was done", "full", "at once"],
    [new Error("what went wrong"), "full", "at once"],
    ["what was done", "minimal", "at once"],
    ["what was done", "ephemeral", "at once"],
    ["what was done", "minimal", "upon a signal"],
  ] as const)(
    "a cancel that is stored before the end repeats no task: the agent gets %s again (%s, ends %s)",
    async (outcome, persistence, ends) => {
      const memory = new MemoryStorage();
      const [done, received] = [gate(), [] as string[]];
      let [isCancelled, ran] = [false, 0];
      const storage = storageWith(memory, {
        async commit(changes, now) {
          const end = changes.find((each) => each.type === "commit_batch" && each.session?.output);
          if (end !== undefined && !isCancelled && "sessionId" in end) {
            isCancelled = true;
            const { sessionId } = end;
            await memory.commit([{ type: "request_cancel", sessionId, mode: "graceful", graceMs: 1e6 }], now);
          }
          return memory.commit(changes, now);
        },
      });
      const runtime = createRuntime({ storage, development: false });
      opened.push(runtime);
      const agent = agentOf(async (ctx) => {
        const work = async (): Promise<unknown> => {
          ran++;
          await done.opened;
          if (typeof outcome === "string") return outcome;
          throw outcome;
        };
        const options = { retry: { maxAttempts: 1 } };
        received.push(await ctx.run("once", work, options).then(String, (error: Error) => error.message));
        if (ends === "upon a signal") await ctx.waitForSignal("go").catch(() => {});
        return ctx.isCancellationRequested() ? "tidied" : "whole";
      });
      const handle = await runtime.start(agent, undefined, { persistence });
      await until(() => ran === 1, "it is at work");
      done.open();
      if (ends === "upon a signal") {
        await until(() => received.length === 1, "its work is done");
        await handle.signal("go");
      }
      expect(await handle.settled()).toMatchObject({ status: "cancelled", output: "tidied" });
      expect(ran).toBe(1);
      expect(received).toHaveLength(2);
      expect(received[1]).toBe(received[0]);
    },
  );
});

function open(options: Partial<RuntimeOptions> & { storage?: MemoryStorage; clock?: TestClock } = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = options.clock ?? new TestClock();
  const mortalStorage = mortal(storage);
  const runtime = createRuntime({
    random: countingRandom(opened.length + 1),
    development: false,
    owner: "test",
    ...options,
    storage: mortalStorage.storage,
    clock,
  });
  opened.push(runtime);
  return { runtime, clock, storage, mortalStorage };
}

type Run = (ctx: Parameters<Agent["main"]>[0]) => Promise<unknown>;

function agentOf(run: Run, name = "subject"): Agent {
  return defineAgent({ name, run });
}

function fail(error: Error): never {
  throw error;
}
