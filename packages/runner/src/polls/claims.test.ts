// givenBy: the age of a claim, by the clocks of the coordinator and of this machine.

import { CoordinatorTime } from "@holdfast/storage/remote";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { givenBy } from "./claims.ts";

test("the age of a claim is measured by the coordinator's time", () => {
  const clock = new TestClock();
  const claim = {
    token: 7n,
    claimedAt: BigInt(clock.now() - 300),
    snapshot: new TextEncoder().encode("{}"),
  };
  clock.stall(1_000);
  const time = new CoordinatorTime(clock);
  time.received(clock.now(), clock.monotonic());
  expect(givenBy(claim, time)).toMatchObject({ token: 7, claimedAt: -300 });
  // The claim never seems to be made in the future, whatever the coordinator says.
  expect(givenBy({ ...claim, claimedAt: BigInt(clock.now() + 5_000) }, time)).toMatchObject({
    claimedAt: 1_000,
  });
});

test("a claim is new when another coordinator, whose clock is behind, has taken over", () => {
  const clock = new TestClock();
  const time = new CoordinatorTime(clock);
  time.received(60_000, clock.monotonic());
  expect(time.now()).toBe(60_000);
  time.received(40_000, clock.monotonic());
  const claim = { token: 7n, claimedAt: 40_000n, snapshot: new TextEncoder().encode("{}") };
  expect(givenBy(claim, time)).toMatchObject({ claimedAt: clock.monotonic() });
});
