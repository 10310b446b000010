// Dispatch of sessions that another coordinator of the same storage gave to their runners.

import type { Arrival } from "@holdfast/core";
import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { FORGET_MS } from "./dispatcher.ts";
import { PRUNE_MS } from "./due-scans.ts";
import { openDispatch } from "../testing/dispatch-stand.ts";

test("dispatcher-1: asking for the holder of a session does not change its claim", async () => {
  const { dispatcher, storage, create, clock } = await openDispatch();
  await create("s1");
  expect(await dispatcher.holds("r1", "s1")).toBe(false);
  expect(await dispatcher.holds("r1", "s1", 7)).toBe(false);
  const first = await storage.claim({ sessionId: "s1", owner: "r2", now: clock.now(), leaseMs: 1_000 });
  expect(await dispatcher.holds("r1", "s1")).toBe(false);
  expect(await dispatcher.holds("r2", "s1")).toBe(true);
  await clock.advance(1_000); // The claim is lost now.
  expect(await dispatcher.holds("r1", "s1")).toBe(false);
  const second = await storage.claim({ sessionId: "s1", owner: "r2", now: clock.now(), leaseMs: 1_000 });
  expect([first, second]).toMatchObject([
    { token: 1, losses: 0 },
    { token: 2, losses: 1 },
  ]);
});

test("arrival-router-1: storage is asked about a session whose token is not the known one", async () => {
  const { dispatcher, storage, create, clock } = await openDispatch();
  await create("s1");
  const claim = { sessionId: "s1", owner: "r1", leaseMs: 1_000 };
  await storage.claim({ ...claim, now: clock.now() });
  expect(await dispatcher.holds("r1", "s1")).toBe(true);
  await clock.advance(1_000);
  await storage.claim({ ...claim, owner: "r2", now: clock.now() });
  expect(await dispatcher.holds("r1", "s1", 2)).toBe(false);
});

test("arrival-router-1: a runner that is silent here does not keep a session that it lost through another coordinator", async () => {
  const { dispatcher, storage, create, clock } = await openDispatch();
  await create("s1");
  const claim = { sessionId: "s1", owner: "r1", leaseMs: 1_000 };
  await storage.claim({ ...claim, now: clock.now() });
  expect(await dispatcher.holds("r1", "s1")).toBe(true);
  await clock.advance(1_000);
  await storage.claim({ ...claim, owner: "r2", now: clock.now() });
  expect(await dispatcher.holds("r1", "s1")).toBe(false);
});

/**
 * Two coordinators of one storage. Commits through the other one are announced to this one only by
 * `announce`.
 */
async function two() {
  const clock = new TestClock();
  let announce: (arrival: Arrival) => void = () => {};
  const here = await openDispatch({
    clock,
    changes: () => ({ subscribe: (listener) => ((announce = listener), () => {}) }),
  });
  const signal = (signalId: string) =>
    here.storage.commit(
      [{ type: "send_signal", sessionId: "s1", signalId, name: "go", payload: "1" }],
      clock.now(),
    );
  return { ...here, signal, announce: (arrival: Arrival) => announce(arrival) };
}

const NEWS = { arrivals: [{ sessionId: "s1", awaited: true }] };

test("dispatcher-2: an arrival through another coordinator for a held session is found within a second", async () => {
  const { poll, create, clock, signal } = await two();
  await create("s1");
  expect((await poll("p1", 10_000)).claims).toHaveLength(1);
  const answer = poll("p2", 10_000, "p1");
  await turns(20);
  await signal("sig-1");
  await clock.advance(1_000);
  expect(await answer).toMatchObject(NEWS);
  const again = poll("p3", 2_500, "p2");
  await clock.advance(2_500);
  expect(await again).toMatchObject({ arrivals: [] }); // Once.
});

test("dispatcher-2: an arrival for a session that the other coordinator gave is found within a second", async () => {
  const { poll, create, clock, signal, storage } = await two();
  await create("s1");
  await storage.claim({ sessionId: "s1", owner: "r1", now: clock.now(), leaseMs: 15_000 });
  const answer = poll("p1", 10_000);
  await turns(20);
  await signal("sig-1");
  await clock.advance(1_000);
  expect(await answer).toMatchObject(NEWS);
});

