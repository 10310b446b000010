import { expect, test } from "vitest";
import {
  addUsage,
  costText,
  exactUsdText,
  NO_COST,
  ownCostText,
  uncountedText,
  usdText,
  type Cost,
} from "./cost.ts";

const call = (costMicroUsd?: number) => ({
  model: "m",
  inputTokens: 10,
  outputTokens: 1,
  ...(costMicroUsd === undefined ? {} : { costMicroUsd }),
});
const sum = (...costs: readonly (number | undefined)[]): Cost =>
  costs.reduce<Cost>((cost, microUsd) => addUsage(cost, call(microUsd)), NO_COST);

test("the cost of own calls is a fact that says of what it is", () => {
  expect(ownCostText(undefined)).toBe("the cost of its own calls is unknown");
  expect(ownCostText(sum(120_000))).toBe("own calls cost $0.12");
  expect(ownCostText(sum(120_000, undefined))).toBe("own calls cost $0.12 + unknown");
  expect(ownCostText(NO_COST)).toBe("");
});

test("a cost that no call recorded is unknown, and no zero (cost-1)", () => {
  expect(costText(sum(undefined))).toBe("unknown");
  expect(costText(sum(120_000, undefined))).toBe("$0.12 + unknown");
  expect(costText(undefined)).toBe("unknown");
});

test("a usage that nobody has counted is named (cost-2)", () => {
  const unknown = { model: "unknown", inputTokens: 0, outputTokens: 0 };
  expect(uncountedText(sum(120_000, undefined))).toBeUndefined();
  expect(uncountedText(addUsage(sum(120_000), unknown))).toContain("the usage of one turn is not known");
  expect(uncountedText(addUsage(addUsage(NO_COST, unknown), unknown))).toContain("of 2 turns");
  expect(costText(addUsage(sum(120_000), unknown))).toBe("$0.12 + unknown");
});

test("a free call costs nothing, and a session without calls has no cost", () => {
  expect(costText(sum(0))).toBe("$0.00");
  expect(costText(sum())).toBe("");
});

test("a sum counts calls and tokens, and small amounts keep their digits", () => {
  expect(sum(1_000, 2_000)).toEqual({
    calls: 2,
    unpriced: 0,
    costMicroUsd: 3_000,
    inputTokens: 20,
    outputTokens: 2,
  });
  expect(costText(sum(1_000, 2_000))).toBe("$0.003");
  expect(costText(sum(1_500_000))).toBe("$1.50");
});

test.each([
  [0, "$0.00", "$0.00"],
  [1, "$0.000001", "<$0.0001"],
  [25_338, "$0.025338", "$0.0253"],
  [88_000, "$0.088", "$0.088"],
  [480_000, "$0.48", "$0.48"],
  [999_990, "$0.99999", "$1.00"],
  [1_234_567_890, "$1,234.56789", "$1,234.57"],
])("%d millionths are %s exactly, and %s beside others", (amount, exact, text) => {
  expect([exactUsdText(amount), usdText(amount)]).toEqual([exact, text]);
});
