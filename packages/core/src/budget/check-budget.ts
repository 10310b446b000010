// `checkBudget`: whether a budget that an author gives is one.

import { UsageError } from "../errors/errors.ts";
import { shown } from "../options.ts";
import { LIMITED, type Budget, type BudgetWindow } from "./budget.ts";
import { PERIODS, type Per } from "./windows.ts";

/** @throws UsageError naming the limit that is not an integer above zero. */
export function checkBudget(budget: Budget): Budget {
  const { onExhausted, windows, ...limits } = budget;
  if (onExhausted !== undefined && onExhausted !== "park" && onExhausted !== "cancel") {
    throw new UsageError(`a budget's onExhausted cannot be ${JSON.stringify(onExhausted)}`, {
      expected: '"park" or "cancel"',
    });
  }
  checkLimits(limits, BUDGET_NAMES, "a budget");
  if (windows !== undefined) checkWindows(windows);
  return budget;
}

function checkLimits(limits: object, names: ReadonlySet<string>, what: string): void {
  for (const [name, value] of Object.entries(limits) as [string, unknown][]) {
    if (!names.has(name))
      throw new UsageError(`${what} has no "${name}"`, { expected: `some of ${[...names].join(", ")}` });
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0)) continue;
    throw new UsageError(`the budget's ${name} is ${shown(value)}`, {
      expected: "an integer above zero; costs are in millionths of a dollar",
      fix: name === "maxCostMicroUsd" ? "5 dollars are 5_000_000" : "leave it out for no limit",
    });
  }
}

function checkWindows(windows: readonly BudgetWindow[]): void {
  if (!Array.isArray(windows)) {
    throw new UsageError("the budget's windows are no list", {
      expected: 'a list such as [{ per: "day", maxCostMicroUsd: 500_000 }]',
    });
  }
  const seen = new Set<Per>();
  for (const window of windows as readonly BudgetWindow[]) {
    const { per, ...limits }: BudgetWindow = { ...window };
    checkPer(per);
    if (seen.has(per))
      throw new UsageError(`a budget has two windows per ${per}`, { fix: "give all limits in one of them" });
    seen.add(per);
    checkLimits(limits, AMOUNT_NAMES, `a budget's window per ${per}`);
    if (per === "turn" && limits.maxTurns !== undefined)
      throw new UsageError("a budget cannot limit the turns of a turn", { fix: "limit the turns of a run" });
    if (Object.values(limits).every((limit) => limit === undefined))
      throw new UsageError(`a budget's window per ${per} has no limit`, {
        expected: `some of ${[...AMOUNT_NAMES].join(", ")}`,
      });
  }
}

/** @throws UsageError for anything that is no window. */
export function checkPer(per: Per): Per {
  if (PERIODS.includes(per)) return per;
  throw new UsageError(`a budget's window cannot be per ${JSON.stringify(per)}`, {
    expected: `per ${PERIODS.join(", ")}`,
    fix: "limits per lifetime stand beside `windows`",
  });
}

const AMOUNT_NAMES: ReadonlySet<string> = new Set(LIMITED.map(([limit]) => limit));
const BUDGET_NAMES: ReadonlySet<string> = new Set([...AMOUNT_NAMES, "maxTokensPerCall", "ttlMs"]);
