// A runner's storage over one that only notes what it is asked.

import { createSession } from "@holdfast/core/internal";
import {
  UnavailableError,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type SessionSnapshot,
} from "@holdfast/core";
import type { ArrivalNotice, Claim } from "@holdfast/proto";
import type { RemoteStorage } from "@holdfast/storage/remote";
import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { CoordinatorTime } from "@holdfast/storage/remote";
import { DispatchedStorage, givenBy, sentWith } from "./dispatched-storage.ts";

const CLAIM = { sessionId: "s", owner: "rnr", now: 0, leaseMs: 1_000 };

describe("a session that was given", () => {
  test("a given session is announced, claimed and loaded without a request for it", async () => {
    const { storage, asked, heard } = open();
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    expect(heard).toEqual([{ sessionId: "s", awaited: true }]);
    expect((await storage.reader.session("s"))?.sessionId).toBe("s");
    expect(await storage.claim(CLAIM)).toEqual({ status: "claimed", token: 7, losses: 0 });
    expect((await storage.load("s"))?.session.sessionId).toBe("s");
    expect(asked).toEqual(["hold s"]);
    expect(storage.held).toBe(1);
  });

  test("a given session is claimed once, and any other session is busy", async () => {
    const { storage } = open();
    expect(await storage.claim(CLAIM)).toMatchObject({ status: "busy" });
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    expect(await storage.claim(CLAIM)).toMatchObject({ status: "claimed" });
    expect(await storage.claim(CLAIM)).toMatchObject({ status: "busy" });
  });

  // The snapshot is older than the arrival, so that only storage has both.
  test.each(["before its claim", "after its claim"])(
    "the snapshot of a given session is loaded again when something arrived %s",
    async (when) => {
      const { storage, asked, heard } = open();
      storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
      if (when === "after its claim") await storage.claim(CLAIM);
      storage.arrived({ sessionId: "s", awaited: false });
      if (when === "before its claim") await storage.claim(CLAIM);
      await storage.load("s");
      expect(asked).toEqual(["hold s", "load s"]);
      expect(heard[1]).toEqual({ sessionId: "s", awaited: false });
    },
  );

  test("a given session is released when the runtime does not claim it", async () => {
    const { storage, clock, committed } = open();
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    expect(storage.held).toBe(1);
    await clock.advance(5_000);
    expect(committed).toEqual([{ type: "release_claim", sessionId: "s", token: 7 }]);
    expect(storage.held).toBe(0);
    expect(await storage.claim(CLAIM)).toMatchObject({ status: "busy" });
  });

  // The answer was delayed, or this process was suspended before it read the answer.
  test("dispatched-storage-4: a given claim is released when it is too old to be used", async () => {
    const { storage, clock, committed, asked } = open();
    clock.stall(10_000);
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 7_999 });
    expect(await storage.claim(CLAIM)).toMatchObject({ status: "busy" });
    expect({ asked, committed }).toEqual({
      asked: [],
      committed: [{ type: "release_claim", sessionId: "s", token: 7 }],
    });
    expect(storage.held).toBe(0);
    storage.give({ sessionId: "s", token: 8, snapshot: snapshot("s"), madeAt: 8_000 });
    expect(await storage.claim(CLAIM)).toMatchObject({ status: "claimed", token: 8 });
  });

  test("dispatched-storage-4: the age of a claim is measured by the coordinator's time", () => {
    const { clock } = open();
    const claim = {
      sessionId: "s",
      token: 7n,
      claimedAt: BigInt(clock.now() - 300),
      snapshot: new TextEncoder().encode(JSON.stringify(snapshot("s"))),
    };
    clock.stall(1_000);
    const told = claim as Partial<Claim> as Claim;
    const time = new CoordinatorTime(clock);
    time.heard(clock.now(), clock.monotonic());
    expect(givenBy(told, time)).toMatchObject({ sessionId: "s", token: 7, madeAt: -300 });
    // The claim never seems to be made in the future, whatever the coordinator says.
    expect(givenBy({ ...told, claimedAt: BigInt(clock.now() + 5_000) }, time)).toMatchObject({
      madeAt: 1_000,
    });
  });

  test("dispatched-storage-4: a claim is new when another coordinator, whose clock is behind, has taken over", () => {
    const { clock } = open();
    const time = new CoordinatorTime(clock);
    time.heard(60_000, clock.monotonic());
    expect(time.now()).toBe(60_000);
    time.heard(40_000, clock.monotonic());
    const claim = { sessionId: "s", token: 7n, claimedAt: 40_000n, snapshot: new TextEncoder().encode("{}") };
    expect(givenBy(claim as Partial<Claim> as Claim, time)).toMatchObject({ madeAt: clock.monotonic() });
  });

  test("a given session is not released once it is claimed, however long it runs", async () => {
    const { storage, clock, committed } = open();
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    await storage.claim(CLAIM);
    await clock.advance(60_000);
    expect(committed).toEqual([]);
  });

  // The runtime parks the session instead of driving it: the session is poison, or needs an agent of another
  // version.
  test("a released claim takes no slot, even if its session was never loaded", async () => {
    const { storage, asked } = open();
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    await storage.claim(CLAIM);
    await storage.commit([{ type: "release_claim", sessionId: "s", token: 7 }], 0);
    expect(storage.held).toBe(0);
    await storage.load("s");
    expect(asked).toEqual(["hold s", "release s", "load s"]);
  });

  test("a released claim is no longer counted, even if the coordinator does not hear of the release", async () => {
    const stand = open();
    const { storage } = stand;
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    await storage.claim(CLAIM);
    await storage.load("s");
    stand.isAway = true;
    await expect(storage.commit([{ type: "release_claim", sessionId: "s", token: 7 }], 0)).rejects.toThrow();
    expect({ held: storage.held, told: stand.told }).toEqual({ held: 0, told: 1 });
  });

  test("a session that is given again while it is driven is announced again when the older claim ends", async () => {
    const { storage, heard } = open();
    storage.give({ sessionId: "s", token: 7, snapshot: snapshot("s"), madeAt: 0 });
    await storage.claim(CLAIM);
    await storage.load("s");
    storage.give({ sessionId: "s", token: 9, snapshot: snapshot("s"), madeAt: 0 });
    await storage.commit([{ type: "release_claim", sessionId: "s", token: 7 }], 0);
    await turns(1);
    expect(heard).toHaveLength(3);
    expect(await storage.claim(CLAIM)).toMatchObject({ token: 9 });
  });
});

