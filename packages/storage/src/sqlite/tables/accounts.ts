// Accounts: the budgets and spending of payers, and the holds of tasks, in two narrow tables beside
// `session`.
//
// It knows no rules and no heads: `cascade.ts` of the core decides, and `writer.ts` caches.
//
//   accounts-1. A session with an account keeps its first few holds in the account's own row. A step that
//       settles one task and reserves for the next thus writes one row. Further holds have a row each, as do
//       all holds of sessions without an account. Otherwise each commit of a wide fan-out would write every
//       hold.
//   - Charges for lost attempts, and the ledgers of windows, are stored beside the spent amount, in the same
//     column.

import type { Account, Amount, Budget, Hold } from "@holdfast/core";
import { rowChecksum } from "./checksum.ts";
import type { SqlDriver, SqlRow, SqlStatement, SqlValue } from "../file/driver.ts";
import { assertChecksum, list, marks, valuesOf } from "./row-checks.ts";

const ACCOUNT_COLUMNS = ["session", "limits", "spent", "reserved", "low"];
const HOLD_COLUMNS = ["session", "task", "amount"];

export const SELECT_HOLDS = `SELECT ${list(HOLD_COLUMNS)}, checksum FROM hold`;

export class Accounts {
  readonly #path: string;
  /** Limits seldom change, while their account is written with every commit. */
  readonly #limitTexts = new WeakMap<Budget, string>();
  readonly #putAccount: SqlStatement;
  readonly #putHold: SqlStatement;
  readonly #deleteHold: SqlStatement;
  readonly #holds: SqlStatement;

  constructor(driver: SqlDriver, path: string) {
    this.#path = path;
    this.#putAccount = driver.prepare(
      `INSERT OR REPLACE INTO account (${list(ACCOUNT_COLUMNS)}, checksum) VALUES (${marks(ACCOUNT_COLUMNS)}, ?)`,
    );
    this.#putHold = driver.prepare(
      `INSERT OR REPLACE INTO hold (${list(HOLD_COLUMNS)}, checksum) VALUES (${marks(HOLD_COLUMNS)}, ?)`,
    );
    this.#deleteHold = driver.prepare("DELETE FROM hold WHERE session = ? AND task = ?");
    this.#holds = driver.prepare(`${SELECT_HOLDS} WHERE session = ? ORDER BY task`);
  }

  /** @param holds those that its row keeps (accounts-1). */
  put(
    number: number,
    { limits, spent, reserved, ledgers, lost, low }: Account,
    holds: Iterable<readonly [task: number, amount: Amount]>,
  ): void {
    const kept = Array.from(holds, ([task, amount]) => ({ task, amount }));
    const values: SqlValue[] = [
      number,
      this.#limitsText(limits),
      JSON.stringify({ ...spent, lost, ledgers }),
      JSON.stringify(kept.length === 0 ? reserved : { ...reserved, holds: kept }),
      low ? 1 : 0,
    ];
    this.#putAccount.run(...values, rowChecksum(values));
  }

  #limitsText(limits: Budget): string {
    let text = this.#limitTexts.get(limits);
    if (text === undefined) this.#limitTexts.set(limits, (text = JSON.stringify(limits)));
    return text;
  }

  putHold(number: number, task: number, amount: Amount | undefined): void {
    if (amount === undefined) {
      this.#deleteHold.run(number, task);
      return;
    }
    const values: SqlValue[] = [number, task, JSON.stringify(amount)];
    this.#putHold.run(...values, rowChecksum(values));
  }

  holds(number: number): Hold[] {
    return this.#holds.all(number).map((row) => readHold(row, this.#path));
  }
}

/** An account's row, decoded. */
export interface AccountRow {
  readonly account: Account;
  /** Holds that the row itself keeps (accounts-1). */
  readonly holds: readonly Hold[];
}

/** The account of a row that has its columns, its checksum as `account_checksum`. */
export function readAccount(row: SqlRow, path: string): AccountRow {
  const computed = rowChecksum(valuesOf(row, ACCOUNT_COLUMNS));
  assertChecksum(path, "account", String(row["session"]), row["account_checksum"], computed);
  const { holds = [], ...reserved } = JSON.parse(row["reserved"] as string) as Amount & {
    readonly holds?: readonly Hold[];
  };
  const { lost, ledgers, ...spent } = JSON.parse(row["spent"] as string) as Amount &
    Pick<Account, "lost" | "ledgers">;
  return {
    account: {
      limits: JSON.parse(row["limits"] as string) as Budget,
      spent,
      reserved,
      ...(ledgers === undefined ? {} : { ledgers }),
      ...(lost === undefined ? {} : { lost }),
      low: row["low"] === 1,
    },
    holds,
  };
}

export function readHold(row: SqlRow, path: string): Hold {
  const key = `${String(row["session"])}/${String(row["task"])}`;
  assertChecksum(path, "hold", key, row["checksum"], rowChecksum(valuesOf(row, HOLD_COLUMNS)));
  return { task: row["task"] as number, amount: JSON.parse(row["amount"] as string) as Amount };
}
