// The promises about the money of a session, judged by its row before and after a change: B1 to B3 and
// budget-3.

import { spentIn, type Session } from "@holdfast/core";

export type Violated = (promise: string, what: string) => void;

/** A row as it was and as it is. */
export interface Step {
  readonly before: Session | undefined;
  readonly after: Session;
}

const AMOUNTS = ["tokens", "costMicroUsd", "steps", "turns"] as const;
const LIMIT_OF = {
  tokens: "maxTokens",
  costMicroUsd: "maxCostMicroUsd",
  steps: "maxSteps",
  turns: "maxTurns",
} as const;

/** B1, budget-3. A limit may be set below what is spent: then nothing more is. */
export function checkAccount(
  { before, after: { sessionId, account } }: Step,
  committedAt: number,
  violated: Violated,
): void {
  if (account === undefined) return;
  for (const amount of AMOUNTS) {
    const spent = account.spent[amount];
    const reserved = account.reserved[amount];
    const max = account.limits[LIMIT_OF[amount]] ?? Infinity;
    const had = (before?.account?.spent[amount] ?? 0) + (before?.account?.reserved[amount] ?? 0);
    if (spent + reserved > Math.max(max, had))
      violated("B1", `${sessionId} has spent ${spent} and reserved ${reserved} of ${max} ${amount}`);
    for (const { per, [LIMIT_OF[amount]]: most = Infinity } of account.limits.windows ?? []) {
      // A reservation is in no ledger, so the latest amount in it does not tell how far the window has rolled
      // on.
      const now = Math.max(committedAt, ...(account.ledgers?.[per] ?? []).map(([at]) => at));
      const inWindow = spentIn(account.ledgers, per, now)[amount];
      const wasIn =
        spentIn(before?.account?.ledgers, per, now)[amount] + (before?.account?.reserved[amount] ?? 0);
      if (inWindow + reserved > Math.max(most, wasIn))
        violated(
          "B3",
          `${sessionId} has spent ${inWindow} and reserved ${reserved} of ${most} ${amount} per ${per}`,
        );
    }
    if (![spent, reserved].every((value) => Number.isSafeInteger(value) && value >= 0))
      violated("budget-3", `${sessionId} has spent ${spent} and reserved ${reserved} ${amount}`);
  }
}

/** B2. The spent amount shrinks only when the charges for lost attempts are released, all of them at once. */
export function checkSpending({ before, after: { sessionId, account } }: Step, violated: Violated): void {
  const had = before?.account;
  if (had === undefined || account === undefined) return;
  for (const amount of AMOUNTS) {
    const released = account.lost === undefined ? (had.lost?.[amount] ?? 0) : 0;
    if (account.spent[amount] < had.spent[amount] - released)
      violated(
        "B2",
        `${sessionId} had spent ${had.spent[amount]} ${amount}, and now ${account.spent[amount]}`,
      );
    if ((account.lost?.[amount] ?? 0) > account.spent[amount])
      violated(
        "B2",
        `${sessionId} lost ${account.lost?.[amount]} ${amount} of ${account.spent[amount]} spent`,
      );
  }
}
