import { setImmediate as macrotask } from "node:timers/promises";
import { type AgentStorage, type Arrival, storageWith } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { describe, expect, test } from "vitest";
import { creating, signalling, statuses } from "./conformance/fixture.ts";
import { faultyStorage, type CommitCall, type FaultKind, type FaultPlan } from "./faulty-storage.ts";
import { storageConformance } from "./storage-conformance.ts";

storageConformance({
  name: "faulty, without faults",
  follows: true,
  open: async () => faultyStorage(new MemoryStorage()),
});

/** One fault at one call. */
const at = (number: number, kind: FaultKind): FaultPlan => ({
  fault: (call) => (call.number === number ? kind : undefined),
});

/** Whether a promise settles while everything that can go on in this process goes on. */
async function settles(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const mark = () => void (settled = true);
  promise.then(mark, mark);
  for (let i = 0; i < 3; i++) await macrotask();
  return settled;
}

const sessionIds = async (storage: AgentStorage) =>
  (await storage.reader.sessions({ limit: 10 })).map(({ sessionId }) => sessionId).sort();

describe("faults that pass", () => {
  test("`before` applies nothing and says that it is not available", async () => {
    const inner = new MemoryStorage();
    const storage = faultyStorage(inner, at(1, "before"));
    await expect(storage.commit([creating("ses-1")], 1)).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    expect(await sessionIds(inner)).toEqual([]);
    expect(statuses(await storage.commit([creating("ses-1")], 1))).toEqual(["created"]);
  });

  test("`reply_lost` applies it and says the same, so that only asking again tells", async () => {
    const inner = new MemoryStorage();
    const storage = faultyStorage(inner, at(1, "reply_lost"));
    await expect(storage.commit([creating("ses-1")], 1)).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    expect(await sessionIds(inner)).toEqual(["ses-1"]);
    expect(statuses(await storage.commit([creating("ses-1")], 1))).toEqual(["exists"]);
  });

  test("a listener hears of a signal whose reply was lost: it is stored", async () => {
    const storage = faultyStorage(new MemoryStorage(), at(2, "reply_lost"));
    await storage.commit([creating("ses-1")], 1);
    const received: Arrival[] = [];
    storage.subscribe((arrival) => received.push(arrival));
    await expect(storage.commit([signalling("ses-1", "sig-1")], 1)).rejects.toThrow();
    expect(received).toEqual([{ sessionId: "ses-1", awaited: true }]);
  });
});

