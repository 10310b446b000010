// SettlementQueue: a settlement costs what it admits, whatever waits, and no driver waits without an end.

import { TestClock } from "@holdfast/testkit/test-runtime";
import { beforeEach, expect, test } from "vitest";
import { Timers } from "../loop/timers.ts";
import type { Driven } from "../session/driver-environment.ts";
import { SettlementQueue } from "./settlement-queue.ts";

let clock: TestClock;
let queue: SettlementQueue;
let woken: string[];
beforeEach(() => {
  clock = new TestClock();
  const timers = new Timers(clock);
  queue = new SettlementQueue(() => timers);
  woken = [];
});

function waiting(sessionId: string, ...payers: string[]): Driven {
  const driver = { sessionId, token: 1, retryQueued: () => void woken.push(sessionId) };
  queue.asked(driver, payers, true);
  return driver;
}

test("a settlement wakes the two drivers that have waited longest, however many wait", () => {
  for (let n = 0; n < 1_000; n++) waiting(`s${n}`, "root");
  queue.settled(["root"]);
  expect(woken).toEqual(["s0", "s1"]);
  queue.settled(["root"]);
  expect(woken).toEqual(["s0", "s1", "s2", "s3"]);
});

test("a driver whose tasks are admitted wakes two others, and a driver that waits again wakes none", () => {
  const [first, second] = ["s0", "s1", "s2", "s3", "s4"].map((id) => waiting(id, "root"));
  queue.settled(["root"]);
  queue.asked(first!, ["root"], true);
  expect(woken).toEqual(["s0", "s1"]);
  queue.asked(second!, ["root"], false);
  expect(woken).toEqual(["s0", "s1", "s2", "s3"]);
  queue.asked(second!, ["root"], false); // Nobody woke it for this.
  expect(woken).toHaveLength(4);
});

test("a settlement wakes only drivers that one of its payers pays for", () => {
  waiting("other", "elsewhere");
  waiting("below", "parent", "root");
  queue.settled(["child", "parent"]);
  expect(woken).toEqual(["below"]);
});

test("a driver that is over passes the room on that it was woken for", () => {
  const [first] = ["s0", "s1", "s2", "s3"].map((id) => waiting(id, "root"));
  queue.settled(["root"]);
  queue.delete(first!);
  expect(woken).toEqual(["s0", "s1", "s2", "s3"]);
});

test("all drivers are woken after half a second, as another process may have settled", async () => {
  for (const id of ["s0", "s1", "s2"]) waiting(id, "root");
  await clock.advance(499);
  expect(woken).toEqual([]);
  await clock.advance(1);
  expect(woken).toEqual(["s0", "s1", "s2"]);
});
