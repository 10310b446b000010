import { defined, type JournalRecord } from "@holdfast/core";
import { expect, test } from "vitest";
import { SessionCosts } from "./session-costs.ts";

const DAY = 86_400_000;
const call = (seq: number, at: number, model: string, costMicroUsd?: number): JournalRecord =>
  ({
    type: "task_completed",
    seq,
    at,
    usage: {
      model,
      inputTokens: 10,
      outputTokens: 1,
      ...defined({ costMicroUsd }),
    },
  }) as unknown as JournalRecord;

test("session-costs-1: calls are summed by model and UTC day, and a record is read once as the journal grows", async () => {
  const records = [call(0, 0, "a", 5), call(1, DAY - 1, "a"), call(2, DAY, "a", 7), call(3, DAY, "b", 1)];
  const read: number[] = [];
  let written = 2;
  const costs = new SessionCosts({
    journal: (_, from, limit) => {
      read.push(from);
      return Promise.resolve(records.slice(from, Math.min(from + limit, written)));
    },
  });
  const session = (nextSeq: number) => ({ sessionId: "one", nextSeq });
  expect((await costs.of(session(2))).parts).toMatchObject([
    { model: "a", day: "1970-01-01", cost: { calls: 2, unpriced: 1, costMicroUsd: 5, inputTokens: 20 } },
  ]);
  written = 4;
  const { parts } = await costs.of(session(4));
  expect(parts.map(({ model, day, cost }) => [model, day, cost.calls, cost.costMicroUsd])).toEqual([
    ["a", "1970-01-01", 2, 5],
    ["a", "1970-01-02", 1, 7],
    ["b", "1970-01-02", 1, 1],
  ]);
  expect((await costs.of(session(4))).records).toBe(0);
  expect(read).toEqual([0, 2]);
});
