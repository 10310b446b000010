// DueSessions: a process that knows the agent of a due session runs it, however many others are due.

import { CorruptRecordError, HoldfastError, type CreateSession } from "@holdfast/core";
import {
  countingRandom,
  gate,
  readerWith,
  recordingTracer,
  storageWith,
  TestClock,
} from "@holdfast/testkit/test-runtime";
import { expect, test, vi } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

function creating(sessionId: string, name: string): CreateSession {
  const agent = { name, version: "1" };
  return { type: "create_session", sessionId, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

test("an agent that is known here does not starve behind 1,200 sessions of others", async () => {
  const storage = new MemoryStorage();
  const foreign = Array.from({ length: 1_200 }, (_, n) => creating(`foreign-${n}`, "foreign"));
  await storage.commit([...foreign, creating("known", "known")], 0);
  const known = defineAgent({ name: "known", run: async () => "done" });
  const runtime = createRuntime({
    storage,
    agents: [known],
    clock: new TestClock(),
    random: countingRandom(),
    development: false,
  });
  expect(await runtime.recover()).toEqual(["known"]);
  expect(await runtime.handle("known").result()).toBe("done");
  expect((await storage.reader.session("foreign-0"))?.status).toBe("submitted");
  await runtime.close();
});

test.each(["storage_unavailable", "storage_full", "internal"] as const)(
  "due-sessions-6: a recover() that fails with %s is followed by a look that adopts what is due",
  async (code) => {
    const memory = new MemoryStorage();
    await memory.commit([creating("known", "known")], 0);
    let isAway = true;
    const storage = storageWith(memory, {
      due: (query) => (isAway ? Promise.reject(new HoldfastError(code, "away")) : memory.due(query)),
    });
    const clock = new TestClock();
    const known = defineAgent({ name: "known", run: async () => "done" });
    const runtime = createRuntime({ storage, agents: [known], clock, random: countingRandom() });
    await expect(runtime.recover()).rejects.toMatchObject({ code });
    await clock.advance(5_000);
    isAway = false;
    await clock.advance(5_000);
    expect((await memory.reader.session("known"))?.status).toBe("completed");
    await runtime.close();
  },
);

test("a damaged session is reported, and does not keep other sessions from running", async () => {
  const storage = new MemoryStorage();
  const ids = ["s1", "s2", "s3"];
  await storage.commit(
    ids.map((sessionId) => creating(sessionId, "known")),
    0,
  );
  const reader = readerWith(storage.reader, {
    async session(sessionId) {
      if (sessionId === "s1") throw new CorruptRecordError("row s1", "it is not what was written");
      return storage.reader.session(sessionId);
    },
  });
  const known = defineAgent({ name: "known", run: async () => "done" });
  const tracer = recordingTracer();
  const runtime = createRuntime({
    storage: storageWith(storage, { reader }),
    agents: [known],
    clock: new TestClock(),
    random: countingRandom(),
    development: false,
    tracer,
  });
  expect(await runtime.recover()).toEqual(["s2", "s3"]);
  expect(await runtime.handle("s3").result()).toBe("done");
  expect(tracer.events.filter(({ type }) => type === "warned")).toMatchObject([{ sessionId: "s1" }]);
  await runtime.close();
});

// Two looks are under way at once, and the answer of the first, from before the session was parked, comes
// last.
test("due-sessions-5: an answer that a later one overtook does not delay due sessions", async () => {
  const memory = new MemoryStorage();
  const clock = new TestClock();
  const held = gate();
  let isHeld = false;
  const storage = storageWith(memory, {
    async due(query) {
      const due = await memory.due(query);
      if (isHeld) {
        isHeld = false;
        await held.opened;
      }
      return due;
    },
  });
  const sleeps = defineAgent({ name: "sleeps", run: (ctx, ms: number) => ctx.sleep(ms) });
  const runtime = createRuntime({
    storage,
    agents: [sleeps],
    clock,
    random: countingRandom(),
    development: false,
    warmMs: 0,
  });
  await runtime.start(sleeps, 1_000_000);
  await clock.advance(10);
  isHeld = true;
  const first = runtime.recover();
  const { sessionId } = await runtime.start(sleeps, 1_000);
  await clock.advance(10);
  held.open();
  await first;
  await clock.advance(2_000);
  expect((await memory.reader.session(sessionId))?.status).toBe("completed");
  await runtime.close();
});

test("due-sessions-3: a busy session is not looked at in a tight loop when sessions are kept for no time", async () => {
  const clock = new TestClock();
  const done = gate();
  const busy = defineAgent({
    name: "busy",
    run: async (ctx) => {
      const work = ctx.run("work", () => done.opened);
      await ctx.waitForSignal("go");
      await work;
    },
  });
  const runtime = createRuntime({
    storage: new MemoryStorage(),
    agents: [busy],
    clock,
    random: countingRandom(),
    development: false,
    warmMs: 0,
  });
  const handle = await runtime.start(busy);
  await clock.advance(10);
  const set = vi.spyOn(clock, "setTimer");
  await clock.advance(5_000);
  expect(set.mock.calls.length).toBeLessThanOrEqual(10);
  done.open();
  await handle.signal("go");
  await clock.advance(10);
  expect((await handle.session()).status).toBe("completed");
  await runtime.close();
});

test("due-sessions-5: a time that is asked for while storage looks for due sessions is not forgotten", async () => {
  const memory = new MemoryStorage();
  const clock = new TestClock();
  const held = gate();
  const storage = storageWith(memory, {
    async due(query) {
      const due = await memory.due(query);
      await held.opened;
      return due;
    },
  });
  const deadlineAt = clock.now() + 1_000_000; // A later time that the answer knows of.
  await memory.commit([{ ...creating("foreign", "foreign"), deadlineAt }], clock.now());
  const runtime = createRuntime({ storage, clock, random: countingRandom(), development: false });
  const recovering = runtime.recover();
  await runtime.cancel("foreign", { graceMs: 1_000 });
  held.open();
  await recovering;
  await clock.advance(1_000);
  expect((await memory.reader.session("foreign"))?.status).toBe("cancelled");
  await runtime.close();
});

test("a session is released, and looked for again, by delays that a corrected clock does not stretch", async () => {
  const [storage, clock] = [new MemoryStorage(), new TestClock()];
  const waiting = defineAgent({ name: "waiting", run: (ctx) => ctx.waitForSignal("go") });
  const random = countingRandom();
  let isAway = false;
  const due = vi.fn(async (query: Parameters<MemoryStorage["due"]>[0]) => {
    if (isAway) throw new CorruptRecordError("the due sessions", "they cannot be read");
    return storage.due(query);
  });
  const runtime = createRuntime({
    storage: storageWith(storage, { due }),
    agents: [waiting],
    clock,
    random,
    development: false,
    warmMs: 1_000,
  });
  const YEAR_MS = 365 * 86_400_000;
  clock.jump(YEAR_MS); // Wrong, while the session begins to wait ...
  await runtime.start(waiting, undefined, { sessionId: "s1" });
  await clock.advance(1);
  clock.jump(-YEAR_MS); // ... and corrected.
  isAway = true;
  await clock.advance(20_000);
  expect(runtime.live).toBe(0);
  const asked = due.mock.calls.length;
  expect(asked).toBeGreaterThan(0);

  clock.jump(YEAR_MS);
  await clock.advance(1_500);
  clock.jump(-YEAR_MS);
  isAway = false;
  await clock.advance(20_000);
  expect(due.mock.calls.length).toBeGreaterThan(asked + 1);
  await runtime.close();
  expect(clock.armed).toBe(0);
});
