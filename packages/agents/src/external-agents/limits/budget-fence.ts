// `BudgetFence`: the budget of a turn at work. It says once that the budget is nearly used up, and once that it is (turn-task-5, turn-task-6).

import type { TokenUsage } from "@holdfast/core";

import { modelPrices } from "../../models/prices.ts";
import type { SessionCallEvent } from "../way-back/pending-calls.ts";

/** The rest of the budget; `null` without a limit. */
interface Rest {
  readonly tokensLeft: number | null;
  readonly costMicroUsdLeft: number | null;
}

const prices = modelPrices();

/** The part of the budget that is left when the agent is told (turn-task-6). */
const NEAR = 0.2;

export class BudgetFence {
  isReached = false;
  #isNear = false;
  #tokens: number;
  #cost: number;
  #used: SessionCallEvent["used"] = { tokens: 0, costMicroUsd: 0 };
  readonly #nearTokens: number;
  readonly #nearCost: number;
  readonly #on: { onNear(): void; onReached(): void };

  constructor({ tokensLeft, costMicroUsdLeft }: Rest, on: { onNear(): void; onReached(): void }) {
    this.#tokens = tokensLeft ?? Infinity;
    this.#cost = costMicroUsdLeft ?? Infinity;
    this.#nearTokens = (tokensLeft ?? 0) * NEAR;
    this.#nearCost = (costMicroUsdLeft ?? 0) * NEAR;
    this.#on = on;
  }

  /** The use of the turn so far. */
  get used(): SessionCallEvent["used"] {
    return this.#used;
  }

  use(usage: TokenUsage): void {
    const tokens = usage.inputTokens + usage.outputTokens;
    const cost = prices(usage) ?? 0;
    this.#used = { tokens: this.#used.tokens + tokens, costMicroUsd: this.#used.costMicroUsd + cost };
    this.#tokens -= tokens;
    this.#cost -= cost;
    if (this.isReached) return;
    if (this.#tokens <= 0 || this.#cost <= 0) {
      this.isReached = true;
      return this.#on.onReached();
    }
    if (this.#isNear || (this.#tokens > this.#nearTokens && this.#cost > this.#nearCost)) return;
    this.#isNear = true;
    this.#on.onNear();
  }
}
