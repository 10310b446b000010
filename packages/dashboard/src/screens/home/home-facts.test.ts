import { expect, test } from "vitest";
import type { QueuedRun, Runner, Session } from "../../api/types.ts";
import {
  doingText,
  failedToday,
  goneRunners,
  isQuiet,
  openBudgets,
  stuckReasons,
  usedUpPools,
} from "./home-facts.ts";

const HOUR_MS = 3_600_000;
const session = (fields: Partial<Session>): Session => ({ sessionId: "s", turn: 0, ...fields }) as Session;

test("a failure counts for a day, and the newest comes first", () => {
  const now = 100 * HOUR_MS;
  const ended = [99, 75, 77].map((hour) => session({ sessionId: `h${hour}`, endedAt: hour * HOUR_MS }));
  expect(failedToday(ended, now).map(({ sessionId }) => sessionId)).toEqual(["h99", "h77"]);
});

test("runs that a runner could take are not stuck, and the reason of most comes first", () => {
  const runs = ["no gpu", "no mac", undefined, "no mac"].map((blocked) => ({ blocked })) as QueuedRun[];
  expect(stuckReasons(runs).map(({ reason, runs: { length } }) => [reason, length])).toEqual([
    ["no mac", 2],
    ["no gpu", 1],
  ]);
});

test("a silent runner is gone, and one that drains is not", () => {
  const runners = (["online", "draining", "silent"] as const).map((status) => ({ status })) as Runner[];
  expect(goneRunners(runners)).toEqual([{ status: "silent" }]);
});

test("ten minutes without news are quiet", () => {
  expect(isQuiet(session({ updatedAt: 0 }), 600_000)).toBe(false);
  expect(isQuiet(session({ updatedAt: 0 }), 600_001)).toBe(true);
});

test("a session does what it reports, in its words where there are some, or else is at a turn", () => {
  expect(doingText(session({ progress: "reads" }))).toBe("reads");
  expect(doingText(session({ progress: { progress: "writes tests" } }))).toBe("writes tests");
  expect(doingText(session({ progress: { done: 3 } }))).toBe('{"done":3}');
  expect(doingText(session({ turn: 1_200 }))).toBe("turn 1,200");
  expect(doingText(session({ progress: null }))).toBe("");
});

test("budgets are summed, and a child that spends the budget above it is not one without a limit", () => {
  const limited = {
    account: { limits: { maxCostMicroUsd: 5 }, spent: { costMicroUsd: 2 } },
  } as Partial<Session>;
  const sums = openBudgets([
    session(limited),
    session(limited),
    session({}),
    session({ parentSessionId: "s" }),
  ]);
  expect(sums).toEqual({ sessions: 2, unlimited: 1, spent: 4, max: 10 });
});

test("a usage limit has the first reset that somebody named", () => {
  const waits = (quota: NonNullable<Session["quota"]>): Session => session({ quota });
  expect(
    usedUpPools([
      waits({ pool: "a", resetsAt: 9, resumesAt: 9 }),
      waits({ pool: "a", resetsAt: 5 }),
      waits({ pool: "b" }),
      session({}),
    ]),
  ).toEqual([
    { pool: "a", sessions: 2, resetsAt: 5, continues: false },
    { pool: "b", sessions: 1, continues: false },
  ]);
});
