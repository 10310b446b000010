import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { beforeEach, expect, test } from "vitest";
import { Drafts } from "./drafts.ts";
import { followSharedDrafts } from "./shared-drafts.ts";

let clock: TestClock;
let drafts: Drafts;
let asked: (readonly [readonly string[], number])[];
let text: string | undefined;
let isAway: boolean;
let unfollow: () => void;

beforeEach(() => {
  clock = new TestClock();
  drafts = new Drafts();
  asked = [];
  text = undefined;
  isAway = false;
  const watch = async (sessionIds: readonly string[], after: number) => {
    asked.push([sessionIds, after]);
    if (isAway) throw new Error("the owner is away");
    const shown = text === undefined ? [] : [{ sessionId: "a", draft: { task: 3, text } }];
    return { drafts: shown, next: asked.length };
  };
  unfollow = followSharedDrafts(drafts, watch, clock);
});

async function pass(ms: number): Promise<void> {
  await turns(5);
  await clock.advance(ms);
  await turns(5);
}

test("texts of other processes reach the reader of their session, and nothing is asked without a reader", async () => {
  await pass(300_000);
  expect(asked).toEqual([]);
  const reader = drafts.read("a", () => {});
  await pass(250);
  expect(asked).toEqual([[["a"], 0]]);
  text = "so far";
  await pass(1_000);
  expect(reader.take()).toEqual([{ task: 3n, text: "so far" }]);
  expect(asked.at(-1)).toEqual([["a"], 1]);
  text = "so far, and more";
  await pass(250);
  expect(reader.take()).toEqual([{ task: 3n, text: "so far, and more" }]);
  reader.end();
  await pass(60_000);
  const { length } = asked;
  await pass(300_000);
  expect(asked).toHaveLength(length);
});

test("an owner that does not answer is asked again", async () => {
  isAway = true;
  const reader = drafts.read("a", () => {});
  await pass(250);
  await pass(1_000);
  expect(asked.length).toBeGreaterThanOrEqual(2);
  isAway = false;
  text = "so far";
  await pass(1_000);
  expect(reader.take()).toHaveLength(1);
  unfollow();
  const { length } = asked;
  await pass(10_000);
  expect(asked).toHaveLength(length);
});
