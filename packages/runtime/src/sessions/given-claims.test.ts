// A runtime that is given claims, over a storage in memory that refuses to claim and load.

import { storageWith, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import type { AgentStorage, Change } from "@holdfast/core";
import { defineAgent } from "../agents/define.ts";
import type { Watchdog } from "../isolation/watchdog.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const waiting = defineAgent({ name: "waiting", run: async (ctx) => ctx.waitForSignal("go") });
const sessionId = "s";
const SIGNAL = { type: "send_signal", sessionId, signalId: "x", name: "go", payload: "1" } as const;

describe("a claim that a runtime is given", () => {
  test("a session is driven under the given claim without a request to claim or load it", async () => {
    const { runtime, memory, clock, give, asked, committed } = await open();
    runtime.drive(await give());
    expect(runtime.live).toBe(1);
    await memory.commit([SIGNAL], clock.now());
    await until(() => committed.length > 0, "it commits");
    expect(committed[0]).toMatchObject({ type: "commit_batch", token: 2 });
    expect(asked).toEqual([]);
  });

  test("given-claims-1: a claim that is older than allowed is released", async () => {
    const { runtime, clock, give, released } = await open();
    const claim = await give();
    clock.stall(2_001);
    runtime.drive(claim);
    await turns(5);
    expect({ live: runtime.live, released: released() }).toEqual({ live: 0, released: [2] });
    runtime.drive(await give());
    expect(runtime.live).toBe(1);
  });

  test("given-claims-2: the claim of a session that cannot run here is released, but not at once", async () => {
    const { runtime, clock, give, released } = await open({ agents: [] });
    runtime.drive(await give());
    await clock.advance(4_999);
    expect({ live: runtime.live, released: released() }).toEqual({ live: 0, released: [] });
    await clock.advance(1);
    expect(released()).toEqual([2]);
  });

  test.each([
    ["is paused", { type: "pause_session", sessionId }],
    ["has ended", { type: "request_cancel", sessionId, mode: "hard", graceMs: 0 }],
  ] as const)("given-claims-2: the claim of a session that %s is released", async (_, change) => {
    const { runtime, memory, clock, give, released } = await open();
    const claim = await give();
    await memory.commit([change], clock.now());
    runtime.drive({ ...claim, snapshot: (await memory.load(sessionId))! });
    expect(runtime.live).toBe(0);
    await clock.advance(5_000);
    expect(released()).toContain(2);
  });

  test("given-claims-3: a signal that is announced in the turn of the claim is received (S2)", async () => {
    const { runtime, memory, clock, give } = await open();
    const claim = await give();
    const ended = runtime.handle(sessionId).settled();
    await turns(5);
    runtime.drive(claim);
    void memory.commit([SIGNAL], clock.now());
    expect(await Promise.race([ended, turns(50)])).toMatchObject({ output: 1 });
  });

  test("a claim is not released while its session is driven, however long that takes", async () => {
    const { runtime, clock, give, released } = await open({ warmMs: Infinity });
    runtime.drive(await give());
    await clock.advance(60_000);
    expect({ live: runtime.live, released: released() }).toEqual({ live: 1, released: [] });
  });

  test("the same claim that is given twice changes nothing", async () => {
    const { runtime, give, released, clock } = await open({ warmMs: Infinity });
    const claim = await give();
    runtime.drive(claim);
    await turns(5);
    runtime.drive(claim);
    await clock.advance(10_000);
    expect({ live: runtime.live, released: released() }).toEqual({ live: 1, released: [] });
  });

  test("a newer claim of a session that is driven replaces the older one (live-sessions-2)", async () => {
    const { runtime, memory, clock, give, released, committed } = await open();
    runtime.drive(await give());
    await turns(5);
    clock.stall(1_500); // The lease has passed, and nobody noticed it here.
    runtime.drive(await give());
    await turns(5);
    expect({ live: runtime.live, released: released() }).toEqual({ live: 1, released: [2] });
    await memory.commit([SIGNAL], clock.now());
    await turns(20);
    expect(committed.at(-1)).toMatchObject({ token: 3, session: { status: "completed" } });
  });

  test("a session that is poison is parked under the given claim", async () => {
    const watchdog: Partial<Watchdog> = {
      claims: () => {},
      began: () => 0,
      returned: () => {},
      ended: () => {},
      renewedAgoMs: () => undefined,
      isCharged: () => true,
      placeOf: () => undefined,
      clear: () => {},
      expectAbandon: () => {},
    };
    const { runtime, memory, give, released } = await open({ watchdog: watchdog as Watchdog });
    runtime.drive(await give());
    await turns(20);
    expect(await memory.reader.session(sessionId)).toMatchObject({ status: "paused", pauseReason: "poison" });
    expect(released()).toEqual([2]);
  });

  test("segment-commit-2: a session that diverges and may return is released as diverged, and nothing is committed", async () => {
    const other = defineAgent({ name: "waiting", run: async (ctx) => ctx.waitForSignal("another") });
    const { runtime, memory, give, committed } = await open({ agents: [other] });
    runtime.drive({ ...(await give()), mayReturn: true });
    await turns(20);
    expect(committed).toEqual([{ type: "release_claim", sessionId, token: 2, diverged: true }]);
    expect(await memory.reader.session(sessionId)).toMatchObject({ status: "waiting" });
    runtime.drive(await give());
    await turns(20);
    expect(await memory.reader.session(sessionId)).toMatchObject({ pauseReason: "nondeterminism" });
  });

  test("a session is released once its checkpoint is committed, when the process says so", async () => {
    const inTurns = defineAgent({
      name: "waiting",
      run: async (ctx) => (ctx.turn > 0 ? "done" : ctx.checkpoint({ got: await ctx.waitForSignal("go") })),
    });
    const { runtime, memory, clock, give, released } = await open({ agents: [inTurns] });
    await memory.commit([SIGNAL], clock.now());
    runtime.releaseWaiting({ atCheckpoints: true });
    runtime.drive(await give());
    await turns(20);
    expect(released()).toEqual([2]);
    expect(await memory.reader.session(sessionId)).toMatchObject({ status: "working", turn: 1 });
  });

  test("V1: a session of another version of its agent is parked under the given claim", async () => {
    const newer = defineAgent({ name: "waiting", version: "2", run: async () => 2 });
    const { runtime, memory, give } = await open({ agents: [newer] });
    runtime.drive(await give());
    await turns(20);
    expect(await memory.reader.session(sessionId)).toMatchObject({
      status: "paused",
      pauseReason: "no_matching_runner",
    });
  });

  test("a runtime that is closed releases the claims that it is given", async () => {
    const { runtime, give, released } = await open();
    await runtime.close();
    runtime.drive(await give());
    await turns(5);
    expect({ live: runtime.live, released: released() }).toEqual({ live: 0, released: [2] });
  });
});

test("a session that a coordinator did not give is not claimed when something arrives for it", async () => {
  const { runtime, memory, asked, clock } = await open();
  await memory.commit([SIGNAL], clock.now());
  await turns(10);
  expect({ live: runtime.live, asked }).toEqual({ live: 0, asked: [] });
});

/** A stored session that waits, and a runtime that runs what it is given. */
async function open(options: Partial<RuntimeOptions> = {}) {
  const clock = new TestClock();
  const memory = new MemoryStorage();
  const started = createRuntime({ storage: memory, clock, development: false });
  await started.start(waiting, undefined, { sessionId });
  await turns(5);
  await started.close();
  const asked: string[] = [];
  const committed: Change[] = [];
  const storage = storageWith(memory, {
    claim: async () => {
      asked.push("claim");
      return { status: "busy", owner: "another runner" };
    },
    load: async () => {
      asked.push("load");
      return undefined;
    },
    due: async () => ({ sessionIds: [], schedules: [] }),
    commit: (changes, now) => {
      committed.push(...changes);
      return memory.commit(changes, now);
    },
  } satisfies Partial<AgentStorage>);
  const runtime: Runtime = createRuntime({
    storage,
    agents: [waiting],
    clock,
    leaseMs: 60_000,
    dispatched: { claimAgeMs: 2_000 },
    development: false,
    ...options,
  });
  return {
    runtime,
    memory,
    clock,
    asked,
    committed,
    /** Claims the session as a coordinator does. */
    give: async () => {
      const claimed = await memory.claim({ sessionId, owner: "rnr", now: clock.now(), leaseMs: 1_000 });
      if (claimed.status !== "claimed") throw new Error(claimed.status);
      const snapshot = (await memory.load(sessionId))!;
      return { token: claimed.token, snapshot, claimedAt: clock.monotonic() };
    },
    released: () => committed.flatMap((change) => (change.type === "release_claim" ? [change.token] : [])),
  };
}
