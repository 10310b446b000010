import { beforeEach, expect, test } from "vitest";
import { DraftBoard } from "./draft-board.ts";

let now: number;
let board: DraftBoard;

beforeEach(() => {
  now = 1_000;
  board = new DraftBoard(() => now);
});

const write = (sessionId: string, task: number, text: string) =>
  board.show([{ sessionId, draft: { task, text } }]);

test("a draft reaches each process that watches its session, once", async () => {
  expect(await write("a", 1, "lost, as nobody watches")).toEqual([]);
  const { next } = await board.watch(["a"], 0);
  expect(await write("a", 1, "the first")).toEqual(["a"]);
  expect(await board.show([{ sessionId: "a" }, { sessionId: "b" }])).toEqual(["a"]);
  const drafts = [{ sessionId: "a", draft: { task: 1, text: "the first" } }];
  const news = await board.watch(["a"], next);
  expect(news.drafts).toEqual(drafts);
  expect((await board.watch(["a"], next)).drafts).toEqual(drafts); // Another process.
  expect((await board.watch(["a"], news.next)).drafts).toEqual([]);
  await write("a", 1, "the first and more");
  expect((await board.watch(["a"], news.next)).drafts).toMatchObject([
    { draft: { text: "the first and more" } },
  ]);
});

test("a watch that is not repeated ends, and its drafts are dropped", async () => {
  await board.watch(["a"], 0);
  await write("a", 1, "so far");
  now += 9_000;
  expect(await board.show([{ sessionId: "a" }])).toEqual(["a"]);
  now += 2_000;
  expect(await board.show([{ sessionId: "a" }])).toEqual([]);
  expect((await board.watch(["a"], 0)).drafts).toEqual([]);
});

test("however many sessions and tasks there are, a bounded number of drafts is kept", async () => {
  const ids = Array.from({ length: 60 }, (_, at) => `ses-${at}`);
  for (const id of ids) await board.watch([id], 0);
  for (const id of ids) for (let task = 0; task < 20; task++) await write(id, task, "text");
  expect(await board.show(ids.map((sessionId) => ({ sessionId })))).toEqual(ids.slice(10));
  const { drafts } = await board.watch(ids.slice(10), 0);
  expect(drafts).toHaveLength(50 * 8);
  expect(drafts.at(-1)).toEqual({ sessionId: "ses-59", draft: { task: 19, text: "text" } });
});
