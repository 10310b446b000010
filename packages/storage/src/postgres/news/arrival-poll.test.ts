// How often ArrivalPoll polls, over a database that only takes its time. `sharing.test.ts` shows what it
// finds.

import { type Claim, Followers, releasedClaim, type Session, type SessionStatus } from "@holdfast/core";
import { fakeableTimers } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ArrivalPoll } from "./arrival-poll.ts";
import type { Statement } from "../database/database.ts";
import type { Head } from "../tables/heads.ts";

const LOOK_MS = 10;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** @param moved the sessions that have changed in the database since they were read. */
function polling(
  moved = new Map<string, Head>(),
  fails: (statement: string | undefined) => boolean = () => false,
) {
  const looks: number[] = [];
  const followers = new Followers();
  let snapshot = 1;
  const run = async ({ name }: Statement) => {
    if (fails(name)) throw new Error("the server went away");
    if (name === "snapshot") return [{ snapshot }];
    if (name === "moved") return [...moved.keys()].map((sessionId) => ({ session_id: sessionId }));
    if (name !== "ready") return [];
    looks.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    return [];
  };
  const poll = new ArrivalPoll({
    db: { run },
    reads: { heads: async () => moved },
    heads: { put: () => {} },
    peers: { look: async () => [], reap: async () => [] },
    everyMs: 250,
    announce: () => {},
    followers,
    ...fakeableTimers,
  });
  poll.start();
  onTestFinished(() => poll.stop());
  return { poll, looks, followers, commitElsewhere: () => void snapshot++ };
}

test("arrival-poll-4: a poll that is hurried all the time rests most of the time", async () => {
  const { poll, looks } = polling();
  for (let ms = 0; ms < 1_000; ms++) {
    poll.hurry();
    await vi.advanceTimersByTimeAsync(1);
  }
  const apart = looks.slice(1).map((at, i) => at - looks[i]!);
  expect(new Set(apart)).toEqual(new Set([4 * LOOK_MS]));
});

test("arrival-poll-6: a follower of all sessions is notified of commits of other processes, and of nothing else", async () => {
  const { followers, commitElsewhere } = polling();
  let received = 0;
  followers.follow(undefined, () => received++);
  await vi.advanceTimersByTimeAsync(300);
  expect(received).toBe(1); // There may have been something before the first look.
  await vi.advanceTimersByTimeAsync(1_000);
  expect(received).toBe(1);
  commitElsewhere();
  await vi.advanceTimersByTimeAsync(300);
  expect(received).toBe(2);
});

test("arrival-poll-4: a rested poll looks at once when it is hurried, and after a rest when hurried again", async () => {
  const { poll, looks } = polling();
  await vi.advanceTimersByTimeAsync(500);
  const before = looks.length;
  poll.hurry();
  await vi.advanceTimersByTimeAsync(0);
  expect(looks.length).toBe(before + 1);
  poll.hurry();
  await vi.advanceTimersByTimeAsync(4 * LOOK_MS - 1);
  expect(looks.length).toBe(before + 1);
  await vi.advanceTimersByTimeAsync(1);
  expect(looks.length).toBe(before + 2);
});

describe("a session that was claimed here", () => {
  const head = (version: number, status: SessionStatus, token = 7, owner: string | undefined = "owner") =>
    ({
      sessionId: "s",
      lane: 0,
      version,
      session: { inbox: 0, status } as Partial<Session>,
      claim: { token, owner } as Partial<Claim>,
    }) as Head;

  test.each([
    ["is still claimed here", head(2, "waiting"), true],
    ["has ended", head(2, "completed"), false],
    ["was released", { ...head(2, "waiting"), claim: releasedClaim(head(2, "waiting").claim) }, false],
    ["was claimed by somebody else", head(2, "working", 8), false],
  ])(
    "it is watched only while its claim is held, also after another process shows that it %s",
    async (_what, now, isWatched) => {
      const moved = new Map<string, Head>();
      const { poll } = polling(moved);
      poll.watch(head(1, "working"));
      moved.set("s", now);
      await vi.advanceTimersByTimeAsync(250 + LOOK_MS);
      expect(poll.isWatching("s")).toBe(isWatched);
    },
  );
});

test.each(["versions", "ready", "snapshot"])(
  "a poll whose statement %s fails once looks again",
  async (statement) => {
    const failed: (string | undefined)[] = [];
    const { looks, followers } = polling(new Map(), (name) => {
      if (name !== statement || failed.length > 0) return false;
      failed.push(name);
      return true;
    });
    followers.follow(undefined, () => {});
    followers.follow("s1", () => {});
    await vi.advanceTimersByTimeAsync(300);
    const before = looks.length;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(looks.length - before).toBeGreaterThanOrEqual(3);
    expect(failed).toEqual([statement]);
  },
);