describe("arrivals that came with their notice", () => {
  const sent = { after: 2, arrivals: arrivals(5) };

  test("dispatched-storage-5: sent arrivals answer one request that the notice causes, from the place it names", async () => {
    const { storage, asked, askOnArrival } = open();
    const answers = askOnArrival(3);
    storage.arrived({ sessionId: "s", awaited: true }, sent);
    expect((await answers[0])?.signals.map(({ order }) => order)).toEqual([4, 5]);
    expect(asked).toEqual([]);
    await storage.arrivals("s", 3);
    expect(asked).toEqual(["arrivals s after 3"]);
  });

  test.each([
    ["begins after the place that is asked for", 1],
    ["has nothing after the place that is asked for", 5],
  ])("dispatched-storage-5: sent arrivals are ignored when the notice %s", async (_, after) => {
    const { storage, asked, askOnArrival } = open();
    const answers = askOnArrival(after);
    storage.arrived({ sessionId: "s", awaited: true }, sent);
    await answers[0];
    expect(asked).toEqual([`arrivals s after ${after}`]);
  });

  test("dispatched-storage-5: sent arrivals are forgotten when the notice causes no request", async () => {
    const { storage, asked } = open();
    storage.arrived({ sessionId: "s", awaited: true }, sent);
    await storage.arrivals("s", 3);
    expect(asked).toEqual(["arrivals s after 3"]);
  });

  test("arrivals are read from the notice when the coordinator sends them", () => {
    const bytes = new TextEncoder().encode(JSON.stringify(sent.arrivals));
    const notice = { sessionId: "s", awaited: true };
    expect(
      sentWith({ ...notice, arrivals: bytes, after: 2n } as Partial<ArrivalNotice> as ArrivalNotice),
    ).toEqual(sent);
    expect(sentWith(notice as Partial<ArrivalNotice> as ArrivalNotice)).toBeUndefined();
  });
});

/** Signals at places 3 to `inbox`. */
function arrivals(inbox: number): Arrivals {
  const signals = [3, 4, 5].map((order) => ({
    signalId: `sig_${order}`,
    name: "go",
    payload: undefined,
    order,
    sentAt: 0,
  }));
  return { inbox, signals, session: { status: "waiting" } };
}

function open() {
  const clock = new TestClock();
  const asked: string[] = [];
  const committed: Change[] = [];
  const held = new Map<string, number>();
  const stand = { isAway: false, told: 0 };
  const remote: Partial<RemoteStorage> = {
    held,
    hold: (sessionId, token) => {
      asked.push(`hold ${sessionId}`);
      held.set(sessionId, token);
    },
    load: async (sessionId) => {
      asked.push(`load ${sessionId}`);
      return snapshot(sessionId);
    },
    commit: async (changes) => {
      for (const change of changes)
        if (change.type === "release_claim" && held.delete(change.sessionId))
          asked.push(`release ${change.sessionId}`);
      if (stand.isAway) throw new UnavailableError("storage_unavailable", "away");
      committed.push(...changes);
      return changes.map((): ChangeResult => ({ status: "released" }));
    },
    arrivals: async (sessionId, after) => {
      asked.push(`arrivals ${sessionId} after ${after}`);
      return arrivals(5);
    },
    heard: (_, heard) => heard,
    reader: {} as RemoteStorage["reader"],
  };
  const storage = new DispatchedStorage(remote as RemoteStorage, clock, () => void stand.told++);
  const heard: Arrival[] = [];
  storage.subscribe((arrival) => heard.push(arrival));
  /** Asks for arrivals after this place at each notice. */
  const askOnArrival = (after: number): Promise<Arrivals>[] => {
    const answers: Promise<Arrivals>[] = [];
    storage.subscribe(({ sessionId }) => answers.push(storage.arrivals(sessionId, after)));
    return answers;
  };
  return Object.assign(stand, { storage, clock, asked, committed, heard, askOnArrival });
}

function snapshot(sessionId: string): SessionSnapshot {
  const agent = { name: "agent", version: "1" };
  const creation = {
    type: "create_session",
    sessionId,
    agent,
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
  } as const;
  return { session: createSession(creation, 0), records: [], signals: [], states: [], holds: [] };
}
