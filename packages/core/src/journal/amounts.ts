// Amount, RemainingBudget, CancelCause and SessionCost: values of budgets, costs and cancels as a journal
// records them.

/** Something spent or reserved. */
export interface Amount {
  readonly tokens: number;
  readonly costMicroUsd: number;
  readonly steps: number;
  readonly turns: number;
}

/** The amounts that may still be asked for. A limit that does not exist is absent. */
export type RemainingBudget = { readonly [kind in keyof Amount | "tokensPerCall"]?: number };

/** Why a session is cancelled when no person gave a reason. */
export type CancelCause = "parent" | "deadline" | "input_timeout" | "budget_exceeded";

export function add(a: Amount, b: Amount): Amount {
  return {
    tokens: a.tokens + b.tokens,
    costMicroUsd: a.costMicroUsd + b.costMicroUsd,
    steps: a.steps + b.steps,
    turns: a.turns + b.turns,
  };
}

export function subtract(a: Amount, b: Amount): Amount {
  return {
    tokens: a.tokens - b.tokens,
    costMicroUsd: a.costMicroUsd - b.costMicroUsd,
    steps: a.steps - b.steps,
    turns: a.turns - b.turns,
  };
}

/** The usage of a session's own calls of models, without those of the sessions below it. */
export interface SessionCost {
  readonly calls: number;
  /** The calls without a recorded price. `costMicroUsd` does not contain them. */
  readonly unpriced: number;
  readonly costMicroUsd: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}
