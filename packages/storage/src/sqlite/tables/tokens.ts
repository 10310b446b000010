// Tokens: numbers for claims that only grow, also over restarts (ST6), without a write per claim.
//
// The file holds the number of the last block handed out. A process takes a whole block, in a transaction,
// before it uses the first token of the block. No other process and no later one can then use a token of that
// block. Tokens that are left over when the process ends are never used.

import type { SqlDriver } from "../file/driver.ts";

const BLOCK_TOKENS = 2 ** 20;

export class Tokens {
  readonly #driver: SqlDriver;
  #next = 0;
  #end = 0;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  /** Whether `next` must write, and so needs a transaction. */
  get isSpent(): boolean {
    return this.#next === this.#end;
  }

  next(): number {
    if (this.isSpent) {
      const row = this.#driver
        .prepare(
          "INSERT INTO meta (key, value) VALUES ('token_block', 1) ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value",
        )
        .get();
      this.#next = (row?.["value"] as number) * BLOCK_TOKENS;
      this.#end = this.#next + BLOCK_TOKENS;
    }
    return this.#next++;
  }

  /** The transaction that may have taken the block failed. */
  forget(): void {
    this.#next = this.#end = 0;
  }
}
