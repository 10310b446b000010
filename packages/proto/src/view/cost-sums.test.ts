import { expect, test } from "vitest";
import { sumCosts, totalText, type PlainSessionCost } from "./cost-sums.ts";

const part = (model: string, day: string, costMicroUsd: number, unpriced = 0) => ({
  model,
  day,
  calls: 1,
  unpriced,
  costMicroUsd,
  inputTokens: 10,
  outputTokens: 1,
});
const COSTS: readonly PlainSessionCost[] = [
  {
    sessionId: "s1",
    agent: "a",
    unrecorded: false,
    parts: [part("x", "2026-11-01", 5), part("y", "2026-11-02", 0, 1)],
  },
  { sessionId: "s2", agent: "b", unrecorded: false, parts: [part("x", "2026-11-02", 900_000)] },
  { sessionId: "s3", agent: "a", unrecorded: false, parts: [] },
];

test("the sums have costs by day, model, agent and session, the dearest first", () => {
  const { days, models, agents, sessions, total } = sumCosts(COSTS);
  const flat = (
    sums: readonly { readonly name: string; readonly cost: { readonly costMicroUsd: number } }[],
  ) => sums.map(({ name, cost }) => [name, cost.costMicroUsd]);
  expect(flat(days)).toEqual([
    ["2026-11-01", 5],
    ["2026-11-02", 900_000],
  ]);
  expect(flat(models)).toEqual([
    ["x", 900_005],
    ["y", 0],
  ]);
  expect(flat(agents)).toEqual([
    ["b", 900_000],
    ["a", 5],
  ]);
  expect(flat(sessions)).toEqual([
    ["s2", 900_000],
    ["s1", 5],
  ]);
  expect(total).toMatchObject({ calls: 3, unpriced: 1, costMicroUsd: 900_005 });
  expect(sumCosts(COSTS, "2026-11-02").total.costMicroUsd).toBe(900_000);
});

test("cost-sums-1: an unknown cost is never shown as nothing", () => {
  expect(totalText(sumCosts(COSTS))).toBe("$0.90 + unknown");
  const none: PlainSessionCost = { sessionId: "s4", agent: "a", unrecorded: true, parts: [] };
  expect(totalText(sumCosts([none]))).toBe("unknown");
  expect(totalText(sumCosts([COSTS[1]!, none]))).toBe("$0.90 + unknown");
  expect(totalText(sumCosts([]))).toBe("$0.00");
});
