// rules-4 and rules-6 as storage and runners see them. A session that was lost twice is tried alone, only
// losses alone make it poison, and asking for its losses adds none.

import type { CommitBatch } from "@holdfast/core";
import { turns } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { ALONE_MS, TRIAL_MS } from "./rules.ts";
import { openDispatch, type StandOptions } from "../testing/dispatch-stand.ts";

const LEASE_MS = 15_000;
const COMMITTED = { status: "committed" };

type Stand = Awaited<ReturnType<typeof openDispatch>>;

async function open(options: StandOptions = {}): Promise<Stand> {
  return openDispatch({ free: 8, ...options });
}

/** Create a session and lose it so often. */
async function lose({ create, storage, clock }: Stand, sessionId: string, times: number): Promise<void> {
  await create(sessionId);
  for (let i = 0; i < times; i++) {
    await storage.claim({ sessionId, owner: `gone-${i}`, now: clock.now(), leaseMs: LEASE_MS });
    await clock.advance(LEASE_MS);
  }
}

function batch(sessionId: string, token: number, more: Partial<CommitBatch> = {}): CommitBatch {
  const empty = { firstSeq: 0, records: [], entries: [], consumed: [] };
  return { type: "commit_batch", sessionId, token, ...empty, ...more };
}

/** The claims that a poll gets without waiting. The runner uses each of them. */
async function given({ poll, dispatcher }: Stand, pollId: string, ackPollId?: string) {
  const { claims } = await poll(pollId, 0, ackPollId);
  for (const { sessionId } of claims) dispatcher.used("r1", sessionId);
  return claims.map(({ sessionId, token }) => ({ sessionId, token }));
}

test("a suspect is given in an answer of its own, and its runner gets nothing more until it has committed", async () => {
  const stand = await open();
  const { create, clock, storage } = stand;
  await lose(stand, "suspect", 2);
  await create("other");
  // The first cycle learns that the session is a suspect and gives the other one meanwhile. From then on, the
  // runner is kept.
  const [other] = await given(stand, "p1");
  expect(other).toMatchObject({ sessionId: "other" });
  await create("late");
  await clock.advance(2_000);
  expect(await given(stand, "p2", "p1")).toEqual([]);
  const lossesOf = (sessionId: string) => stand.dispatcher.lossesOf(sessionId);
  expect([lossesOf("suspect"), lossesOf("late")]).toEqual([2, undefined]);
  expect(stand.dispatcher.keptFor("r1")).toEqual({ sessionId: "suspect", losses: 2, isTried: false });
  const end = { session: { status: "completed", waits: [], output: "null" } } as const;
  expect(await storage.commit([batch("other", other!.token, end)], clock.now())).toMatchObject([COMMITTED]);
  await clock.advance(2_000);
  const [suspect, ...more] = await given(stand, "p3", "p2");
  expect([suspect?.sessionId, more]).toEqual(["suspect", []]);
  expect(stand.dispatcher.keptFor("r1")).toEqual({ sessionId: "suspect", losses: 2, isTried: true });
  expect(await given(stand, "p4", "p3")).toEqual([]);
  expect(await storage.commit([batch("suspect", suspect!.token)], clock.now())).toMatchObject([COMMITTED]);
  await clock.advance(2_000);
  expect(await given(stand, "p5", "p4")).toMatchObject([{ sessionId: "late" }]);
});

test("a claim that finds a suspect is released without counting or clearing a loss", async () => {
  const stand = await open();
  const { clock, storage } = stand;
  await lose(stand, "suspect", 2);
  expect(await given(stand, "p1")).toEqual([{ sessionId: "suspect", token: 4 }]);
  await clock.advance(LEASE_MS);
  const again = { sessionId: "suspect", owner: "r2", now: clock.now(), leaseMs: LEASE_MS };
  expect(await storage.claim(again)).toMatchObject({ status: "claimed", losses: 3 });
});

