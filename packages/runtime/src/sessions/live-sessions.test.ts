// LiveSessions: events between the steps of activating a session.

import { gate, storageWith, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";
import type { Watchdog } from "../isolation/watchdog.ts";

const waits = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("never") });

test("a wait for a session that ended before it could be claimed here gets its end", async () => {
  const memory = new MemoryStorage();
  const id = { sessionId: "s" };
  const open = (storage = memory as ReturnType<typeof storageWith>) =>
    createRuntime({ storage, agents: [waits], clock: new TestClock(), development: false });
  const first = open();
  await first.start(waits, undefined, id);
  await first.close();

  const held = gate();
  const second = open(
    storageWith(memory, {
      async claim(claim) {
        await held.opened;
        return memory.claim(claim);
      },
    }),
  );
  const resuming = second.resume("s");
  await turns(5);
  await memory.commit([{ type: "request_cancel", ...id, mode: "hard", graceMs: 0 }], 1);
  await turns(5); // The end is noticed before the wait begins.
  const settled = second.handle("s").settled();
  await turns(5);
  held.open();
  await resuming;
  expect(await Promise.race([settled, turns(50)])).toMatchObject({ status: "cancelled" });
  await second.close();
});

test("a session whose start is overtaken by the end of its runtime does not begin", async () => {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, clock: new TestClock(), development: false });
  const starting = runtime.start(waits);
  await Promise.all([expect(starting).rejects.toThrow("the runtime is closed"), runtime.close()]);
  expect(runtime.live).toBe(0);
  expect(await storage.reader.sessions({ limit: 1 })).toEqual([]);
});

test("a suspect that waits is no longer a suspect (W1)", async () => {
  const cleared: string[] = [];
  const watchdog: Partial<Watchdog> = {
    claims: () => {},
    began: () => 0,
    returned: () => {},
    ended: () => {},
    renewedAgoMs: () => undefined,
    opened: () => {},
    closed: () => {},
    isSuspect: () => true,
    isCharged: () => false,
    expectAbandon: () => {},
    clear: (sessionId) => void cleared.push(sessionId),
  };
  const clock = new TestClock();
  const storage = new MemoryStorage();
  const runtime = createRuntime({
    storage,
    clock,
    watchdog: watchdog as Watchdog,
    warmMs: 10,
    development: false,
  });
  const { sessionId } = await runtime.start(waits);
  await until(async () => (await storage.reader.session(sessionId))?.status === "waiting", "it waits");
  expect(cleared).toEqual([]);
  await clock.advance(10);
  expect(runtime.live).toBe(0);
  expect(cleared).toEqual([sessionId]);
  await runtime.close();
});

test("a second close of a runtime waits for the first one", async () => {
  const handler = gate();
  const works = defineAgent({
    name: "works",
    run: async (ctx) =>
      ctx.run("work", async (task) => {
        void task.signal; // The handler heeds its signal, so closing waits for it.
        await handler.opened;
      }),
  });
  const runtime = createRuntime({
    storage: new MemoryStorage(),
    clock: new TestClock(),
    development: false,
  });
  await runtime.start(works);
  await turns(5);
  let closed = 0;
  const closing = [runtime.close(), runtime.close()].map((each) => each.then(() => closed++));
  await turns(20);
  expect(closed).toBe(0);
  handler.open();
  await Promise.all(closing);
  expect(closed).toBe(2);
});

test.each(Array.from({ length: 10 }, (_, hops) => hops))(
  "a signal that is stored %i microtasks after a session was loaded is received (S2)",
  async (hops) => {
    const memory = new MemoryStorage();
    const waiting = defineAgent({ name: "waiting", run: async (ctx) => ctx.waitForSignal("go") });
    const id = { sessionId: "s" };
    const openOver = (storage: ReturnType<typeof storageWith>) =>
      createRuntime({ storage, agents: [waiting], clock: new TestClock(), development: false });
    const first = openOver(memory);
    await first.start(waiting, undefined, id);
    await turns(5);
    await first.close();
    const second = openOver(
      storageWith(memory, {
        async load(sessionId) {
          const snapshot = await memory.load(sessionId);
          void (async () => {
            for (let i = 0; i < hops; i++) await Promise.resolve();
            await memory.commit([{ type: "send_signal", ...id, signalId: "x", name: "go", payload: "1" }], 1);
          })();
          return snapshot;
        },
      }),
    );
    const handle = await second.resume("s");
    expect(await Promise.race([handle.settled(), turns(50)])).toMatchObject({ output: 1 });
    await second.close();
  },
);
