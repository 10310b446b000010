import { expect, test } from "vitest";
import type { PlainRecord } from "../journal-event.ts";
import { EventReader } from "./event-reader.ts";
import { commonRows, JournalRows } from "./journal-rows.ts";

const RECORDS: readonly Partial<PlainRecord>[] = [
  { type: "started", at: 1 },
  { type: "schedule_task", id: 0, kind: "build" },
  { type: "attempt_failed", task: 0, attempt: 1, at: 2 },
  { type: "task_completed", task: 0, attempt: 2, at: 3 },
  { type: "checkpoint", id: 1, turn: 1, at: 3 },
  { type: "started", at: 4 },
  { type: "wait_signal", id: 2, name: "child-end:7" },
];

function rowsOf(sessionId: string, records: readonly Partial<PlainRecord>[]): JournalRows {
  const events = new EventReader(sessionId);
  const rows = new JournalRows(sessionId);
  for (const [seq, record] of records.entries()) {
    const payload = record.type === "attempt_failed" ? { name: "E", message: "x".repeat(9_999) } : undefined;
    rows.add(events.event({ ...record, seq } as PlainRecord, payload));
  }
  return rows;
}

test("a row says what its record is about, and stays short (journal-rows-1)", () => {
  const { rows } = rowsOf("ses_1", RECORDS);
  expect(rows.map(({ about }) => about.slice(0, 30))).toEqual([
    "",
    "build #0",
    "build #0, attempt 1: xxxxxxxxx",
    "build #0",
    "turn 1",
    "",
    "the end of child ses_1-7",
  ]);
  expect(rows[2]!.about.length).toBeLessThan(400);
});

test("the states around a record are those of the checkpoints before it and from it on", () => {
  const journal = rowsOf("ses_1", RECORDS);
  expect(journal.checkpointsAround(4)).toEqual({ before: undefined, after: 4 });
  expect(journal.checkpointsAround(5)).toEqual({ before: 4, after: undefined });
});

test("a fork has its origin's records up to the place where it left", () => {
  const origin = rowsOf("ses_1", RECORDS).rows;
  const fork = rowsOf("ses_2", [...RECORDS.slice(0, 5), { type: "started", at: 90 }]).rows;
  expect(commonRows(origin, fork)).toBe(5);
  expect(commonRows(fork, origin)).toBe(5);
  expect(commonRows(origin.slice(0, 3), origin)).toBe(3);
});