test("another coordinator also keeps the runner for its suspect", async () => {
  const stand = await open();
  const { clock, storage } = stand;
  await lose(stand, "suspect", 2);
  expect(await given(stand, "p1")).toHaveLength(1);
  const elsewhere = await open({ clock, storage });
  await elsewhere.create("other");
  expect(await given(elsewhere, "p2")).toEqual([]);
  await clock.advance(2_000);
  expect(await given(elsewhere, "p3", "p2")).toEqual([]);
});

test("a suspect that is lost a third time, alone, is poison", async () => {
  const stand = await open();
  const { clock, storage } = stand;
  await lose(stand, "suspect", 2);
  expect(await given(stand, "p1")).toHaveLength(1);
  await clock.advance(LEASE_MS);
  expect(await given(stand, "p2", "p1")).toEqual([]);
  expect(await storage.reader.session("suspect")).toMatchObject({ status: "paused", pauseReason: "poison" });
});

test("a session that was lost twice in company is paused after five losses alone, and not before", async () => {
  const stand = await open({ lossesMax: 5 });
  const { clock, storage } = stand;
  await lose(stand, "suspect", 2);
  for (let alone = 1; alone <= 5; alone++) {
    expect(await given(stand, `p${alone}`), `loss ${alone}`).toHaveLength(1);
    await clock.advance(LEASE_MS);
  }
  expect(await given(stand, "p6")).toEqual([]);
  const row = await storage.reader.session("suspect");
  expect(row).toMatchObject({ status: "paused", pauseReason: "poison" });
  expect(row?.error?.message).toContain("was lost 5 times in a row with a runner that held nothing else");
});

test("a suspect that found no empty runner for a minute is given in company, and its losses no longer count", async () => {
  const stand = await open();
  const { create, clock, storage } = stand;
  await create("other");
  expect(await given(stand, "p1")).toHaveLength(1);
  await storage.renew({ owner: "r1", now: clock.now(), leaseMs: 4 * ALONE_MS });
  await lose(stand, "suspect", 2);
  expect(await given(stand, "p2", "p1")).toEqual([]);
  await clock.advance(ALONE_MS);
  const [suspect] = await given(stand, "p3", "p2");
  expect(suspect?.sessionId).toBe("suspect");
  await clock.advance(LEASE_MS);
  const again = { sessionId: "suspect", owner: "r2", now: clock.now(), leaseMs: LEASE_MS };
  expect(await storage.claim(again)).toMatchObject({ status: "claimed", losses: 1 });
});

test("a suspect that ran for five minutes is pardoned before another session joins it", async () => {
  const stand = await open();
  const { create, clock, storage } = stand;
  await lose(stand, "suspect", 2);
  const [suspect] = await given(stand, "p1");
  await storage.renew({ owner: "r1", now: clock.now(), leaseMs: 2 * TRIAL_MS });
  await clock.advance(TRIAL_MS);
  expect((await storage.heldClaims({ now: clock.now(), limit: 1 }))[0]).toMatchObject({ losses: 2 });
  await create("other");
  expect(await given(stand, "p2", "p1")).toMatchObject([{ sessionId: "other" }]);
  expect(await storage.heldClaims({ now: clock.now(), limit: 1, sessionId: "suspect" })).toMatchObject([
    { token: suspect!.token, losses: 0 },
  ]);
});

test("a suspect with an arrival stays a suspect, and is not claimed again to learn that", async () => {
  const stand = await open();
  const { create, clock, storage, poll } = stand;
  await lose(stand, "suspect", 2);
  await create("other");
  expect(await given(stand, "p1")).toMatchObject([{ sessionId: "other" }]);
  const answer = poll("p2", 10_000, "p1");
  await turns(20);
  await storage.commit(
    [{ type: "send_signal", sessionId: "suspect", signalId: "sig-1", name: "go", payload: "1" }],
    clock.now(),
  );
  await clock.advance(10_000);
  expect((await answer).claims).toEqual([]);
  const asked = { sessionId: "suspect", owner: "r2", now: clock.now(), leaseMs: LEASE_MS };
  const last = { token: 5, losses: 2 }; // After those that were lost, the one that told what it is, and the other session's.
  expect(await storage.claim(asked)).toMatchObject(last);
});
