// A keeper whose event loop was blocked, while the watchdog's thread renewed in its place.

import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { LeaseKeeper } from "./lease-keeper.ts";

const LEASE_MS = 15_000;

test("O5: a keeper keeps the sessions that the watchdog's thread has renewed while the event loop was blocked", async () => {
  const clock = new TestClock();
  const stand = { lost: 0, renewedAgoMs: 1_000 };
  const keeper = new LeaseKeeper({
    clock,
    leaseMs: LEASE_MS,
    renewMs: undefined,
    renew: () => new Promise(() => {}),
    isHolding: () => true,
    abandonAll: () => void stand.lost++,
    renewedAgoMs: () => stand.renewedAgoMs,
  });
  keeper.claiming();
  await clock.advance(LEASE_MS);
  expect(stand.lost).toBe(0);
  stand.renewedAgoMs = LEASE_MS;
  await clock.advance(LEASE_MS);
  expect(stand.lost).toBe(1);
});
