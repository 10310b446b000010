import { defined, type Session } from "@holdfast/core";
import { expect, test } from "vitest";
import { filterOf, searchSessions } from "./session-filter.ts";

const session = (at: number, change: object = {}): Session =>
  ({
    sessionId: `s${at}`,
    agent: { name: "greeter", version: "1" },
    status: "working",
    waits: [],
    ...change,
  }) as unknown as Session;

/** A table of some sessions, newest first. */
function table(count: number): Parameters<typeof searchSessions>[0] {
  const rows = Array.from({ length: count }, (_, at) => session(count - at));
  return {
    sessions: ({ limit, before }) => {
      const from = before === undefined ? 0 : rows.findIndex(({ sessionId }) => sessionId === before) + 1;
      return Promise.resolve(rows.slice(from, from + limit));
    },
  };
}

test("session-filter-1: a search reads a bounded number of rows, however many there are, and can go on behind them", async () => {
  const wanted = ({ sessionId }: Session): boolean => sessionId === "s1";
  const rows = table(4_500);
  let before: string | undefined;
  const searched: number[] = [];
  for (;;) {
    const found = await searchSessions(rows, { limit: 10, ...defined({ before }) }, wanted);
    searched.push(found.searched);
    before = found.next;
    if (before === undefined) {
      expect(found.sessions.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
      break;
    }
    expect(found.sessions).toEqual([]);
  }
  expect(searched).toEqual([2_000, 2_000, 500]);
});

test.each(["input", "output"])("session-filter-2: only the beginning of a large %s is searched", (name) => {
  const matches = filterOf({ text: "NEEDLE" })!;
  expect(matches(session(1, { [name]: `"${"x".repeat(9_000)}needle"` }))).toBe(true);
  expect(matches(session(1, { [name]: `"${"x".repeat(20_000)}needle"` }))).toBe(false);
  expect(matches(session(1, { [name]: '"hay"' }))).toBe(false);
});

test("a text is found in the title that a person wrote", () => {
  expect(filterOf({ text: "SHOP" })!(session(1, { title: "The login of the shop" }))).toBe(true);
  expect(filterOf({ text: "SHOP" })!(session(1))).toBe(false);
});

test("a session without an end has no time of end, and one without calls and budget no known cost", () => {
  expect(filterOf({ endedBefore: 5n })!(session(1))).toBe(false);
  expect(filterOf({ endedFrom: 5n })!(session(1, { endedAt: 5 }))).toBe(true);
  expect(filterOf({ costFromMicroUsd: 0n })!(session(1))).toBe(false);
  const cost = { calls: 1, unpriced: 0, costMicroUsd: 85_000, inputTokens: 1, outputTokens: 1 };
  const account = { spent: { costMicroUsd: 130_000 } };
  const spent = (change: object, from: bigint): boolean =>
    filterOf({ costFromMicroUsd: from })!(session(1, change));
  expect([spent({ cost }, 85_000n), spent({ cost }, 85_001n)]).toEqual([true, false]);
  expect([spent({ cost, account }, 130_000n), spent({ account }, 130_001n)]).toEqual([true, false]);
  expect(filterOf({})).toBeUndefined();
});
