import { expect, test } from "vitest";
import { budgetUses, inTreeOrder, nodeFacts } from "./tree.ts";

const spent = { tokens: 1_500, costMicroUsd: 4_600_000, steps: 2, turns: 0 };

test("a budget says what is used of each limit, and whether little is left", () => {
  const limits = { maxCostMicroUsd: 5_000_000, maxTokens: 200_000 };
  const uses = budgetUses({ limits, spent, reserved: { ...spent, tokens: 0, costMicroUsd: 250_000 } });
  expect(uses.map(({ text, isTight }) => [text, isTight])).toEqual([
    ["cost $4.60 of $5.00, $0.25 reserved", true],
    ["tokens 1,500 of 200,000", false],
  ]);
  expect(budgetUses({ spent })).toEqual([]);
});

test("a window of a budget stands behind the limits of the whole life, and one without amounts is left out", () => {
  const limits = { maxTokens: 9_000, windows: [{ per: "day", maxCostMicroUsd: 500_000 }] };
  const windows = [{ per: "day", spent: { ...spent, costMicroUsd: 2_700 } }];
  expect(budgetUses({ limits, spent, windows }).map(({ per, text }) => [per, text])).toEqual([
    [undefined, "tokens 1,500 of 9,000"],
    ["day", "cost $0.0027 of $0.50 per day"],
  ]);
  expect(budgetUses({ limits, spent })).toHaveLength(1);
});

test("a session shows its progress and its budget, and one without both shows nothing", () => {
  expect(nodeFacts({ progress: "half", account: { limits: { maxTurns: 3 } } })).toEqual([
    "half",
    "turns 0 of 3",
  ]);
  expect(nodeFacts({ progress: { done: 1 } })).toEqual(['{"done":1}']);
  expect(nodeFacts({ progress: null })).toEqual([]);
});

test("children stand in the order in which they began, also those of one millisecond", () => {
  const child = (sessionId: string, createdAt: number) => ({ sessionId, createdAt });
  const sorted = inTreeOrder([child("s-10", 5), child("s-2", 5), child("s-11", 1)]);
  expect(sorted.map(({ sessionId }) => sessionId)).toEqual(["s-11", "s-2", "s-10"]);
});