describe("faults that kill", () => {
  for (const [kind, applied] of [
    ["crash_before", []],
    ["crash_after", ["ses-1"]],
    ["torn", []],
  ] as const) {
    test(`\`${kind}\` never answers, and leaves ${applied.length === 0 ? "nothing" : "everything"} of its call`, async () => {
      const inner = new MemoryStorage();
      const storage = faultyStorage(inner, at(1, kind));
      const call = storage.commit([creating("ses-1")], 1);
      await storage.died;
      expect(storage.isDead).toBe(true);
      expect(await settles(call)).toBe(false);
      expect(await sessionIds(inner)).toEqual(applied);
    });
  }

  test("the dead answer nothing, whatever is asked, and change nothing", async () => {
    const inner = new MemoryStorage();
    const storage = faultyStorage(inner, at(1, "crash_before"));
    void storage.commit([creating("ses-1")], 1);
    await storage.died;
    const asked = [
      storage.commit([creating("ses-2")], 1),
      storage.claim({ sessionId: "ses-1", owner: "owner-1", now: 1, leaseMs: 1 }),
      storage.load("ses-1"),
      storage.arrivals("ses-1", 0),
      storage.conversation("ses-1", 0),
      storage.due({ now: 1, limit: 1 }),
      storage.reader.session("ses-1"),
      storage.reader.sessions({ limit: 1 }),
      storage.reader.journal("ses-1", 0, 1),
      storage.reader.entries("ses-1", 0, 1),
      storage.reader.pendingSignals("ses-1"),
    ];
    expect(await settles(Promise.race(asked))).toBe(false);
    expect(await sessionIds(inner)).toEqual([]);
  });

  // The neighbours' commits were on their way when the process died. The first would have succeeded, and the
  // second would have failed.
  test("calls in flight inside the dead storage never settle, and it reports its death after its writes", async () => {
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    const inner = new MemoryStorage();
    const slow = faultyStorage(inner, { ...at(2, "before"), latency: () => hold });
    const storage = faultyStorage(slow, at(3, "crash_before"));
    const underWay = [storage.commit([creating("ses-1")], 1), storage.commit([creating("ses-2")], 1)];
    void storage.commit([creating("ses-3")], 1);
    expect(await settles(storage.died), "a write may still reach the storage inside").toBe(false);
    release();
    await storage.died;
    expect(await settles(Promise.race(underWay))).toBe(false);
    expect(await sessionIds(inner), "what had left the process goes on without it").toEqual(["ses-1"]);
  });

  test("a commit that had not left the process when it died is never applied", async () => {
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    const inner = new MemoryStorage();
    const latency = async ({ number }: CommitCall) => (number === 1 ? hold : undefined);
    const storage = faultyStorage(inner, { ...at(2, "crash_before"), latency });
    const held = storage.commit([creating("ses-1")], 1);
    void storage.commit([creating("ses-2")], 1);
    await storage.died;
    release();
    expect(await settles(held)).toBe(false);
    expect(await sessionIds(inner)).toEqual([]);
  });

  test("a dead process hears nothing more, not even of its last call", async () => {
    const inner = new MemoryStorage();
    await inner.commit([creating("ses-1")], 1);
    const storage = faultyStorage(inner, at(1, "crash_after"));
    const received: Arrival[] = [];
    storage.subscribe((arrival) => received.push(arrival));
    void storage.commit([signalling("ses-1", "sig-1")], 1);
    await storage.died;
    await inner.commit([signalling("ses-1", "sig-2")], 1);
    expect(received).toEqual([]);
    expect(await inner.reader.pendingSignals("ses-1")).toHaveLength(2);
  });

  test("closing the dead settles and leaves the storage inside open", async () => {
    const inner = new MemoryStorage();
    const received: Arrival[] = [];
    inner.subscribe((arrival) => received.push(arrival));
    const storage = faultyStorage(inner, at(1, "crash_after"));
    void storage.commit([creating("ses-1")], 1);
    await storage.died;
    await storage.close();
    await inner.commit([signalling("ses-1", "sig-1")], 1);
    expect(received).toHaveLength(1);
  });

  test("a torn call is written and then damaged where the subject can do that", async () => {
    const inner = new MemoryStorage();
    const torn: (readonly string[])[] = [];
    const tear = async (storage: AgentStorage) => void torn.push(await sessionIds(storage));
    const storage = faultyStorage(inner, { ...at(2, "torn"), tear });
    await storage.commit([creating("ses-1")], 1);
    void storage.commit([creating("ses-2"), creating("ses-3")], 1);
    await storage.died;
    expect(torn).toEqual([["ses-1", "ses-2", "ses-3"]]);
  });
});

test("calls are counted and described, also those that fail", async () => {
  const storage = faultyStorage(new MemoryStorage(), at(2, "before"));
  await storage.commit([creating("ses-1", { claimFor: { owner: "owner-1", leaseMs: 1 } })], 1);
  const batch = {
    type: "commit_batch",
    sessionId: "ses-1",
    token: 1,
    firstSeq: 0,
    records: [{ type: "started", seq: 0, at: 1 }],
    entries: [],
    consumed: [],
    session: { status: "working" },
  } as const;
  await expect(storage.commit([batch], 1)).rejects.toThrow(/commit 2 \(commit_batch ses-1 at 0/);
  await storage.commit(
    [signalling("ses-1", "sig-1"), { type: "release_claim", sessionId: "ses-1", token: 1 }],
    1,
  );
  expect(storage.calls.map(({ number, description }) => [number, description])).toEqual([
    [1, "create_session ses-1"],
    [2, "commit_batch ses-1 at 0 [started] → working"],
    [3, "send_signal ses-1 go; release_claim ses-1"],
  ]);
  expect(storage.isDead).toBe(false);
});

test("latency holds one call back, and a later one may overtake it", async () => {
  const { promise: hold, resolve: release } = Promise.withResolvers<void>();
  const storage = faultyStorage(new MemoryStorage(), {
    latency: async ({ number }) => (number === 1 ? hold : undefined),
  });
  const slow = storage.commit([creating("ses-1", { input: "1" })], 1);
  expect(statuses(await storage.commit([creating("ses-1", { input: "2" })], 1))).toEqual(["created"]);
  release();
  expect(statuses(await slow)).toEqual(["exists"]);
});

test("an optional method exists when the storage inside has it, and dies with the others", async () => {
  const inner = storageWith(new MemoryStorage(), { groupsMax: 3, now: () => 7 });
  const storage = faultyStorage(inner);
  expect({ ...storage, now: storage.now?.() }).toMatchObject({ groupsMax: 3, now: 7 });
  const received: string[] = [];
  storage.follow?.("ses-1", () => void received.push("of ses-1"));
  await storage.commit([creating("ses-1")], 1);
  expect(received).toHaveLength(1);
  storage.kill();
  await inner.commit([signalling("ses-1", "sig-1")], 1);
  expect(received).toHaveLength(1);
});
