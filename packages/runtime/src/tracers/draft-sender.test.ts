import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { beforeEach, expect, test } from "vitest";
import type { ShownDraft } from "@holdfast/core";
import { DraftSender } from "./draft-sender.ts";

let clock: TestClock;
let sender: DraftSender;
let requests: (readonly ShownDraft[])[];
/** The sessions that somebody watches. */
let watched: readonly string[];
let isAway: boolean;

beforeEach(() => {
  clock = new TestClock();
  requests = [];
  watched = [];
  isAway = false;
  sender = new DraftSender({
    clock,
    show: async (drafts) => {
      requests.push(drafts);
      await turns(1);
      if (isAway) throw new Error("the coordinator is away");
      return drafts.map(({ sessionId }) => sessionId).filter((one) => watched.includes(one));
    },
  });
});

const of = (sessionId: string, task: number) => ({
  sessionId,
  at: 0,
  taskId: `${sessionId}-${task}`,
  kind: "model",
});
function token(text: string, sessionId = "a", attempt = 1): void {
  const delta = { type: "token", text } as const;
  sender.trace({ ...of(sessionId, 4), type: "task_delta", attempt, offset: 0, delta });
}
function end(): void {
  const ended = { attempt: 1, outcome: "completed", durationMs: 1 } as const;
  sender.trace({ ...of("a", 4), type: "task_ended", ...ended });
}
async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  await turns(5);
}
const texts = () => requests.flat().map(({ draft }) => draft?.text);

test("while nobody watches it asks every three seconds, and never while no model writes", async () => {
  await pass(60_000);
  expect(requests).toEqual([]);
  for (let at = 0; at < 40; at++) {
    token("word ");
    await pass(250);
  }
  expect(requests).toHaveLength(4);
  expect(texts().every((text) => text === undefined)).toBe(true);
  end();
  await pass(60_000);
  expect(requests.length).toBeLessThanOrEqual(4);
});

test("a watched session is shown the whole text so far soon after each piece, and nothing while none comes", async () => {
  watched = ["a"];
  token("The first ");
  await pass(250);
  await pass(250);
  expect(texts()).toEqual([undefined, "The first "]);
  token("and ");
  token("the second");
  await pass(250);
  expect(texts().slice(2)).toEqual(["The first and the second"]);
  const { length } = requests;
  await pass(2_000);
  expect(requests).toHaveLength(length);
  token("unseen", "b");
  token("!");
  await pass(250);
  expect(requests.at(-1)).toEqual([
    { sessionId: "a", draft: { task: 4, text: "The first and the second!" } },
  ]);
});

test("a reader that comes later gets the whole text with the next question, also while the model pauses", async () => {
  watched = ["a"];
  token("The first half");
  await pass(500);
  expect(texts()).toEqual([undefined, "The first half"]);
  await pass(3_000);
  expect(texts()).toEqual([undefined, "The first half", "The first half"]);
});

test("the next text of a session that is watched is shown without another question", async () => {
  watched = ["a"];
  token("one");
  await pass(500);
  end();
  await pass(1_000);
  token("two");
  await pass(250);
  expect(texts()).toEqual([undefined, "one", "two"]);
  watched = [];
  token("!");
  await pass(250);
  token("?");
  await pass(250);
  expect(texts()).toEqual([undefined, "one", "two", "two!"]);
});

test("another attempt begins its text again, and a recorded message ends the text of its session", async () => {
  watched = ["a"];
  token("cut o");
  await pass(500);
  token("again", "a", 2);
  await pass(250);
  expect(texts().at(-1)).toBe("again");
  const entry = { sessionId: "a", at: 0, type: "entry_appended", entryId: "a-9", content: "again" } as const;
  sender.trace({ ...entry, role: "tool" });
  await pass(250);
  expect(texts().at(-1)).toBe("again");
  sender.trace({ ...entry, role: "assistant" });
  token("next", "a", 2);
  await pass(250);
  expect(texts().at(-1)).toBe("next");
});

test("a long text costs the memory of its end, and half a character is not sent", async () => {
  watched = ["a"];
  for (let at = 0; at < 100; at++) token(`${"🙂".repeat(500)}${at === 99 ? "end." : "-"}`);
  await pass(500);
  const text = texts().at(-1)!;
  expect(text.length).toBeLessThanOrEqual(16_000);
  expect(text).toMatch(/end\.$/);
  expect(text.isWellFormed()).toBe(true);
});

test("many long texts come in requests that the coordinator takes, and each has its turn", async () => {
  watched = Array.from({ length: 60 }, (_, at) => `s${at}`);
  for (let at = 0; at < 20; at++) {
    for (const sessionId of watched) token("中".repeat(16_000), sessionId);
    await pass(250);
  }
  for (const drafts of requests)
    expect(drafts.reduce((sum, { draft }) => sum + (draft?.text.length ?? 0), 0)).toBeLessThanOrEqual(
      200_000,
    );
  const shown = new Set(
    requests.flat().flatMap(({ sessionId, draft }) => (draft === undefined ? [] : sessionId)),
  );
  expect(shown.size).toBe(60);
});

test("a coordinator that is away costs one request in three seconds, and a closed sender none", async () => {
  watched = ["a"];
  isAway = true;
  for (let at = 0; at < 24; at++) {
    token("word ");
    await pass(250);
  }
  expect(requests.length).toBeLessThanOrEqual(3);
  isAway = false;
  await pass(3_000);
  await pass(250);
  expect(texts().findLast((text) => text !== undefined)).toContain("word word");
  sender.close();
  const { length } = requests;
  token("more");
  await pass(10_000);
  expect(requests).toHaveLength(length);
});
