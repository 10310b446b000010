// SessionReservations: the holds of one session's tasks, and where the file stores each (accounts-1).

import type { Amount, Hold } from "@holdfast/core";

/** Holds that the row of an account keeps. Every hold beyond has a row. */
const ACCOUNT_HOLDS_MAX = 8;

export class SessionReservations {
  readonly #inAccount = new Map<number, Amount>();
  readonly #inRows = new Map<number, Amount>();

  constructor(inAccount: readonly Hold[] = [], inRows: readonly Hold[] = []) {
    for (const { task, amount } of inAccount) this.#inAccount.set(task, amount);
    for (const { task, amount } of inRows) this.#inRows.set(task, amount);
  }

  get inAccount(): Iterable<readonly [task: number, amount: Amount]> {
    return this.#inAccount;
  }

  get(task: number): Amount | undefined {
    return this.#inAccount.get(task) ?? this.#inRows.get(task);
  }

  *[Symbol.iterator](): Iterator<readonly [task: number, amount: Amount]> {
    yield* this.#inAccount;
    yield* this.#inRows;
  }

  /** Answers which of the two places in the file is to be written. */
  set(task: number, amount: Amount | undefined, hasAccount: boolean): "account" | "row" {
    const isInAccount =
      this.#inAccount.has(task) ||
      (hasAccount && this.#inAccount.size < ACCOUNT_HOLDS_MAX && !this.#inRows.has(task));
    const place = isInAccount ? this.#inAccount : this.#inRows;
    if (amount === undefined) place.delete(task);
    else place.set(task, amount);
    return isInAccount ? "account" : "row";
  }
}
