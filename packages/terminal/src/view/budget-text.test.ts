import { NO_AMOUNT } from "@holdfast/core";
import { describe, expect, test } from "vitest";
import { accountText, limitsText, limitUses, parseBudget, writtenLimit } from "./budget-text.ts";

describe("a budget in plain units", () => {
  test.each([
    ["5.00usd,200000tokens,50steps", { maxCostMicroUsd: 5_000_000, maxTokens: 200_000, maxSteps: 50 }],
    ["0.000001usd", { maxCostMicroUsd: 1 }],
    ["0.1USD", { maxCostMicroUsd: 100_000 }],
    ["3turns, 1tokens", { maxTurns: 3, maxTokens: 1 }],
    [
      "0.50usd/day,20usd/Month,9steps/lifetime,3steps/day",
      {
        maxSteps: 9,
        windows: [
          { per: "day", maxCostMicroUsd: 500_000, maxSteps: 3 },
          { per: "month", maxCostMicroUsd: 20_000_000 },
        ],
      },
    ],
  ])("%s", (text, budget) => {
    expect(parseBudget(text, "--budget")).toEqual(budget);
  });

  test.each([
    ["maxCostMicroUsd", 1, "0.000001usd"],
    ["maxCostMicroUsd", 12_500_000, "12.50usd"],
    ["maxCostMicroUsd", Number.MAX_SAFE_INTEGER, "9007199254.740991usd"],
    ["maxTokens", 400_000, "400000tokens"],
    ["maxSteps", 2, "2steps"],
    ["maxTurns", 3, "3turns"],
  ] as const)("a limit of %s of %i is written as it is read: %s", (limit, amount, text) => {
    expect(writtenLimit(limit, amount)).toBe(text);
    expect(parseBudget(text, "--raise")).toEqual({ [limit]: amount });
  });

  test.each([
    ["5", /has no unit/],
    ["5 usd", /is no limit/],
    ["-5usd", /is no limit/],
    ["5dollars", /no unit "dollars"/],
    ["5token", /did you mean tokens/],
    ["1.5tokens", /too exact/],
    ["0.0000001usd", /too exact/],
    ["0usd", /is nothing/],
    ["99999999999usd", /too much/],
    ["1usd,2usd", /given twice/],
    ["1usd,1usd/day,2usd/day", /limit of cost per day is given twice/],
    ["1usd/dya", /no window "dya"; did you mean day/],
    ["1usd/", /is no limit/],
    ["3turns/turn", /no turns to limit/],
    ["1usd,", /"" is no limit/],
    ["1e3tokens", /no limit/],
  ])("%s is refused", (text, message) => {
    expect(() => parseBudget(text, "--budget")).toThrow(message);
  });

  test("the lines of an account show the spent, reserved and remaining amounts", () => {
    const account = {
      limits: { maxTokens: 200_000, maxCostMicroUsd: 5_000_000, maxTokensPerCall: 9 },
      spent: { ...NO_AMOUNT, tokens: 1_200, costMicroUsd: 4_500 },
      reserved: { ...NO_AMOUNT, tokens: 800 },
      low: false,
    };
    expect(accountText(account, 0)).toBe("cost $0.0045 of $5.00, tokens 1,200 of 200,000 (and 800 reserved)");
    expect(limitUses(account, 0).map(({ left }) => left)).toEqual([4_995_500, 198_000]);
  });

  test("limits per window follow those per lifetime, with what is spent in the window", () => {
    const budget = parseBudget("9usd,0.50usd/day,5usd/hour", "--budget");
    const account = {
      limits: budget,
      spent: { ...NO_AMOUNT, costMicroUsd: 700_000 },
      reserved: NO_AMOUNT,
      ledgers: { day: [[5, 0, 400_000, 1, 0]] },
      low: false,
    } as const;
    expect(accountText(account, 6)).toBe(
      "cost $0.70 of $9.00, cost per hour $0.00 of $5.00, cost per day $0.40 of $0.50",
    );
    expect(limitUses(account, 6).map(({ per, left }) => [per, left])).toEqual([
      ["lifetime", 8_300_000],
      ["hour", 5_000_000],
      ["day", 100_000],
    ]);
    expect(limitsText(budget)).toBe("cost $9.00, cost $5.00 per hour, cost $0.50 per day");
    expect(writtenLimit("maxCostMicroUsd", 500_000, "day")).toBe("0.50usd/day");
  });
});
