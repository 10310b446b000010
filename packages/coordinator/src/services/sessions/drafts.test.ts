import { expect, test } from "vitest";
import { Drafts } from "./drafts.ts";

test("a reader that takes nothing keeps the newest text of a few tasks", () => {
  const drafts = new Drafts();
  let calls = 0;
  const reader = drafts.read("a", () => calls++);
  for (let at = 0; at < 100; at++) drafts.show("a", { task: BigInt(at % 50), text: `text ${at}` });
  expect(calls).toBe(100);
  expect(reader.take().map(({ text }) => text)).toEqual(
    Array.from({ length: 8 }, (_, at) => `text ${50 + at}`),
  );
  expect(reader.take()).toEqual([]);
});

test("a session is watched until its last reader has ended", () => {
  const drafts = new Drafts();
  const [first, second] = [drafts.read("a", () => {}), drafts.read("a", () => {})];
  first.end();
  first.end();
  expect([drafts.isWatched("a"), drafts.isWatched("b")]).toEqual([true, false]);
  second.end();
  expect(drafts.isWatched("a")).toBe(false);
  drafts.show("a", { task: 1n, text: "late" });
  expect(second.take()).toEqual([]);
});
