// `BudgetFence`: the budget of a turn at work. It says once that the budget is nearly used up, and once that
// it is (turn-task-5, turn-task-6).
//
// The account belongs to the whole tree of sessions. Each charge of this turn answers what is not spent of
// it. The fence therefore sees the charges of all others at each of its own messages.

import { HoldfastError, type RemainingBudget, type TokenUsage } from "@holdfast/core";

import { modelPrices } from "@holdfast/agents";

/** The rest of the budget; `null` without a limit. */
interface Rest {
  readonly tokensLeft: number | null;
  readonly costMicroUsdLeft: number | null;
}

const prices = modelPrices();

/** The part of the budget that is left when the agent is told (turn-task-6). */
const NEAR = 0.2;

/** The usage with its cost, where the model has a price. */
export function priced(usage: TokenUsage): TokenUsage {
  const costMicroUsd = prices(usage);
  return costMicroUsd === undefined ? usage : { ...usage, costMicroUsd };
}

export class BudgetFence {
  isReached = false;
  #isNear = false;
  /** The amount that is not charged to the account. */
  #left: { readonly tokens: number; readonly cost: number };
  /** The amount that was used and is not charged yet. */
  readonly #uncharged = { tokens: 0, cost: 0 };
  readonly #near: { readonly tokens: number; readonly cost: number };
  readonly #isLimited: boolean;
  readonly #on: { onNear(): void; onReached(): void };

  constructor({ tokensLeft, costMicroUsdLeft }: Rest, on: { onNear(): void; onReached(): void }) {
    this.#left = { tokens: tokensLeft ?? Infinity, cost: costMicroUsdLeft ?? Infinity };
    this.#near = { tokens: (tokensLeft ?? 0) * NEAR, cost: (costMicroUsdLeft ?? 0) * NEAR };
    this.#isLimited = tokensLeft !== null || costMicroUsdLeft !== null;
    this.#on = on;
  }

  use(usage: TokenUsage): void {
    this.#count([usage], 1);
    this.#check();
  }

  /** These amounts are charged. @param unspent of the account; `undefined` where nobody pays. */
  charged(usage: readonly TokenUsage[], unspent: RemainingBudget | undefined): void {
    this.#count(usage, -1);
    if (unspent === undefined) return;
    const { tokens = Infinity, costMicroUsd: cost = Infinity } = unspent;
    // mutant: fence-of-one
    this.#left = { tokens, cost };
    this.#check();
  }

  /**
   * A request to a model is about to be sent. A message of another session may have used the rest of the
   * account since the last own charge.
   *
   * @param unspent reads what is not spent of the account. Where it fails, the answer to the next charge ends
   *   the turn.
   * @throws HoldfastError `budget_exceeded` for a request that may not be sent.
   */
  async admit(unspent: () => Promise<RemainingBudget | undefined>): Promise<void> {
    if (!this.#isLimited) return;
    const { tokens = Infinity, costMicroUsd: cost = Infinity } =
      (await unspent().catch(() => undefined)) ?? {};
    // The own usage that is not charged yet is not counted here: its charge may be stored by now.
    if (!this.isReached && tokens > 0 && cost > 0) return;
    if (!this.isReached) {
      this.isReached = true;
      this.#on.onReached();
    }
    throw new HoldfastError("budget_exceeded", "the budget of this session is used up");
  }

  /**
   * Ends a turn that neither charges nor asks its model, where other sessions have used the rest of the
   * account. @param unspent as above.
   */
  async look(unspent: () => Promise<RemainingBudget | undefined>): Promise<void> {
    if (!this.isReached) await this.admit(unspent).catch(() => {}); // The end was asked for.
  }

  #count(usage: readonly TokenUsage[], sign: 1 | -1): void {
    for (const one of usage) {
      this.#uncharged.tokens += sign * (one.inputTokens + one.outputTokens);
      this.#uncharged.cost += sign * (prices(one) ?? 0);
    }
  }

  #check(): void {
    if (this.isReached) return;
    const tokens = this.#left.tokens - this.#uncharged.tokens;
    const cost = this.#left.cost - this.#uncharged.cost;
    if (tokens <= 0 || cost <= 0) {
      this.isReached = true;
      return this.#on.onReached();
    }
    if (this.#isNear || (tokens > this.#near.tokens && cost > this.#near.cost)) return;
    this.#isNear = true;
    this.#on.onNear();
  }
}