test("arrival-router-1: an announced arrival is sent to the holder at once, even if another coordinator gave the session", async () => {
  const { poll, create, clock, signal, storage, announce } = await two();
  const answer = poll("p1", 10_000);
  await turns(20); // The first cycle has found nothing.
  await create("s1");
  await storage.claim({ sessionId: "s1", owner: "r1", now: clock.now(), leaseMs: 15_000 });
  await signal("sig-1");
  announce({ sessionId: "s1", awaited: true });
  await turns(20);
  expect(await answer).toMatchObject(NEWS);
});

test("arrival-router-1: a session with an announced arrival is given at once if no runner holds it", async () => {
  const { poll, create, announce } = await two();
  const answer = poll("p1", 10_000);
  await turns(20);
  await create("s1");
  announce({ sessionId: "s1", awaited: true });
  await turns(20);
  expect((await answer).claims).toHaveLength(1);
});

test("dispatcher-2: a runner without a free slot is sent arrivals for the sessions it holds", async () => {
  const clock = new TestClock();
  const { poll, create, storage } = await openDispatch({
    clock,
    free: 0,
    changes: () => ({ subscribe: () => () => {} }),
  });
  await create("s1");
  await storage.claim({ sessionId: "s1", owner: "r1", now: clock.now(), leaseMs: 15_000 });
  expect(await poll("p0", 0)).toMatchObject(NEWS); // It is new here.
  const answer = poll("p1", 10_000, "p0");
  await turns(20);
  await storage.commit(
    [{ type: "send_signal", sessionId: "s1", signalId: "sig-1", name: "go", payload: "1" }],
    clock.now(),
  );
  await clock.advance(1_000);
  expect(await answer).toMatchObject(NEWS);
});

test("dispatcher-3: a runner that was silent for long is forgotten with its sessions, and known again after a poll", async () => {
  const { dispatcher, clock, create, poll } = await openDispatch();
  await create("s1");
  expect((await poll("p1")).claims).toHaveLength(1);
  dispatcher.used("r1", "s1");
  await clock.advance(FORGET_MS - 1);
  dispatcher.sweep();
  expect(dispatcher.holdings.find("s1")?.runnerId).toBe("r1");
  await clock.advance(1);
  dispatcher.sweep();
  expect(dispatcher.holdings.find("s1")?.runnerId).toBeUndefined();
  expect(dispatcher.quietFor("r1")).toBe(Infinity);
  expect((await poll("p2")).claims).toHaveLength(1); // Its lease is over.
});

test("dispatcher-3: a command for a runner that has not polled here is kept until FORGET_MS", async () => {
  const { dispatcher, clock, create, poll, storage } = await openDispatch();
  await create("s1");
  await storage.claim({ sessionId: "s1", owner: "r1", now: clock.now(), leaseMs: 15_000 });
  expect(await dispatcher.holds("r1", "s1")).toBe(true); // The runner uses the session here.
  dispatcher.stop("r1", "s1");
  await clock.advance(FORGET_MS - 1);
  dispatcher.sweep();
  expect((await poll("p1")).commands).toMatchObject([{ type: "stop", sessionId: "s1" }]);
});

test("dispatcher-3: a command for a runner that never polled here is forgotten after FORGET_MS", async () => {
  const { dispatcher, clock, poll } = await openDispatch();
  dispatcher.stop("r1", "s1");
  await clock.advance(FORGET_MS);
  dispatcher.sweep();
  expect((await poll("p1")).commands).toEqual([]);
});

test("dispatcher-3: a runner whose poll waits is not forgotten, however long it waits", async () => {
  const { dispatcher, clock, create, poll } = await openDispatch();
  const answer = poll("p1", FORGET_MS + 60_000);
  await clock.advance(FORGET_MS);
  dispatcher.sweep();
  await create("s1");
  await clock.advance(1_000);
  expect((await answer).claims).toHaveLength(1);
});

test("waiting-sessions-4: a session waiting for runners of other coordinators is forgotten once it is not due any more", async () => {
  const { dispatcher, storage, create, clock } = await openDispatch();
  const start = async (sessionId: string) => {
    await create(sessionId);
    dispatcher.created((await storage.reader.session(sessionId))!);
    await turns(20);
  };
  for (const sessionId of ["s1", "s2", "s3"]) await start(sessionId);
  for (const sessionId of ["s1", "s2"])
    await storage.claim({ sessionId, owner: "r2", now: clock.now(), leaseMs: 3_600_000 });
  expect(dispatcher.load.waiting).toBe(3);
  await clock.advance(PRUNE_MS);
  await start("s4");
  expect(dispatcher.load.waiting).toBe(2);
});
