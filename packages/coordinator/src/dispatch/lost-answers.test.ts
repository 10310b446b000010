// Dispatch when answers and notices get lost: no session is given twice, and none is forgotten.

import { UnavailableError } from "@holdfast/core";
import { turns } from "@holdfast/testkit/test-runtime";
import { expect, test, vi } from "vitest";
import { openDispatch } from "../testing/dispatch-stand.ts";
import { DRAIN, Poller } from "./poller.ts";

test("poller-1: a repeated poll gets the same answer and nothing more", async () => {
  const { poll, create } = await openDispatch();
  await create("s1");
  const first = await poll("p1");
  await create("s2");
  expect((await poll("p1")).claims).toEqual(first.claims);
  expect(first.claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
});

test("poller-1: a repeated poll does not get claims that were released since", async () => {
  const { poll, create, clock } = await openDispatch();
  await create("s1");
  expect((await poll("p1")).claims).toHaveLength(1);
  await clock.advance(2_000);
  expect((await poll("p1")).claims).toEqual([]);
});

// The runner used another coordinator of the same storage.
test.each([
  ["something", [{ type: "started", seq: 0, at: 0 }]],
  ["a batch without records", []], // For example, a batch that only reserves a budget for tasks that start with it.
] as const)("claiming-1: a claim under which %s was committed is not given back", async (_, records) => {
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

test("claiming-1: a claim that storage took too long for is not sent", async () => {
  const { poll, create, clock } = await openDispatch({ loadMs: 2_000 });
  await create("s1");
  const answer = poll("p1", 3_000);
  await clock.advance(3_000);
  expect((await answer).claims).toEqual([]);
});

test("dispatcher-2: a due session without a notice is found while a poll waits", async () => {
  const { poll, create, clock } = await openDispatch();
  const answer = poll("p1", 10_000);
  await turns(20);
  await create("s1");
  await clock.advance(1_000);
  expect((await answer).claims.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
});

test("claiming-2: a session that storage fails for does not keep others of its cycle from their runner", async () => {
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

// Another coordinator gave the session to the same runner before this one asked whether it was claimed.
test("claiming-2: a claim that was made after storage failed is not released", async () => {
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

test("poller-5: a replaced poll that arrives after its successor releases no claim", async () => {
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
  // The first poll of another process is not late. It does not acknowledge the claim, which is therefore
  // given again.
  const first = await poll("q1", 0, undefined, ofProcess(1, "q"));
  expect(first.claims[0]?.token).toBeGreaterThan(third.claims[0]!.token);
});

test("a dispatcher that is closed while storage fails leaves no timer behind", async () => {
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

test("poller-4: a new poll answers with the news of the poll that it ends", async () => {
  const poller = new Poller("r1", 0);
  poller.acknowledge({ ackCommandIds: [] });
  void poller.wait("p1", 0, 0);
  poller.arrived("s1", true); // No cycle has answered it yet.
  poller.acknowledge({ ackCommandIds: [] });
  const answer = poller.wait("p2", 1, 0);
  poller.waiting?.answer([]);
  expect((await answer).arrivals).toEqual([{ sessionId: "s1", awaited: true }]);
  // The next poll is sent it again if that answer did not arrive.
  poller.acknowledge({ ackCommandIds: [], ackPollId: "p1" });
  const again = poller.wait("p3", 1, 0);
  poller.waiting?.answer([]);
  expect((await again).arrivals).toEqual([{ sessionId: "s1", awaited: true }]);
});

test("poller-6: a runner that acknowledged a drain at another coordinator is not sent it again", () => {
  const poller = new Poller("r1", 0);
  poller.acknowledge({ ackPollId: "of the other", ackCommandIds: [DRAIN.commandId] });
  poller.drains(true);
  expect(poller.hasNews).toBe(false);
  poller.drains(false);
  poller.drains(true);
  expect(poller.hasNews).toBe(true);
});
