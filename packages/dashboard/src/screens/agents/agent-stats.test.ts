import { expect, test } from "vitest";
import type { Session } from "../../api/types.ts";
import { statsOf } from "./agent-stats.ts";

test("runs, failures and costs are counted by agent, from a time on", () => {
  const cost = { calls: 1, unpriced: 0, costMicroUsd: 5, inputTokens: 1, outputTokens: 1 };
  const sessions = [
    { agent: "a", status: "failed", createdAt: 9, cost },
    { agent: "a", status: "completed", createdAt: 5, cost },
    { agent: "a", status: "failed", createdAt: 4, cost },
    { agent: "b", status: "working", createdAt: 9 },
  ] as Session[];
  const stats = statsOf(sessions, 5);
  expect(stats.get("a")).toMatchObject({ runs: 2, failed: 1, cost: { calls: 2, costMicroUsd: 10 } });
  expect(stats.get("b")).toMatchObject({ runs: 1, failed: 0, cost: { calls: 0 } });
  expect([...stats.keys()]).toEqual(["a", "b"]);
});
