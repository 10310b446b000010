// When readers of all changes are woken, in simulated time.

import type { Session } from "@holdfast/core";
import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { beforeEach, expect, test } from "vitest";
import { AllChanges, type ChangeReader } from "./all-changes.ts";

let clock: TestClock;
let notify: ((session: Session | undefined) => void) | undefined;
let changes: AllChanges;
beforeEach(() => {
  clock = new TestClock();
  notify = undefined;
  const follow = (_: string | undefined, onNotice: (isActive: boolean, session?: Session) => void) => {
    notify = (session) => onNotice(false, session);
    return () => (notify = undefined);
  };
  changes = new AllChanges({ follow }, clock);
});

/** Counts how often a reader is woken. */
function counting(owner?: string): { count: number; readonly reader: ChangeReader } {
  const reader = changes.read(owner);
  const woken = { count: 0, reader };
  const read = async (): Promise<void> => {
    for (;;) {
      await reader.next();
      woken.count++;
    }
  };
  void read();
  return woken;
}

function of(owner: string): Session {
  return { sessionId: "ses-1", placement: { owner } } as Session;
}

test("a change wakes every reader at once, and changes that come soon after it wake them once more", async () => {
  const [first, second] = [counting(), counting()];
  await turns(1);
  expect([first.count, second.count]).toEqual([1, 1]); // The state when the reader came.
  for (let each = 0; each < 10; each++) {
    notify!(of("ada"));
    await turns(1);
  }
  expect([first.count, second.count]).toEqual([2, 2]);
  await clock.advance(50);
  await turns(1);
  expect([first.count, second.count]).toEqual([3, 3]);
  await clock.advance(1_000);
  await turns(1);
  expect([first.count, second.count]).toEqual([3, 3]);
});

test("more readers gather changes for longer", async () => {
  const readers = Array.from({ length: 50 }, () => counting());
  await turns(1);
  notify!(of("ada"));
  await turns(1);
  notify!(of("ada"));
  await clock.advance(50);
  await turns(1);
  expect(readers[0]!.count).toBe(2);
  await clock.advance(20);
  await turns(1);
  expect(readers[0]!.count).toBe(3);
});

test("a reader gets the newest state of a few sessions, and learns of further ones only that they are there", async () => {
  const reader = changes.read(undefined);
  const session = (number: number, turn = 0): Session =>
    ({ sessionId: `ses-${number}`, turn }) as unknown as Session;
  expect(await reader.next()).toEqual({ sessions: [], hasOthers: true });
  for (const number of [1, 2, 3, 4]) notify!(session(number));
  notify!(session(2, 7));
  expect(await reader.next()).toEqual({
    sessions: [session(1), session(2, 7), session(3), session(4)],
    hasOthers: false,
  });
  for (const number of [1, 2, 3, 4, 5]) notify!(session(number));
  await clock.advance(50);
  const { sessions, hasOthers } = await reader.next();
  expect([sessions.length, hasOthers]).toEqual([4, true]);
  notify!(undefined);
  await clock.advance(50);
  expect(await reader.next()).toEqual({ sessions: [], hasOthers: true });
});

test("a reader for one owner is not woken by sessions of others", async () => {
  const [ada, admin] = [counting("ada"), counting()];
  await turns(1);
  notify!(of("bob"));
  await turns(1);
  expect([ada.count, admin.count]).toEqual([1, 2]);
  await clock.advance(50);
  notify!(of("ada"));
  await turns(1);
  expect([ada.count, admin.count]).toEqual([2, 3]);
});

test("the storage is followed only while there is a reader", async () => {
  const [first, second] = [counting(), counting()];
  expect(notify).toBeDefined();
  first.reader.end();
  expect(notify).toBeDefined();
  second.reader.end();
  expect(notify).toBeUndefined();
});
