// Tests of `WatchedStorage`: which rare cases it reports as violations, and which not.

import { type Budget, type Change, type ChangeResult, storageWith } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { WatchedStorage } from "./watched-storage.ts";

/** A storage that ignores the limit while it admits reservations. */
class Lavish extends MemoryStorage {
  #maxTokens = 100;

  override async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const [change] = changes;
    if (change?.type === "set_budget") this.#maxTokens = change.limits.maxTokens ?? Infinity;
    if (change?.type !== "commit_batch") return super.commit(changes, now);
    const limit = (maxTokens: number): Change => ({ ...change, type: "set_budget", limits: { maxTokens } });
    // The three calls are made at once, because the watcher reads the rows when a call returns.
    const committing = [[limit(999)], changes, [limit(this.#maxTokens)]].map((each) =>
      super.commit(each, now),
    );
    return (await Promise.all(committing))[1] ?? [];
  }
}

/** A storage whose hours are shorter than they should be. */
class Hasty extends MemoryStorage {
  override commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    return super.commit(changes, now === 1 ? now : now + 60_000);
  }
}

type Charge = NonNullable<Extract<Change, { readonly type: "commit_batch" }>["charges"]>[number];

const amount = { tokens: 60, costMicroUsd: 0, steps: 0, turns: 0 };

/** A claimed session that may spend 100 tokens, in a watched storage, with the promises that were broken. */
async function watch(inner: MemoryStorage = new MemoryStorage(), budget: Budget = { maxTokens: 100 }) {
  const broken: string[] = [];
  const { storage } = new WatchedStorage(inner, (promise) => void broken.push(promise), {
    changed: () => {},
    born: () => {},
  });
  const creation = {
    type: "create_session",
    sessionId: "ses-1",
    agent: { name: "agent", version: "1" },
    input: undefined,
    seed: 1,
    flags: 0,
    format: 1,
    budget,
  } as const;
  await storage.commit([creation], 0);
  const claim = await storage.claim({ sessionId: "ses-1", owner: "o", now: 0, leaseMs: 1_000 });
  const spend = (task: number, more: readonly Charge[] = []): Change => ({
    type: "commit_batch",
    sessionId: "ses-1",
    token: claim.status === "claimed" ? claim.token : 0,
    firstSeq: 0,
    records: [],
    entries: [],
    consumed: [],
    charges: [{ type: "reserve", task, amount }, ...more],
  });
  const limit = (maxTokens: number): Change => ({
    type: "set_budget",
    sessionId: "ses-1",
    limits: { maxTokens },
  });
  return { storage, broken, spend, limit };
}

test("B1: an admission before the limit is lowered in the same group is no violation", async () => {
  const { storage, broken, spend, limit } = await watch();
  await storage.commit([spend(0), limit(50)], 1);
  expect(broken).toEqual([]);
});

test("B1: an admission above the current limit is a violation", async () => {
  const { storage, broken, spend, limit } = await watch(new Lavish());
  await storage.commit([spend(0)], 1);
  await storage.commit([limit(50)], 1);
  expect(broken).toEqual([]);
  await storage.commit([spend(1)], 1);
  expect(broken).toEqual(["B1"]);
});

test("B3: an admission after the window has rolled on is no violation, and one within it is", async () => {
  const hourly: Budget = { windows: [{ per: "hour", maxTokens: 100 }] };
  for (const inner of [new MemoryStorage(), new Hasty()]) {
    const { storage, broken, spend } = await watch(inner, hourly);
    await storage.commit([spend(0, [{ type: "settle", task: 0, used: amount }])], 1);
    const hour = 3_600_000;
    await storage.commit([spend(1)], inner instanceof Hasty ? hour - 1 : hour + 1);
    expect(broken).toEqual(inner instanceof Hasty ? ["B3"] : []);
  }
});

test("K10c: a schedule that fires twice for one time is a violation, unless it was removed and put again", async () => {
  const { storage, broken } = await watch();
  const signal = { sessionId: "ses-1", name: "go", payload: undefined };
  const action = { type: "signal", ...signal } as const;
  const times = { cron: "* * * * * *", timeZone: "UTC", nextAt: 5, createdAt: 0 };
  const put = { type: "put_schedule", schedule: { scheduleId: "s", action, ...times } } as const;
  const fire = (nextAt: number): Change => ({
    type: "fire_schedule",
    scheduleId: "s",
    dueAt: 5,
    nextAt,
    effect: { type: "send_signal", signalId: "s-5", ...signal },
  });
  await storage.commit([put, fire(6), { type: "remove_schedule", scheduleId: "s" }, put], 5);
  await storage.commit([fire(5)], 6);
  expect(broken).toEqual([]);
  await storage.commit([fire(5)], 7); // As if a clock that is set back had made it due again.
  expect(broken).toEqual(["K10c"]);
});

test("B1: the answers to a group that sets limits are in its order", async () => {
  const { storage, spend, limit } = await watch();
  const results = await storage.commit([spend(0), limit(50), spend(1), limit(120), spend(2)], 1);
  expect(results.map((result) => ("admissions" in result ? result.admissions : result.status))).toMatchObject(
    [[{ status: "admitted" }], "requested", [{ status: "refused" }], "requested", [{ status: "admitted" }]],
  );
});

test("a watched storage passes on the optional members that the inner storage has", () => {
  const inner = storageWith(new MemoryStorage(), { groupsMax: 3, now: () => 7 });
  const { storage } = new WatchedStorage(inner, () => {}, { changed: () => {}, born: () => {} });
  expect({ ...storage, now: storage.now?.() }).toMatchObject({ groupsMax: 3, now: 7 });
  expect(storage.follow).toBeDefined();
});
