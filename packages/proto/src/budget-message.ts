// A budget as the contract has it, with integers of 64 bits, and as programs have it.

import type { Budget as BudgetMessage } from "./gen/holdfast/v1/session_pb.js";

const AMOUNTS = ["maxTokens", "maxCostMicroUsd", "maxSteps", "maxTurns"] as const;
const LIMITS = [...AMOUNTS, "maxTokensPerCall", "ttlMs"] as const;

type LimitsOf<Name extends string, Value> = { readonly [name in Name]?: Value };

/** The limits of a budget by their names in the contract. */
export interface BudgetLimits extends LimitsOf<(typeof LIMITS)[number], number> {
  readonly onExhausted?: "park" | "cancel";
  readonly windows?: readonly BudgetLimitsOfWindow[];
}

interface BudgetLimitsOfWindow extends LimitsOf<(typeof AMOUNTS)[number], number> {
  readonly per: "run" | "turn" | "hour" | "day" | "month";
}

/** A budget for a message of the contract. */
export function budgetMessage({ onExhausted, windows = [], ...limits }: BudgetLimits) {
  return {
    ...converted(LIMITS, limits, BigInt),
    windows: windows.map(({ per, ...inWindow }) => ({ per, ...converted(AMOUNTS, inWindow, BigInt) })),
    ...(onExhausted === undefined ? {} : { onExhausted }),
  };
}

/** Absent limits stay absent. */
export function budgetOf(message: BudgetMessage): BudgetLimits {
  const { onExhausted, windows } = message;
  const ofWindow = (window: BudgetMessage["windows"][number]): BudgetLimitsOfWindow => ({
    per: window.per as BudgetLimitsOfWindow["per"],
    ...converted(AMOUNTS, window, Number),
  });
  return {
    ...converted(LIMITS, message, Number),
    ...(windows.length === 0 ? {} : { windows: windows.map(ofWindow) }),
    ...(onExhausted === undefined ? {} : { onExhausted: onExhausted as "park" | "cancel" }),
  };
}

function converted<Name extends string, From, To>(
  names: readonly Name[],
  limits: { readonly [name in Name]?: From | undefined },
  convert: (limit: From) => To,
): LimitsOf<Name, To> {
  const given = names.flatMap((name) => {
    const limit = limits[name];
    return limit === undefined ? [] : [[name, convert(limit)] as const];
  });
  return Object.fromEntries(given) as LimitsOf<Name, To>;
}
