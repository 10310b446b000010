// The cost of a change or a look-up does not grow with a backlog of signals, many waits or many schedules.

import type { Change, Schedule, Wait } from "@holdfast/core";
import { expect, test } from "vitest";
import { MemoryStorage } from "../memory/memory-storage.ts";

const MANY = 2_000;
const SESSION = "ses-1";

const CREATE: Change = {
  type: "create_session",
  sessionId: SESSION,
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
};

function signal(i: number): Change {
  const name = `n${i}`;
  return { type: "send_signal", sessionId: SESSION, signalId: `id-${i}`, name, payload: undefined };
}

test("a session with many waits compares no arriving signal with each of them", async () => {
  const storage = new MemoryStorage();
  await storage.commit([CREATE], 1);
  const claim = await storage.claim({ sessionId: SESSION, owner: "me", now: 1, leaseMs: Infinity });
  let reads = 0;
  const waits = Array.from({ length: MANY }, (_, id): Wait => {
    return {
      type: "signal",
      id,
      get name() {
        reads++;
        return `n${id}`;
      },
    };
  });
  const batch: Change = {
    type: "commit_batch",
    sessionId: SESSION,
    token: claim.status === "claimed" ? claim.token : 0,
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
    session: { status: "waiting", waits },
  };
  expect(await storage.commit([batch], 1)).toMatchObject([{ status: "committed" }]);
  for (let i = 0; i < MANY; i++)
    expect(await storage.commit([signal(i)], 2)).toMatchObject([{ status: "stored", awaited: true }]);
  expect(await storage.commit([signal(MANY)], 2)).toMatchObject([{ status: "stored", awaited: false }]);
  expect(reads).toBeLessThan(10 * MANY);
});

test("a backlog stays in the order of arrival when signals are taken from any place", async () => {
  const storage = new MemoryStorage();
  await storage.commit([CREATE], 1);
  const claim = await storage.claim({ sessionId: SESSION, owner: "me", now: 1, leaseMs: Infinity });
  const indices = Array.from({ length: MANY }, (_, i) => i);
  await storage.commit(indices.map(signal), 1);
  const consumed = indices.filter((i) => i % 3 !== 0 || i < 900).map((i) => `id-${i}`);
  const batch: Change = {
    type: "commit_batch",
    sessionId: SESSION,
    token: claim.status === "claimed" ? claim.token : 0,
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: consumed.toReversed(),
  };
  expect(await storage.commit([batch], 2)).toMatchObject([{ status: "committed" }]);
  const left = indices.filter((i) => i % 3 === 0 && i >= 900);
  const idsOf = (signals: readonly { readonly signalId: string }[]) =>
    signals.map(({ signalId }) => signalId);
  const snapshot = await storage.load(SESSION);
  expect(idsOf(snapshot?.signals ?? [])).toEqual(left.map((i) => `id-${i}`));
  // The first signal's place in the inbox is 1.
  const { signals } = await storage.arrivals(SESSION, 1_500);
  expect(idsOf(signals)).toEqual(left.filter((i) => i >= 1_500).map((i) => `id-${i}`));
});

test("a look for what is due reads the schedules that are due, not the many others", async () => {
  const storage = new MemoryStorage();
  let reads = 0;
  const schedule = (i: number): Schedule => ({
    scheduleId: `s-${i}`,
    cron: "* * * * *",
    timeZone: "UTC",
    action: { type: "signal", sessionId: SESSION, name: "go", payload: undefined },
    get nextAt() {
      reads++;
      return i;
    },
    createdAt: 1,
  });
  for (let i = MANY; i > 0; i--) await storage.commit([{ type: "put_schedule", schedule: schedule(i) }], 1);
  reads = 0;
  for (let look = 0; look < 100; look++) {
    const { schedules, nextAt } = await storage.due({ now: 2, limit: 10 });
    expect(schedules.map(({ scheduleId }) => scheduleId)).toEqual(["s-1", "s-2"]);
    expect(nextAt).toBe(3);
  }
  expect(reads).toBeLessThan(10 * 100);
  await storage.commit([{ type: "remove_schedule", scheduleId: "s-1" }], 1);
  expect((await storage.due({ now: 2, limit: 10 })).schedules).toHaveLength(1);
});
