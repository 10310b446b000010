// A timeline tells what the journal says: no more, no less, and on any width.

import { stripVTControlCharacters } from "node:util";
import type { JournalRecord, StorageReader } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { beforeEach, expect, test } from "vitest";
import type { Look, Paint } from "../frame/command.ts";
import { ASCII } from "../frame/terminal.ts";
import { readTimeline, timelineJson } from "./session-timeline.ts";
import { timelineText } from "./timeline-text.ts";

const T = 1_700_000_000_000;
const big = {
  model: "acme/big",
  calls: 1,
  unpriced: 0,
  inputTokens: 100,
  outputTokens: 20,
  costMicroUsd: 1_500,
};
const error = JSON.stringify({ name: "Error", message: "the \u001b[31mserver is away, ".repeat(20) });

const RECORDS = [
  { type: "started", at: T },
  { type: "schedule_task", id: 0, kind: "model", hash: "h" },
  { type: "wait_signal", id: 1, name: "go", mode: "consume" },
  {
    type: "attempt_failed",
    task: 0,
    attempt: 1,
    at: T + 1_000,
    retryAt: T + 3_000,
    usage: big,
    payload: error,
  },
  { type: "attempt_lost", task: 0, attempt: 2, at: T + 4_000 },
  {
    type: "task_completed",
    task: 0,
    attempt: 3,
    at: T + 5_000,
    usage: { ...big, model: "acme/small" },
    payload: '"ok"',
  },
  { type: "signal_received", wait: 1, signalId: "s", at: T + 9_000, payload: "1" },
  { type: "checkpoint", id: 2, at: T + 9_000, turn: 1, entryCount: 0, payload: '{"n":1}' },
  { type: "started", at: T + 9_001 },
  { type: "schedule_task", id: 3, kind: "a task with a long name that has to be cut somewhere", hash: "h" },
  { type: "schedule_task", id: 4, kind: "free", hash: "h" },
  { type: "task_completed", task: 4, attempt: 1, at: T + 9_500 },
  { type: "withdraw", id: 5, targets: [3] },
  { type: "start_timer", id: 6, fireAt: T + 20_000 },
].map((record, seq) => ({ ...record, seq })) as unknown as readonly JournalRecord[];

let storage: MemoryStorage;
beforeEach(async () => {
  storage = new MemoryStorage();
  const first = {
    records: RECORDS,
    entries: [],
    session: { status: "waiting", waits: [{ type: "timer", id: 6, at: T + 20_000 }], turn: 1 },
  } as const;
  const [result] = await storage.commit(
    [
      {
        type: "create_session",
        sessionId: "ses",
        agent: { name: "writer", version: "1" },
        input: undefined,
        seed: 1,
        flags: 0,
        format: 1,
        claimFor: { owner: "test", leaseMs: Infinity },
        first,
      },
    ],
    T,
  );
  expect(result).toMatchObject({ status: "created" });
});

test("attempts, waits and usage, by task, by turn, by model and in all", async () => {
  const { turns, usage, models, until } = await readTimeline(storage.reader, "ses", T + 10_000);
  expect(until).toBe(T + 10_000);
  expect(usage).toEqual({ calls: 2, unpriced: 0, inputTokens: 200, outputTokens: 40, costMicroUsd: 3_000 });
  expect(models).toEqual([
    { model: "acme/big", calls: 1, unpriced: 0, inputTokens: 100, outputTokens: 20, costMicroUsd: 1_500 },
    { model: "acme/small", calls: 1, unpriced: 0, inputTokens: 100, outputTokens: 20, costMicroUsd: 1_500 },
  ]);
  expect(turns).toMatchObject([
    { turn: 0, startedAt: T, endedAt: T + 9_000, deliveries: 3, usage: { costMicroUsd: 3_000 } },
    { turn: 1, startedAt: T + 9_001, deliveries: 2 },
  ]);
  expect(turns[1]).not.toHaveProperty("usage");
  expect(turns[1]).not.toHaveProperty("endedAt");
  expect(turns[0]!.items).toMatchObject([
    {
      type: "task",
      name: "model",
      outcome: "completed",
      endedAt: T + 5_000,
      attempts: [
        { attempt: 1, startedAt: T, endedAt: T + 1_000, outcome: "failed", usage: big },
        { attempt: 2, startedAt: T + 3_000, endedAt: T + 4_000, outcome: "lost" },
        { attempt: 3, startedAt: T + 4_000, endedAt: T + 5_000, outcome: "completed" },
      ],
    },
    { type: "signal", name: "go", startedAt: T, endedAt: T + 9_000, outcome: "completed" },
  ]);
  expect(turns[1]!.items.map(({ outcome }) => outcome)).toEqual(["withdrawn", "completed", "open"]);
});

test("the usage of a tree is the sum over all its sessions, however many there are", async () => {
  const { reader } = storage;
  const own = (await reader.session("ses"))!;
  const children = Array.from({ length: 250 }, (_, i) => ({ ...own, sessionId: `ses-${i}`, children: 0 }));
  const family: StorageReader = {
    ...reader,
    session: () => Promise.resolve({ ...own, children: children.length }),
    sessions: ({ limit }) => Promise.resolve(children.slice(0, limit)),
    journal: (_, fromSeq, limit) => reader.journal("ses", fromSeq, limit),
  };
  const timeline = await readTimeline(family, "ses", T + 10_000);
  expect(timeline.usageOfAll).toEqual({
    calls: 251 * 2,
    unpriced: 0,
    inputTokens: 251 * 200,
    outputTokens: 251 * 40,
    costMicroUsd: 251 * 3_000,
  });
  const lines = timelineText(timeline, look(Infinity), T + 10_000).split("\n");
  expect(lines.filter((line) => /^ {2}ses-/.test(line))).toHaveLength(60);
  expect(lines.at(-2)).toContain("and 190 more");
  expect(lines.at(-1)).toContain("50200+10040 tokens");
});

test("JSON has all of it", async () => {
  const json = timelineJson(await readTimeline(storage.reader, "ses", T + 10_000));
  expect(json).toMatchObject({
    sessionId: "ses",
    durationMs: 10_000,
    turns: [{ durationMs: 9_000 }, { durationMs: 999 }],
  });
});

test.each([20, 30, 40, 55, 56, 80, 140, 300])(
  "on %i columns no line is longer, and nothing steers the terminal",
  async (columns) => {
    const timeline = await readTimeline(storage.reader, "ses", T + 10_000);
    const lines = timelineText(timeline, look(columns), T + 10_000).split("\n");
    for (const line of lines) {
      expect(line).toBe(stripVTControlCharacters(line));
      expect(line.length, line).toBeLessThanOrEqual(columns);
    }
    const bars = lines.filter((line) => line.includes("##"));
    expect(bars.length > 0).toBe(columns >= 56);
  },
);

test("a bar shows each attempt, and the time between", async () => {
  const timeline = await readTimeline(storage.reader, "ses", T + 10_000);
  const text = timelineText(timeline, look(100), T + 10_000);
  expect(text).toMatch(/model +5\.0 s +3 attempts, 1 lost, 200\+40 t\S* +#+-+#+\n/);
  expect(text).toContain("2 turns, 3 tasks, 5 attempts, 2 waits, 200+40 tokens, $0.003");
  expect(text).toContain("acme/small: 100+20 tokens, $0.0015");
});

function look(columns: number): Look {
  const plain = (text: string): string => text;
  const paint: Paint = { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };
  return { paint, symbols: ASCII, columns };
}
