// `Transaction`: what every part of `applyChange` works with.

import type { Change, ChangeResult } from "../session/changes.ts";
import type { Session } from "../session/session.ts";
import type { RowPort } from "./row-port.ts";

export interface Transaction {
  readonly rows: RowPort;
  /** Epoch milliseconds. */
  readonly now: number;
  /**
   * Apply another change, with all that follows from it.
   *
   * @param predecessor the session that a created session takes over from.
   */
  apply(change: Change, predecessor?: Session): ChangeResult;
}

/** The row of a session at this point of the transaction. */
export function sessionIn({ rows }: Pick<Transaction, "rows">, sessionId: string): Session | undefined {
  return rows.find(sessionId)?.session;
}
