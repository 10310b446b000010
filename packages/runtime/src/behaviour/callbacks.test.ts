// Callbacks: the ends of children under one name, for a parent that waits for any of them.

import { CHILD_ENDED, type Callback, type ChildEvent } from "@holdfast/core";
import { releaseClaim, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, local, type Agent, type AgentContext } from "../agents/define.ts";
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
  const storage = (options.storage as MemoryStorage | undefined) ?? new MemoryStorage();
  const clock = (options.clock as TestClock | undefined) ?? new TestClock();
  const runtime = createRuntime({ ...options, storage, clock, development: false });
  opened.push(runtime);
  return { runtime, storage, clock };
}

const double = defineAgent({ name: "double", run: async (ctx, n: number) => ctx.run("work", () => n * 2) });
const failing = defineAgent({
  name: "failing",
  run: async () => {
    throw new Error("no luck");
  },
});
const listener = defineAgent({
  name: "listener",
  run: async (ctx) => `heard ${JSON.stringify(await ctx.waitForSignal("word"))}`,
});

function parent(
  run: (ctx: AgentContext) => Promise<unknown>,
  // oxlint-disable-next-line typescript/no-explicit-any -- agents of any input.
  agents: readonly Agent<any, any>[] = [double, failing, listener],
  name = "parent",
): Agent {
  return defineAgent({ name, agents, run: async (ctx) => run(ctx) });
}

describe("a callback", () => {
  test("a busy parent finds the ends of its children under one name, and no other word of them", async () => {
    const { runtime, clock } = open();
    const talking = defineAgent({
      name: "talking",
      run: async (ctx, n: number) => {
        ctx.reportProgress(n);
        return [n, ctx.signalParent("word"), ctx.parentNotice];
      },
    });
    const agent = parent(
      async (ctx) => {
        const ids = [1, 2].map((n) => ctx.spawnAgent(local(talking), n, { notify: "callback" }).sessionId);
        ids.push(ctx.spawnAgent(local(failing), undefined, { notify: "callback" }).sessionId);
        await ctx.sleep(60_000);
        const received: (readonly [number, ChildEvent])[] = [];
        while (ctx.hasSignal(CHILD_ENDED)) {
          const { child, event } = ctx.takeSignal<Callback>(CHILD_ENDED)!;
          received.push([ids.indexOf(child), event]);
        }
        return received.toSorted(([a], [b]) => a - b);
      },
      [talking, failing],
    );
    const handle = await runtime.start(agent);
    // Two signals of each end: the callback, and the one for a wait for this child.
    await until(async () => (await handle.session()).inbox === 6, "all have ended");
    await clock.advance(60_000);
    expect(await handle.result()).toEqual([
      [0, { type: "completed", output: [1, true, "callback"] }],
      [1, { type: "completed", output: [2, true, "callback"] }],
      [2, { type: "failed", error: expect.objectContaining({ message: "no luck" }) as unknown }],
    ]);
  });

  test("a waiting parent that was rebuilt is woken by a callback, once", async () => {
    const storage = new MemoryStorage();
    const agent = parent(async (ctx) => {
      ctx.spawnAgent(local(listener), undefined, { notify: "callback" });
      const { event } = await ctx.waitForSignal<Callback>(CHILD_ENDED);
      return [event, ctx.hasSignal(CHILD_ENDED)];
    });
    const first = open({ storage });
    const handle = await first.runtime.start(agent, undefined, { sessionId: "desk" });
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    vanishRuntime(first.runtime);
    for (const sessionId of ["desk", "desk-0"]) await releaseClaim(storage, sessionId);
    const { runtime } = open({ storage, agents: [agent, listener] });
    await runtime.recover();
    await runtime.signal("desk-0", "word", 7);
    expect(await runtime.handle("desk").result()).toEqual([{ type: "completed", output: "heard 7" }, false]);
  });

  test("a parent can wait for the output of a child that calls back as well", async () => {
    const { runtime } = open();
    const agent = parent(async (ctx) => {
      const child = ctx.spawnAgent(local(double), 4, { notify: "callback" });
      return ctx.waitForChild(child);
    });
    expect(await (await runtime.start(agent)).result()).toBe(8);
  });

  test.each([
    [
      "events that do not arrive cannot be waited for",
      (ctx: AgentContext) =>
        ctx.waitForChildEvent(ctx.spawnAgent(local(double), 1, { notify: "end" })) as Promise<unknown>,
      "whose events do not arrive",
    ],
    [
      "a child that calls back is not respawned",
      async (ctx: AgentContext) =>
        ctx.spawnAgent(local(double), 1, { notify: "callback", respawn: { maxAttempts: 2 } }),
      "with a callback cannot respawn",
    ],
    [
      "a callback cannot be forged",
      async (ctx: AgentContext) => ctx.signalChild(ctx.spawnAgent(local(double), 1), CHILD_ENDED),
      "cannot be the name of a signal",
    ],
  ])("%s", async (_what, run, text) => {
    const { runtime } = open();
    const handle = await runtime.start(parent(run));
    await expect(handle.result()).rejects.toThrow(text);
  });

  test("nobody can send a callback to a session", async () => {
    const { runtime } = open();
    const handle = await runtime.start(listener);
    await expect(handle.signal(CHILD_ENDED, {})).rejects.toThrow("cannot be the name of a signal");
  });
});
