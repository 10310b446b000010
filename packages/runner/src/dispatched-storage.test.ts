// A runner's storage over one that only notes what it is asked.

import { UnavailableError, type Arrivals, type ChangeResult } from "@holdfast/core";
import type { ArrivalNotice } from "@holdfast/proto";
import type { RemoteStorage } from "@holdfast/storage/remote";
import { describe, expect, test } from "vitest";
import { DispatchedStorage, sentWith } from "./dispatched-storage.ts";

test("dispatched-storage-1: the runtime itself claims no session and finds none due", async () => {
  const { storage } = open();
  expect(await storage.claim()).toMatchObject({ status: "busy" });
  expect(await storage.due()).toEqual({ sessionIds: [], schedules: [] });
});

test.each([false, true])(
  "a released claim is no longer counted (the coordinator is unreachable: %s)",
  async (isAway) => {
    const stand = open();
    const { storage } = stand;
    storage.hold("s", 7);
    expect(storage.held).toBe(1);
    stand.isAway = isAway;
    await storage.commit([{ type: "release_claim", sessionId: "s", token: 7 }], 0).catch(() => {});
    expect({ held: storage.held, sent: stand.sent }).toEqual({ held: 0, sent: 1 });
  },
);

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
  const asked: string[] = [];
  const held = new Map<string, number>();
  const stand = { isAway: false, sent: 0 };
  const remote: Partial<RemoteStorage> = {
    held,
    hold: (sessionId, token) => void held.set(sessionId, token),
    commit: async (changes) => {
      for (const change of changes) if (change.type === "release_claim") held.delete(change.sessionId);
      if (stand.isAway) throw new UnavailableError("storage_unavailable", "away");
      return changes.map((): ChangeResult => ({ status: "released" }));
    },
    arrivals: async (sessionId, after) => {
      asked.push(`arrivals ${sessionId} after ${after}`);
      return arrivals(5);
    },
    received: (_, received) => received,
    reader: {} as RemoteStorage["reader"],
  };
  const storage = new DispatchedStorage(remote as RemoteStorage, () => void stand.sent++);
  /** Asks for arrivals after this place at each notice. */
  const askOnArrival = (after: number): Promise<Arrivals>[] => {
    const answers: Promise<Arrivals>[] = [];
    storage.subscribe(({ sessionId }) => answers.push(storage.arrivals(sessionId, after)));
    return answers;
  };
  return Object.assign(stand, { storage, asked, askOnArrival });
}
