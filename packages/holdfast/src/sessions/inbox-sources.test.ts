import type { Session, SessionStatus, StorageReader } from "@holdfast/core";
import { expect, test } from "vitest";
import { InboxSources } from "./inbox-sources.ts";

const NOW = 1_800_000_000_000;

type Row = Pick<Session, "sessionId" | "status" | "createdAt" | "endedAt" | "error" | "move">;

/** A storage with an index by status; counts the rows that it returns. */
function readerOf(rows: readonly Row[]): { reader: StorageReader; read: () => number } {
  let read = 0;
  const sessions: StorageReader["sessions"] = async ({ limit, before, status }) => {
    const from = before === undefined ? 0 : rows.findIndex(({ sessionId }) => sessionId === before) + 1;
    const page = rows
      .slice(from)
      .filter((row) => row.status === status)
      .slice(0, limit);
    read += page.length;
    return page as Session[];
  };
  return { reader: { sessions } as StorageReader, read: () => read };
}

const row = (at: number, status: SessionStatus, more: Partial<Row> = {}): Row => ({
  sessionId: `s${at}`,
  status,
  createdAt: NOW - at,
  ...more,
});

async function takeAll(sources: InboxSources<string>, most: number): Promise<string[]> {
  const taken: string[] = [];
  for (let found; taken.length < most && (found = await sources.take()) !== undefined;)
    taken.push(found.session.sessionId);
  return taken;
}

test("a page among 100,000 sessions reads a few hundred rows (inbox-sources-1)", async () => {
  const rows = Array.from({ length: 100_000 }, (_, at) =>
    row(at, at % 3 === 0 ? "completed" : at % 3 === 1 ? "input_required" : "failed"),
  );
  const { reader, read } = readerOf(rows);
  const sources = new InboxSources([{ place: "here", reader }], { cursor: undefined, now: NOW });
  expect(await takeAll(sources, 50)).toHaveLength(50);
  expect(read()).toBeLessThan(3_000);
});

test("two places and all statuses are merged by age, and the cursor continues behind them (inbox-sources-2)", async () => {
  const here = readerOf([row(1, "input_required"), row(4, "paused"), row(5, "input_required")]);
  const there = readerOf([row(2, "paused"), row(3, "input_required")]);
  const places = [
    { place: "here", reader: here.reader },
    { place: "there", reader: there.reader },
  ];
  const first = new InboxSources(places, { cursor: undefined, now: NOW });
  expect(await takeAll(first, 2)).toEqual(["s1", "s2"]);
  const second = new InboxSources(places, { cursor: first.cursor, now: NOW });
  expect(await takeAll(second, 9)).toEqual(["s3", "s4", "s5"]);
});

test("the inbox takes recently failed sessions with an uncertain effect, and no session that has moved", async () => {
  const error = { name: "UncertainEffectError", message: "pay may have happened" };
  const { reader } = readerOf([
    row(1, "failed", { endedAt: NOW - 1, error }),
    row(2, "failed", { endedAt: NOW - 1, error: { ...error, name: "Error" } }),
    row(3, "failed", { endedAt: NOW - 8 * 86_400_000, error }),
    row(4, "paused", { move: { moveId: "m", to: "elsewhere" } }),
  ]);
  const sources = new InboxSources([{ place: "here", reader }], { cursor: undefined, now: NOW });
  expect(await takeAll(sources, 9)).toEqual(["s1"]);
});
