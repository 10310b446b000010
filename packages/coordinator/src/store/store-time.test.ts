// The time of coordinators over one storage, while the wall clock they go by is set, and while they come and
// go.

import { SteadyClock } from "@holdfast/core";
import { MemoryStorage, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { beforeEach, describe, expect, test } from "vitest";
import { Registry } from "./registry.ts";
import { claimTimely, renewTimely, StoreTime } from "./store-time.ts";

const HOUR_MS = 60 * 60_000;
const LEASE_MS = 15_000;

let wall: TestClock;
let storage: MemoryStorage;
beforeEach(() => {
  wall = new TestClock();
  storage = new MemoryStorage();
});

describe("D3: a clock that is set", () => {
  test("forward is followed within a second, and every lease goes on as long as it would have", async () => {
    const { clock, claim, leftOf } = await coordinator();
    await claim("s1", "runner");
    await wall.advance(5_000);
    await claim("s2", "runner");
    wall.jump(HOUR_MS);
    expect(clock.now()).toBeLessThan(wall.now() - HOUR_MS + 1);
    await wall.advance(1_000);
    expect(clock.now()).toBe(wall.now());
    expect(await leftOf("s1")).toBe(9_000);
    expect(await leftOf("s2")).toBe(14_000);
    // By less than is left of them, too.
    wall.jump(5_000);
    await wall.advance(1_000);
    expect(await leftOf("s1")).toBe(8_000);
  });

  test("forward brings no lease back that had passed, and none lasts longer for it", async () => {
    const { claim, leftOf } = await coordinator();
    await claim("s1", "runner");
    await wall.advance(LEASE_MS);
    wall.jump(HOUR_MS);
    await wall.advance(2_000);
    wall.jump(HOUR_MS);
    await wall.advance(2_000);
    expect(await leftOf("s1")).toBeUndefined();
  });

  test("back changes no lease", async () => {
    const { claim, leftOf } = await coordinator();
    await claim("s1", "runner");
    wall.jump(-HOUR_MS);
    await wall.advance(10_000);
    expect(await leftOf("s1")).toBe(5_100); // It is drawn back by one part in a hundred.
  });

  test("forward and back again leaves time where it was followed to", async () => {
    const { clock } = await coordinator();
    wall.jump(HOUR_MS);
    await wall.advance(1_000);
    const followed = clock.now();
    wall.jump(-HOUR_MS);
    await wall.advance(1_000);
    expect(clock.now()).toBe(followed + 990);
  });

  test("forward is not followed while storage cannot write it down", async () => {
    const { clock, claim, leftOf, warnings, breakStorage } = await coordinator();
    await claim("s1", "runner");
    breakStorage(true);
    wall.jump(HOUR_MS);
    await wall.advance(3_000);
    expect(wall.now() - clock.now()).toBe(HOUR_MS);
    expect(warnings.length).toBeGreaterThan(0);
    breakStorage(false);
    await wall.advance(1_000);
    expect(clock.now()).toBe(wall.now());
    expect(await leftOf("s1")).toBe(11_000);
  });

  // Storage fails after one lease was carried over, and the clock is right again before it answers.
  test("forward is followed to the end once it was begun, and no lease is carried over twice", async () => {
    const { clock, claim, leftOf, breakRenewals } = await coordinator();
    for (const sessionId of ["s1", "s2", "s3"]) await claim(sessionId, "runner");
    const before = clock.now();
    breakRenewals(2);
    wall.jump(HOUR_MS);
    await wall.advance(1_000);
    expect(clock.now() - before).toBe(1_000);
    wall.jump(-HOUR_MS);
    await wall.advance(1_000);
    expect(clock.now() - before).toBe(HOUR_MS + 2_000);
    for (const sessionId of ["s1", "s2", "s3"]) expect(await leftOf(sessionId)).toBe(LEASE_MS - 2_000);
    await wall.advance(1_000);
    expect(clock.now() - before).toBeLessThanOrEqual(HOUR_MS + 3_000);
  });

  test("forward takes nothing from what is renewed after it was carried over, and before the time is the new one", async () => {
    const { clock, claim, leftOf, breakRenewals } = await coordinator();
    for (const sessionId of ["s1", "s2"]) await claim(sessionId, "runner");
    await wall.advance(5_000);
    breakRenewals(2);
    wall.jump(HOUR_MS);
    await wall.advance(1_000);
    await renewTimely(storage, clock, { owner: "runner", now: clock.now(), leaseMs: LEASE_MS });
    await wall.advance(1_000);
    expect(await leftOf("s1")).toBe(LEASE_MS - 1_000);
  });

  test("a clock set forward is followed by a new coordinator when the old one died meanwhile", async () => {
    const { claim, time, breakRenewals } = await coordinator();
    for (const sessionId of ["s1", "s2"]) await claim(sessionId, "runner");
    breakRenewals(1);
    wall.jump(HOUR_MS);
    await wall.advance(1_000);
    time.close();
    const next = await coordinator();
    for (const sessionId of ["s1", "s2"])
      expect(await next.leftOf(sessionId)).toBeGreaterThanOrEqual(LEASE_MS - 1_000);
    // The leases are extended once and then end.
    await wall.advance(LEASE_MS);
    next.time.close();
    const { leftOf } = await coordinator();
    for (const sessionId of ["s1", "s2"]) expect(await leftOf(sessionId)).toBeUndefined();
  });

  // The coordinator before was ahead of what it had written, and the clock is set by about a lease.
  test("forward takes nothing from a lease of which more is left than it lasts", async () => {
    const { clock, claim, leftOf } = await coordinator();
    await claim("s1", "runner", clock.now() + 3_000);
    wall.jump(LEASE_MS);
    await wall.advance(1_000);
    expect(await leftOf("s1")).toBe(LEASE_MS);
  });

  test("forward moves no lease while it cannot be written down", async () => {
    const { clock, claim, leftOf, breakStorage } = await coordinator();
    await claim("s1", "runner");
    breakStorage(true);
    wall.jump(HOUR_MS);
    await wall.advance(2_000);
    await renewTimely(storage, clock, { owner: "runner", now: clock.now(), leaseMs: LEASE_MS });
    expect(await leftOf("s1")).toBe(LEASE_MS);
  });

  // Storage gives a lease its length once more after nobody was there (ST38).
  test("forward leaves a lease as long as it is", async () => {
    const { claim, lengths } = await coordinator();
    await claim("s1", "runner");
    wall.jump(HOUR_MS);
    await wall.advance(2_000);
    expect(lengths).toEqual([LEASE_MS]);
  });

  // Asked for by the old time, and stored after the leases were looked at.
  test.each(["claim", "renew"] as const)(
    "while a %s is under way has it last by the new time",
    async (method) => {
      const { clock, leftOf, claim } = await coordinator();
      await claim("s1", "runner");
      const slow = storageWith(storage, {
        [method]: async (asked: { readonly now: number } & Parameters<typeof storage.claim>[0]) => {
          if (asked.now === early) clock.step(HOUR_MS);
          return storage[method](asked);
        },
      });
      const early = clock.now();
      const asked = { owner: "runner", now: early, leaseMs: LEASE_MS };
      if (method === "claim") await claimTimely(slow, clock, { ...asked, sessionId: "s1" });
      else await renewTimely(slow, clock, asked);
      expect(await leftOf("s1")).toBe(LEASE_MS);
    },
  );
});

describe("S3: time over restarts", () => {
  test("time continues from where it was written, even if the clock was set back meanwhile", async () => {
    const { clock, claim, time } = await coordinator();
    await claim("s1", "runner");
    await wall.advance(4_000);
    time.close();
    const before = clock.now();
    wall.jump(-HOUR_MS);
    const next = await coordinator();
    expect(before - next.clock.now()).toBeLessThanOrEqual(3_000);
  });

  // Otherwise the claim would be held for its lease and the time that was refused.
  test("time continues from the latest claim if the time itself was refused by a full disk", async () => {
    const { clock, claim, time, breakStorage } = await coordinator();
    wall.jump(HOUR_MS);
    await wall.advance(3_000);
    wall.jump(-HOUR_MS);
    await claim("s0", "another");
    breakStorage(true);
    await wall.advance(20 * LEASE_MS);
    await claim("s1", "runner");
    time.close();
    const before = clock.now();
    const next = await coordinator();
    expect(next.clock.now()).toBeGreaterThanOrEqual(before);
    expect(await next.leftOf("s1")).toBeLessThanOrEqual(LEASE_MS);
  });

  test("time follows a later time that another coordinator has written", async () => {
    const one = await coordinator();
    const two = await coordinator();
    two.clock.step(30_000);
    await two.claim("s1", "runner");
    await wall.advance(5_000);
    expect(one.clock.now()).toBeGreaterThanOrEqual(two.clock.now() - 3_000);
  });

  test("time is not written while there are no claims", async () => {
    await coordinator();
    const writtenAt = (await storage.reader.document("coordinator", "time"))?.updatedAt;
    await wall.advance(60_000);
    expect((await storage.reader.document("coordinator", "time"))?.updatedAt).toBe(writtenAt);
  });
});

test("O12: a lease continues when a coordinator returns long after the time was last written", async () => {
  const { claim, time } = await coordinator();
  await wall.advance(2_000);
  await claim("s1", "runner");
  await wall.advance(2_000);
  time.close();
  wall.jump(HOUR_MS);
  const next = await coordinator();
  expect(await next.leftOf("s1")).toBeGreaterThan(LEASE_MS - 5_000);
  expect(await next.leftOf("s1")).toBeLessThanOrEqual(LEASE_MS);
});

test("O12: a lease continues that began after the time was last written", async () => {
  const { claim, time } = await coordinator();
  await wall.advance(1_500);
  await claim("s1", "runner");
  time.close();
  wall.jump(HOUR_MS);
  const next = await coordinator();
  expect(await next.leftOf("s1")).toBe(LEASE_MS);
});

test("O12: leases continue when a late coordinator's first update of them fails", async () => {
  const { claim, time } = await coordinator();
  for (const sessionId of ["s1", "s2"]) await claim(sessionId, "runner");
  time.close();
  wall.jump(HOUR_MS);
  await expect(coordinator(1)).rejects.toThrow("storage is away");
  const { leftOf } = await coordinator();
  for (const sessionId of ["s1", "s2"]) expect(await leftOf(sessionId)).toBe(LEASE_MS);
});

// Another coordinator gave the claim by the new time. Its owner is no registered runner.
test("O12: a lease that was given after the carry began stays as long when the carry is tried again", async () => {
  const { claim, time } = await coordinator();
  await claim("s1", "runner");
  await wall.advance(2_000);
  time.close();
  await wall.advance(2 * LEASE_MS);
  await expect(coordinator(1)).rejects.toThrow("storage is away");
  await claim("s2", "runner");
  for (let tries = 0; tries < 3; tries++) await expect(coordinator(2)).rejects.toThrow("storage is away");
  const { leftOf } = await coordinator();
  expect(await leftOf("s2")).toBe(LEASE_MS);
});

// Several coordinators may begin at once over an empty storage. A coordinator that looked before the time was
// written may find leases that another one gave since.
test("O12: a coordinator that finds no written time leaves leases as they are", async () => {
  const { claim, time, clock } = await coordinator();
  await claim("s1", "runner");
  time.close();
  await storage.commit([{ type: "remove_document", collection: "coordinator", id: "time" }], clock.now());
  const { leftOf } = await coordinator();
  expect(await leftOf("s1")).toBe(LEASE_MS);
});

test("registry-2: a silent runner is removed after elapsed time, whatever the clock says", async () => {
  const { registry, clock } = await coordinator();
  await registry.change("runner", undefined, () => runnerAt(clock.now()));
  wall.jump(HOUR_MS);
  await wall.advance(2_000);
  expect(await registry.sweep()).toEqual([]);
  await wall.advance(9 * 60_000);
  expect(await registry.sweep()).toEqual([]);
  await wall.advance(60_000);
  expect(await registry.sweep()).toEqual(["runner"]);
});

function runnerAt(now: number) {
  return {
    runnerId: "runner",
    tokenId: "t",
    hostname: "h",
    project: "",
    labels: {},
    taskKinds: [],
    agents: [],
    maxRuns: 1,
    registeredAt: now,
    seenAt: now,
  };
}

/** @param renewals after how many of them storage fails once. */
async function coordinator(renewals = Infinity) {
  const warnings: string[] = [];
  const lengths: number[] = [];
  let isBroken = false;
  const kept = storageWith(storage, {
    commit: async (changes, now) => {
      if (isBroken) throw new Error("the disk is full");
      return storage.commit(changes, now);
    },
    renew: async (renewal) => {
      lengths.push(renewal.leaseMs);
      const renewed = await storage.renew(renewal);
      // The last that is made is not heard of.
      if (--renewals > 0) return renewed;
      renewals = Infinity;
      throw new Error("storage is away");
    },
  });
  const clock = new SteadyClock(wall);
  const registry = new Registry({ storage: kept, clock });
  const time = new StoreTime({
    storage: kept,
    clock,
    leaseMs: LEASE_MS,
    warn: (message) => void warnings.push(message),
  });
  await time.begin();
  return {
    clock,
    time,
    registry,
    warnings,
    lengths,
    breakStorage: (wanted: boolean) => void (isBroken = wanted),
    breakRenewals: (after: number) => void (renewals = after),
    claim: async (sessionId: string, owner: string, now = clock.now()) => {
      const agent = { name: "agent", version: "1" };
      const creation = { type: "create_session", sessionId, agent, input: undefined } as const;
      await storage.commit([{ ...creation, seed: 1, flags: 0, format: 1 }], clock.now());
      return storage.claim({ sessionId, owner, now, leaseMs: LEASE_MS });
    },
    leftOf: async (sessionId: string): Promise<number | undefined> => {
      const [held] = await storage.heldClaims({ now: clock.now(), limit: 1, sessionId });
      return held === undefined ? undefined : held.until - clock.now();
    },
  };
}
