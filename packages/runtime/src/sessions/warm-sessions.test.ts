// WarmSessions: how many waiting sessions a runtime keeps in memory, and that evicted ones miss no arrival
// (M1, due-sessions-3).

import { countingRandom, gate, storageWith, TestClock, turns } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";
import { WarmSessions } from "./warm-sessions.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

/** A runtime whose clock does not advance, so that it evicts sessions only for want of room. */
function open(options: Partial<RuntimeOptions> = {}) {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const runtime = createRuntime({ storage, clock, random: countingRandom(), development: false, ...options });
  opened.push(runtime);
  return { runtime, storage, clock };
}

/** Waits twice for "go", and counts how often its code is called. */
function twice(): { readonly agent: Agent; readonly calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const agent = defineAgent({
    name: "twice",
    run: async (ctx) => {
      calls.set(ctx.sessionId, (calls.get(ctx.sessionId) ?? 0) + 1);
      return [await ctx.waitForSignal("go"), await ctx.waitForSignal("go")];
    },
  });
  return { agent, calls };
}

const SETTLED_TURNS = 60;

describe("a bound on warm sessions", () => {
  test(
    "a runtime with default options keeps 200 of 1,200 sessions that wait, and each gets its signal",
    ofCampaign,
    async () => {
      const { runtime } = open();
      const { agent } = twice();
      const handles = await Promise.all(Array.from({ length: 1_200 }, () => runtime.start(agent)));
      await turns(SETTLED_TURNS);
      expect(runtime.live).toBe(200);
      const results = Promise.all(handles.map((handle) => handle.result()));
      await Promise.all(handles.map((handle, i) => handle.signal("go", i)));
      await Promise.all(handles.map((handle, i) => handle.signal("go", i + 1)));
      expect(await results).toEqual(handles.map((_, i) => [i, i + 1]));
      expect(runtime.live).toBe(0);
    },
  );

  test("the session that was used least recently is evicted first", async () => {
    const { runtime } = open({ warmSessions: 2 });
    const { agent, calls } = twice();
    const start = (sessionId: string) => runtime.start(agent, undefined, { sessionId });
    const [first, second] = [await start("first"), await start("second")];
    await turns(SETTLED_TURNS);
    await first.signal("go", 1);
    await turns(SETTLED_TURNS);
    await start("third");
    await turns(SETTLED_TURNS);
    expect(runtime.live).toBe(2);
    await second.signal("go", 1);
    await first.signal("go", 2);
    expect(await first.result()).toEqual([1, 2]);
    await turns(SETTLED_TURNS);
    expect(Object.fromEntries(calls)).toMatchObject({ second: 2 });
  });

  test("a session that was given much text makes room by its size, and keeps only the newest warm", async () => {
    const { runtime } = open({ warmBytes: 200_000 });
    const { agent } = twice();
    for (let i = 0; i < 5; i++) await runtime.start(agent);
    await turns(SETTLED_TURNS);
    expect(runtime.live).toBe(5);
    await runtime.start(agent, "x".repeat(60_000));
    await turns(SETTLED_TURNS);
    expect(runtime.live).toBe(4);
  });

  test("a session whose checkpoint dropped its text is small again", async () => {
    const { runtime } = open({ warmBytes: 100_000 });
    const forgets = defineAgent({
      name: "forgets",
      run: async (ctx) => {
        if (ctx.state === "small") return ctx.waitForSignal("go");
        await ctx.run("read", () => "x".repeat(100_000));
        return ctx.checkpoint("small");
      },
    });
    await runtime.start(forgets);
    await turns(SETTLED_TURNS);
    expect(runtime.live).toBe(1);
  });

  test("a session with a running task is kept, however little room there is", async () => {
    const { runtime } = open({ warmSessions: 0 });
    const done = gate();
    const busy = defineAgent({
      name: "busy",
      run: async (ctx) => {
        const work = ctx.run("work", () => done.opened);
        await ctx.waitForSignal("go");
        await work;
        return "fine";
      },
    });
    const handle = await runtime.start(busy);
    const { agent } = twice();
    for (let i = 0; i < 5; i++) await runtime.start(agent);
    await turns(SETTLED_TURNS);
    expect(runtime.live).toBe(1);
    done.open();
    await handle.signal("go");
    expect(await handle.result()).toBe("fine");
  });

  test("wherever a signal falls around an eviction, the session gets it", async () => {
    for (let delay = 0; delay < 40; delay++) {
      const { runtime } = open({ warmSessions: 1 });
      const { agent } = twice();
      const handle = await runtime.start(agent);
      await turns(10);
      const evicting = runtime.start(agent);
      for (let hop = 0; hop < delay % 8; hop++) await Promise.resolve();
      await turns(delay >> 3);
      await handle.signal("go", delay);
      await evicting;
      await handle.signal("go", delay + 1);
      await turns(SETTLED_TURNS);
      const { status, output } = await handle.session();
      expect({ status, output }, `after ${delay}`).toEqual({
        status: "completed",
        output: `[${delay},${delay + 1}]`,
      });
    }
  });

  test("a signal that is stored while the release of an evicted session is under way brings it back", async () => {
    const memory = new MemoryStorage();
    const held = gate();
    const storage = storageWith(memory, {
      async commit(changes, now) {
        if (changes.some(({ type }) => type === "release_claim")) await held.opened;
        return memory.commit(changes, now);
      },
    });
    const { runtime } = open({ storage, warmSessions: 0 });
    const { agent } = twice();
    const handle = await runtime.start(agent);
    await turns(SETTLED_TURNS);
    expect(runtime.live).toBe(0);
    const signal = { type: "send_signal", sessionId: handle.sessionId, name: "go", payload: "1" } as const;
    await memory.commit(
      [
        { ...signal, signalId: "a" },
        { ...signal, signalId: "b" },
      ],
      1,
    );
    held.open();
    await turns(SETTLED_TURNS);
    expect((await handle.session()).status).toBe("completed");
  });
});

describe("the list of warm sessions", () => {
  const limits = { sessionsMax: 3, bytesMax: 100 };

  test("a session that is kept again becomes the newest, with the bytes that it has now", () => {
    const warm = new WarmSessions(limits);
    warm.keep({ sessionId: "a", until: 1, bytes: 40 });
    warm.keep({ sessionId: "b", until: 2, bytes: 40 });
    warm.keep({ sessionId: "a", until: 3, bytes: 70 });
    expect(warm.oldest).toMatchObject({ sessionId: "b" });
    expect(warm.isOverLimit).toBe(true);
    warm.delete("b");
    expect(warm.isOverLimit).toBe(false);
    expect(warm.all()).toMatchObject([{ sessionId: "a", until: 3, bytes: 70 }]);
  });

  test("a session that is kept without a time limit is evicted in its order, too", () => {
    const warm = new WarmSessions(limits);
    for (const sessionId of ["a", "b", "c", "d"]) warm.keep({ sessionId, until: Infinity, bytes: 1 });
    expect(warm.isOverLimit).toBe(true);
    expect(warm.oldest).toMatchObject({ sessionId: "a" });
  });
});
