// Dispatch where answers and notices get lost: nothing is given twice, nothing is forgotten.

import { UnavailableError } from "@holdfast/core";
import { turns } from "@holdfast/testkit/test-runtime";
import { expect, test, vi } from "vitest";
import { openDispatch } from "../testing/dispatch-stand.ts";
import { DRAIN, Seat } from "./seat.ts";

test("seat-1: a poll that is asked again gets what it got, and nothing besides", async () => {
  const { poll, create } = await openDispatch();
  await create("s1");
  const first = await poll("p1");
  await create("s2");
  expect((await poll("p1")).claims).toEqual(first.claims);
  expect(first.claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
});

test("seat-1: and nothing that was given back meanwhile", async () => {
  const { poll, create, clock } = await openDispatch();
  await create("s1");
  expect((await poll("p1")).claims).toHaveLength(1);
  await clock.advance(2_000);
  expect((await poll("p1")).claims).toEqual([]);
});

// Its runner reached another coordinator of the same storage.
test.each([
  ["something", [{ type: "started", seq: 0, at: 0 }]],
  ["a batch without records", []], // Such as one that only pays for what starts with it.
] as const)("dispatcher-2: a claim under which %s was committed is not given back", async (_, records) => {
  const { poll, create, clock, storage } = await openDispatch();
  await create("s1");
  const [claim] = (await poll("p1")).claims;
  await clock.advance(1);
  const batch = { firstSeq: 0, records, entries: [], consumed: [] };
  await storage.commit(
    [{ type: "commit_batch", sessionId: "s1", token: claim!.token, ...batch }],
    clock.now(),
  );
  await clock.advance(2_000);
  const taken = { sessionId: "s1", owner: "r2", now: clock.now(), leaseMs: 1 };
  expect(await storage.claim(taken)).toEqual({ status: "busy", owner: "r1" });
});

test("dispatcher-2: a claim that storage took long for is not told", async () => {
  const { poll, create, clock } = await openDispatch({ loadMs: 2_000 });
  await create("s1");
  const answer = poll("p1", 3_000);
  await clock.advance(3_000);
  expect((await answer).claims).toEqual([]);
});

test("dispatcher-5: what nobody was told of is found while somebody waits", async () => {
  const { poll, create, clock } = await openDispatch();
  const answer = poll("p1", 10_000);
  await turns(20);
  await create("s1");
  await clock.advance(1_000);
  expect((await answer).claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
});

test("dispatcher-6: a session that storage cannot give keeps no other one of its round from its runner", async () => {
  let isBroken = true;
  const failing = () => {
    if (isBroken) throw new UnavailableError("storage_unavailable", "away");
  };
  for (const broken of ["load", "claim", "claim answer"] as const) {
    isBroken = true;
    const { poll, create, clock, storage } = await openDispatch({
      free: 3,
      changes: (real) => ({
        async load(sessionId) {
          if (broken === "load" && sessionId === "s2") failing();
          return real.load(sessionId);
        },
        async claim(claim) {
          if (broken === "claim" && claim.sessionId === "s2") failing();
          const result = await real.claim(claim);
          if (broken === "claim answer" && claim.sessionId === "s2") failing();
          return result;
        },
      }),
    });
    for (const sessionId of ["s1", "s2", "s3"]) await create(sessionId);
    const first = await poll("p1", 10_000);
    expect(first.claims.map(({ sessionId }) => sessionId).sort()).toEqual(["s1", "s3"]);
    isBroken = false;
    const second = poll("p2", 10_000, "p1");
    await clock.advance(2_000);
    expect((await second).claims.map(({ sessionId }) => sessionId)).toEqual(["s2"]);
    expect(await storage.heldClaims({ now: clock.now(), limit: 9, owner: "r1" })).toHaveLength(3);
  }
});

// Another coordinator gave it to the same runner before this one looked whether it had.
test("dispatcher-6: what was given since storage failed is not given back", async () => {
  const { poll, create, clock, storage } = await openDispatch({
    changes: () => ({
      claim: () => Promise.reject(new UnavailableError("storage_unavailable", "away")),
    }),
  });
  await create("s1");
  const polled = poll("p1", 3_000);
  await clock.advance(100);
  const given = { sessionId: "s1", owner: "r1", now: clock.now(), leaseMs: 15_000 };
  expect(await storage.claim(given)).toMatchObject({ status: "claimed" });
  await clock.advance(3_000);
  await polled;
  expect(await storage.heldClaims({ now: clock.now(), limit: 9, owner: "r1" })).toHaveLength(1);
});

test("seat-5: a poll that was left, and arrives after the one that followed it, takes nothing away", async () => {
  const { poll, create, dispatcher, storage, clock } = await openDispatch();
  const ofProcess = (number: number, process = "p") => ({ process, number });
  await poll("p1", 0, undefined, ofProcess(1));
  await create("s1");
  await clock.advance(1_000);
  const third = await poll("p3", 0, "p1", ofProcess(3));
  expect(third.claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
  expect(await poll("p2", 10_000, "p1", ofProcess(2))).toMatchObject({ claims: [] });
  expect(dispatcher.holdings.find("s1")?.runnerId).toBe("r1");
  expect(await storage.heldClaims({ now: clock.now(), limit: 9, owner: "r1" })).toHaveLength(1);
  // The first of another process is none of these; what it does not acknowledge did not arrive, and is given anew.
  const first = await poll("q1", 0, undefined, ofProcess(1, "q"));
  expect(first.claims[0]?.token).toBeGreaterThan(third.claims[0]!.token);
});

test("closed while storage fails it leaves no timer behind", async () => {
  const loading = Promise.withResolvers<never>();
  const { poll, create, clock, dispatcher } = await openDispatch({
    changes: () => ({ load: () => loading.promise }),
  });
  await create("s1");
  const polled = poll("p1", 10_000);
  await turns(20);
  const closing = dispatcher.close();
  const set = vi.spyOn(clock, "setTimer");
  loading.reject(new UnavailableError("storage_unavailable", "away"));
  await Promise.all([closing, polled]);
  expect(set.mock.calls).toEqual([]);
});

test("seat-4: what the poll that a new one ends would have told is told by the new one", async () => {
  const seat = new Seat("r1", 0);
  seat.acknowledge({ ackCommandIds: [] });
  void seat.wait("p1", 0, 0);
  seat.arrived("s1", true); // No round has come to it yet.
  seat.acknowledge({ ackCommandIds: [] });
  const answer = seat.wait("p2", 1, 0);
  seat.waiting?.answer([]);
  expect((await answer).arrivals).toEqual([{ sessionId: "s1", awaited: true }]);
  // And again by the next, when that was not heard.
  seat.acknowledge({ ackCommandIds: [], ackPollId: "p1" });
  const again = seat.wait("p3", 1, 0);
  seat.waiting?.answer([]);
  expect((await again).arrivals).toEqual([{ sessionId: "s1", awaited: true }]);
});

test("seat-6: who was told to drain by one coordinator, and says so to another, is not told again by that one", () => {
  const seat = new Seat("r1", 0);
  seat.acknowledge({ ackPollId: "of the other", ackCommandIds: [DRAIN.commandId] });
  seat.drains(true);
  expect(seat.hasNews).toBe(false);
  seat.drains(false);
  seat.drains(true);
  expect(seat.hasNews).toBe(true);
});
