import { expect, test } from "vitest";
import { addUsage, NO_COST } from "./cost.ts";
import { itemFacts, itemName, timelineFacts, turnFacts } from "./timeline-words.ts";
import { TimelineBuilder } from "./timeline.ts";
import type { PlainRecord } from "./journal-event.ts";
import { EventReader } from "./journal/event-reader.ts";

const priced = { model: "m", inputTokens: 5, outputTokens: 1, costMicroUsd: 2_000 };
const { costMicroUsd: _none, ...unpriced } = priced;

function timelineOf(records: readonly Partial<PlainRecord>[]): TimelineBuilder {
  const events = new EventReader("ses_1");
  const timeline = new TimelineBuilder();
  for (const [seq, record] of records.entries())
    timeline.add(events.event({ ...record, seq } as PlainRecord, undefined));
  return timeline;
}

test("a call without a price makes the cost of its item, turn and session unknown, and not zero (timeline-2)", () => {
  const { turns, usage, models } = timelineOf([
    { type: "started", at: 1 },
    { type: "schedule_task", id: 0, kind: "model" },
    { type: "schedule_task", id: 1, kind: "model" },
    { type: "attempt_lost", task: 0, attempt: 1, at: 2 },
    { type: "task_completed", task: 0, attempt: 2, at: 3, usage: unpriced },
    { type: "task_completed", task: 1, attempt: 1, at: 4, usage: priced },
  ]);
  expect(turns[0]!.items.map(itemFacts)).toEqual([
    ["2 attempts", "1 lost", "5+1 tokens", "cost unknown"],
    ["5+1 tokens", "$0.002"],
  ]);
  expect(turnFacts(turns[0]!)).toEqual(["3 deliveries", "2 tasks", "10+2 tokens", "$0.002 + unknown"]);
  expect(timelineFacts(turns, usage).at(-1)).toBe("$0.002 + unknown");
  expect(models).toMatchObject([{ model: "m", calls: 2, unpriced: 1 }]);
});

test("a free call costs nothing, and what called no model has no cost", () => {
  const { turns, usage } = timelineOf([{ type: "started", at: 1 }]);
  expect(timelineFacts(turns, usage)).toEqual(["1 turn", "0 tasks"]);
  expect(timelineFacts(turns, addUsage(NO_COST, { ...priced, costMicroUsd: 0 })).at(-1)).toBe("$0.00");
});

test("a usage that nobody has counted is unknown, and not zero", () => {
  const uncounted = { model: "unknown", inputTokens: 0, outputTokens: 0 };
  expect(timelineFacts([], addUsage(NO_COST, uncounted)).at(-1)).toBe("usage unknown");
  expect(timelineFacts([], addUsage(addUsage(NO_COST, uncounted), priced)).slice(-2)).toEqual([
    "5+1 tokens",
    "$0.002 + unknown",
  ]);
});

test("a wait for another session is named by that session", () => {
  const item = { id: 1, seq: 1, type: "signal", name: "child-end:3", startedAt: 0, outcome: "open" } as const;
  expect(itemName(item, "ses_1")).toBe("the end of child ses_1-3");
  expect(itemFacts(item)).toEqual(["open"]);
});

test("the ends of several children are told apart by their agents and numbers", () => {
  const { turns } = timelineOf([
    { type: "started", at: 1 },
    { type: "spawn_child", id: 1, agent: "reviewer" },
    { type: "spawn_child", id: 2, agent: "writer" },
    { type: "wait_signal", id: 3, name: "child-end:1" },
    { type: "wait_signal", id: 4, name: "child-end:2" },
  ]);
  expect(turns[0]!.items.map((item) => itemName(item, "ses_1"))).toEqual([
    "the end of reviewer #1",
    "the end of writer #2",
  ]);
  expect(turns[0]!.items[1]!.child).toEqual({ sessionId: "ses_1-2", agent: "writer" });
  expect(turns[0]!.marks[0]!.child?.sessionId).toBe("ses_1-1");
});

test("nothing is open in a session that has ended, also where no record says so", () => {
  const timeline = timelineOf([
    { type: "started", at: 1 },
    { type: "schedule_task", id: 0, kind: "model" },
    { type: "wait_signal", id: 1, name: "go" },
    { type: "cancel_requested", at: 5 },
  ]);
  timeline.end(9);
  const [turn] = timeline.turns;
  expect(turn!.endedAt).toBe(9);
  expect(turn!.items.map(({ outcome, endedAt }) => [outcome, endedAt])).toEqual([
    ["cancelled", 9],
    ["cancelled", 9],
  ]);
});
