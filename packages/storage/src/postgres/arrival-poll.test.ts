// How often is looked for what others stored, over a database that only takes its time. What is found is shown by `sharing.test.ts`.

import { Followers } from "@holdfast/core/internal";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { ArrivalPoll } from "./arrival-poll.ts";
import type { Statement } from "./database.ts";

const LOOK_MS = 10;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function polling() {
  const looks: number[] = [];
  const run = async ({ name }: Statement) => {
    if (name !== "ready") return [];
    looks.push(performance.now());
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    return [];
  };
  const poll = new ArrivalPoll({
    db: { run },
    reads: { heads: async () => new Map() },
    heads: { put: () => {} },
    instance: "ours",
    everyMs: 250,
    announce: () => {},
    followers: new Followers(),
  });
  poll.start();
  onTestFinished(() => poll.stop());
  return { poll, looks };
}

test("L4: who is told of something all the time rests most of it", async () => {
  const { poll, looks } = polling();
  for (let ms = 0; ms < 1_000; ms++) {
    poll.hurry();
    await vi.advanceTimersByTimeAsync(1);
  }
  const apart = looks.slice(1).map((at, i) => at - looks[i]!);
  expect(new Set(apart)).toEqual(new Set([4 * LOOK_MS]));
});

test("L4: who was not told for a while looks at once, and after a rest when told meanwhile", async () => {
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
