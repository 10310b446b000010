// Storage that is unavailable for a moment, or full: sessions that were due, woken or running resume once it
// answers (S2, D1).

import { HoldfastError, UnavailableError, type AgentStorage, type Change } from "@holdfast/core";
import {
  countingRandom,
  gate,
  readerWith,
  storageWith,
  TestClock,
  turns,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent, type RunAgent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const waits = agentOf(async (ctx) => ctx.waitForSignal("go"));
const sleeps = agentOf(async (ctx) => ctx.sleep(60_000).then(() => "slept"));

describe("a session that only waits is brought back although storage was away", () => {
  test.each(["row", "claim", "load"] as const)(
    "a waiting session gets a signal although storage first refuses its %s",
    async (what) => {
      const { runtime, clock, faults } = open();
      const handle = await runtime.start(waits);
      await clock.advance(5_000);
      expect(runtime.live).toBe(0);
      const result = handle.result();
      await turns(10);
      faults.refuse(what, 3);
      await handle.signal("go", 7);
      await clock.advance(5_000);
      expect(await result).toBe(7);
    },
  );

  test.each(["claim", "load"] as const)(
    "a waiting session resumes at its time although storage first refuses its %s",
    async (what) => {
      const { runtime, clock, faults } = open();
      const handle = await runtime.start(sleeps);
      await clock.advance(5_000);
      faults.refuse(what, 3);
      const result = handle.result();
      await clock.advance(60_000);
      expect(await result).toBe("slept");
    },
  );

  // The session is resumed before its driver has released it. Then no process holds it, and no arrival says
  // so.
  test.each([1, 3])(
    "a session whose pause was taken back resumes although its row cannot be read %i times",
    async (times) => {
      const { runtime, clock, faults } = open();
      const ready = gate();
      const handle = await runtime.start(agentOf(async (ctx) => ctx.run("work", () => ready.opened)));
      await turns(10);
      await handle.pause();
      await turns(10);
      await handle.unpause();
      faults.refuse("row", times);
      ready.open();
      await clock.advance(5_000);
      expect(await handle.session()).toMatchObject({ status: "completed" });
    },
  );

  test("a waiting session resumes at its time although its release failed", async () => {
    const { runtime, clock, faults } = open();
    const handle = await runtime.start(sleeps);
    await turns(10);
    faults.refuse("release", 1);
    const result = handle.result();
    await clock.advance(70_000);
    expect(await result).toBe("slept");
  });
});

// The parent's process loads the child for its parent. An arrival meanwhile is not announced again.
test("a child gets a signal that arrived while storage refused its load", async () => {
  const child = defineAgent({ name: "child", run: (ctx) => ctx.waitForSignal("go") });
  const parent = defineAgent({
    name: "parent",
    agents: [child],
    run: async (ctx) => {
      const started = ctx.spawnAgent(local(child), null);
      await ctx.waitForSignal("look");
      return ctx.waitForChild(started);
    },
  });
  const { runtime, clock, faults } = open();
  const handle = await runtime.start(parent);
  await clock.advance(5_000);
  expect(runtime.live).toBe(0);
  const childId = `${handle.sessionId}-0`;
  faults.refuseLoadOf(childId, () => runtime.signal(childId, "go", 7));
  await handle.signal("look");
  await clock.advance(900); // The release of the parent, a second later, would look for the child.
  expect(await Promise.race([handle.result(), turns(100).then(() => "waits")])).toBe(7);
});

// It was no failure of the task's, and must not use up one of its three.
test("a task whose conversation cannot be read stops asking once the runtime is closed", async () => {
  const ask = defineTask({ name: "ask", run: () => 0 });
  const agent = defineAgent({
    name: "talks",
    tasks: [ask],
    run: async (ctx) => {
      ctx.appendEntry({ role: "user", content: "hello" });
      return ctx.scheduleTask(ask, ctx.conversation());
    },
  });
  const { runtime, clock, faults } = open();
  faults.refuse("conversation", 50);
  await runtime.start(agent);
  await turns(10);
  const closing = runtime.close();
  await clock.advance(1_000);
  await closing;
  const left = faults.left("conversation");
  expect(left).toBeLessThan(50);
  await clock.advance(5_000);
  expect(faults.left("conversation")).toBe(left);
});

test("a task whose conversation cannot be read waits until it can", async () => {
  const { runtime, clock, faults } = open();
  let attempts = 0;
  const asks = defineTask({
    name: "ask",
    run: (entries: unknown) => {
      attempts++;
      return (entries as readonly unknown[]).length;
    },
  });
  const agent = defineAgent({
    name: "agent",
    tasks: [asks],
    run: async (ctx) => {
      ctx.appendEntry({ role: "user", content: "hello" });
      return ctx.scheduleTask("ask", ctx.conversation());
    },
  });
  faults.refuse("conversation", 5);
  const handle = await runtime.start(agent);
  await clock.advance(5_000);
  expect(await handle.result()).toBe(1);
  expect(attempts).toBe(1);
});

describe("a session that storage has no room for", () => {
  test("a session without room in storage notifies its waiters, repeats no work, and resumes once there is room", async () => {
    const { runtime, clock, faults } = open();
    let ran = 0;
    const handle = await runtime.start(agentOf(async (ctx) => ctx.run("work", () => ++ran)));
    faults.refuse("batch", 3);
    await turns(20);
    expect(await handle.settled()).toMatchObject({ status: "released", error: { code: "storage_full" } });
    await clock.advance(10_000);
    expect(await handle.session()).toMatchObject({ status: "completed" });
    expect(ran).toBe(2); // Its first outcome could not be stored.
  });
});

describe("starting", () => {
  // The session is stored and claimed, so no other process would ever run it.
  test("a session whose creation was answered too late continues, although its row could not be read", async () => {
    const { runtime, clock, faults } = open();
    faults.loseReply();
    faults.refuse("row", 1);
    const failed = expect(runtime.start(sleeps, undefined, { sessionId: "late" })).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    await clock.advance(5_000);
    await failed;
    const result = runtime.handle("late").result();
    await clock.advance(60_000);
    expect(await result).toBe("slept");
  });
});

test("a session whose creation was answered by an error continues if it was stored", async () => {
  const { runtime, clock, faults } = open();
  faults.loseReply();
  faults.refuse("creation again", 1);
  const failed = expect(runtime.start(sleeps, undefined, { sessionId: "full" })).rejects.toMatchObject({
    code: "storage_full",
  });
  await clock.advance(5_000);
  await failed;
  await clock.advance(70_000);
  expect(await runtime.handle("full").result()).toBe("slept");
});

test("a runtime that vanishes while it closes takes its listeners off once", async () => {
  const before = process.getMaxListeners();
  const { runtime } = open();
  const closing = runtime.close();
  vanishRuntime(runtime);
  await closing;
  expect(process.getMaxListeners()).toBe(before);
});

type Refused = "row" | "claim" | "load" | "conversation" | "release" | "batch" | "creation again";

function open() {
  const clock = new TestClock();
  const inner = new MemoryStorage();
  const left = new Map<Refused, number>();
  const refusedLoads = new Map<string, () => Promise<unknown>>();
  let losesReply = false;
  const refuses = (what: Refused): boolean => {
    const count = left.get(what) ?? 0;
    left.set(what, count - 1);
    return count > 0;
  };
  const away = new UnavailableError("storage_unavailable", "away for a moment");
  const full = new HoldfastError("storage_full", "no room");
  const isOf = (changes: readonly Change[], type: Change["type"]) =>
    changes.some((change) => change.type === type);
  const asked = <T>(what: Refused, ask: () => Promise<T>): Promise<T> =>
    refuses(what) ? Promise.reject(away) : ask();
  const storage: AgentStorage = storageWith(inner, {
    claim: (claim) => asked("claim", () => inner.claim(claim)),
    load: async (sessionId) => {
      const meanwhile = refusedLoads.get(sessionId);
      if (meanwhile === undefined) return asked("load", () => inner.load(sessionId));
      refusedLoads.delete(sessionId);
      await meanwhile();
      throw away;
    },
    conversation: (sessionId, leaf) => asked("conversation", () => inner.conversation(sessionId, leaf)),
    reader: readerWith(inner.reader, {
      session: (sessionId) => asked("row", () => inner.reader.session(sessionId)),
    }),
    async commit(changes, now) {
      if (isOf(changes, "release_claim") && refuses("release")) throw full;
      if (isOf(changes, "commit_batch") && refuses("batch")) throw full;
      if (isOf(changes, "create_session") && !losesReply && refuses("creation again")) throw full;
      const results = await inner.commit(changes, now);
      if (!losesReply) return results;
      losesReply = false;
      throw away;
    },
  });
  const runtime = createRuntime({
    storage,
    clock,
    random: countingRandom(),
    warmMs: 1_000,
    development: false,
  });
  opened.push(runtime);
  const faults = {
    refuse: (what: Refused, times: number) => void left.set(what, times),
    left: (what: Refused) => left.get(what),
    /** Refuses it once, after what happens meanwhile. */
    refuseLoadOf: (sessionId: string, meanwhile: () => Promise<unknown>) =>
      void refusedLoads.set(sessionId, meanwhile),
    loseReply: () => void (losesReply = true),
  };
  return { runtime, clock, faults };
}

function agentOf<T>(run: RunAgent<unknown, T, unknown>["run"]): Agent<unknown, T> {
  return defineAgent<unknown, T>({ name: "agent", run });
}
