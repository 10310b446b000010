// The cost of a session at work. Without its reports, a coding agent of hours costs nothing until it ends.

import type { JournalRecord, Session, StorageReader } from "@holdfast/core";
import { expect, test } from "vitest";
import { CostReader } from "./session-cost.ts";

const usage = { model: "m", inputTokens: 10, outputTokens: 5, costMicroUsd: 100 };
const report = {
  isCharged: true,
  events: [
    { type: "text", text: "…" },
    { type: "usage", usage },
  ],
};

const RECORDS = [
  { type: "schedule_task", kind: "claude-code:turn", hash: "h" },
  { type: "take_signals", names: ["r", "r"], payload: JSON.stringify([report, report]) },
  { type: "signal_received", payload: JSON.stringify(report) },
  // A signal of a person, which only looks like a report.
  { type: "signal_received", payload: JSON.stringify({ events: report.events }) },
  { type: "signal_received", payload: '"the word \\"usage\\" of a person"' },
  { type: "task_completed", usage: { ...usage, inputTokens: 30, isCharged: true } },
  { type: "task_completed", usage },
].map((record, seq) => ({ seq, ...record }) as unknown as JournalRecord);

test("a coding agent's usage counts with each of its reports, and not again at the end of its turn", async () => {
  let shown = 0;
  const reader = {
    journal: (_id: string, from: number) => Promise.resolve(RECORDS.slice(from, shown)),
  } as unknown as StorageReader;
  const costs = new CostReader();
  const costAfter = async (records: number): Promise<number | undefined> => {
    shown = records;
    const session = { sessionId: "s", nextSeq: records } as Session;
    return (await costs.costs([{ session, reader }]))[0]?.costMicroUsd;
  };
  expect(await costAfter(1)).toBe(0);
  expect(await costAfter(2)).toBe(200);
  expect(await costAfter(6)).toBe(300);
  expect(await costAfter(7)).toBe(400);
});
