// How often is looked for what others stored, over a database that only takes its time. What is found is shown by `sharing.test.ts`.

import type { Session, SessionStatus } from "@holdfast/core";
import { Followers, releasedClaim, type Claim } from "@holdfast/core/internal";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { ArrivalPoll } from "./arrival-poll.ts";
import type { Statement } from "../database/database.ts";
import type { Head } from "../tables/heads.ts";

const LOOK_MS = 10;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** @param moved what the database has of sessions that are not as they were known. */
function polling(moved = new Map<string, Head>()) {
  const looks: number[] = [];
  const run = async ({ name }: Statement) => {
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
    followers: new Followers(),
  });
  poll.start();
  onTestFinished(() => poll.stop());
  return { poll, looks };
}

test("arrival-poll-4: who is told of something all the time rests most of it", async () => {
  const { poll, looks } = polling();
  for (let ms = 0; ms < 1_000; ms++) {
    poll.hurry();
    await vi.advanceTimersByTimeAsync(1);
  }
  const apart = looks.slice(1).map((at, i) => at - looks[i]!);
  expect(new Set(apart)).toEqual(new Set([4 * LOOK_MS]));
});

test("arrival-poll-4: who was not told for a while looks at once, and after a rest when told meanwhile", async () => {
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

describe("what was claimed here is watched as long as that claim is held", () => {
  const head = (version: number, status: SessionStatus, token = 7, owner: string | undefined = "owner") =>
    ({
      sessionId: "s",
      lane: 0,
      version,
      session: { inbox: 0, status } as Partial<Session>,
      claim: { token, owner } as Partial<Claim>,
    }) as Head;

  test.each([
    ["goes on under it", head(2, "waiting"), true],
    ["has ended", head(2, "completed"), false],
    ["was released", { ...head(2, "waiting"), claim: releasedClaim(head(2, "waiting").claim) }, false],
    ["was claimed by somebody else", head(2, "working", 8), false],
  ])("also where it %s by way of another process", async (_what, now, isWatched) => {
    const moved = new Map<string, Head>();
    const { poll } = polling(moved);
    poll.watch(head(1, "working"));
    moved.set("s", now);
    await vi.advanceTimersByTimeAsync(250 + LOOK_MS);
    expect(poll.isWatching("s")).toBe(isWatched);
  });
});
