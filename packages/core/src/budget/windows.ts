// Windows: what is spent in a run, a turn, an hour, a day or a month, as pure functions.
//
// A limit of a budget is per lifetime, or per *window*. A window has a *ledger*: sums of what was spent in
// it.
//
//   windows-1. The ledger of a turn is emptied when the account's own session begins a turn. The ledger of a
//       run is emptied when that session is blocked on its waits and none of its tasks runs. Its next arrival
//       begins another run.
//   windows-2. The windows hour, day and month roll. Their ledger has one sum for each clock hour, and one
//       for each day of what is older than a day. A sum counts until the whole window has passed since the
//       last amount in it. In no hour, day or month is therefore more spent than the limit. An amount is free
//       again at most an hour late, or in a month at most a day late.
//   windows-3. A ledger has at most 25 hours and 31 days, however much is spent.
//   windows-4. A grant empties a ledger: a window begins now.

import { DAY_MS, HOUR_MS } from "../units.ts";
import type { Amount } from "../journal/amounts.ts";

/** The windows of limits. A month is 30 days. */
export type Per = "run" | "turn" | "hour" | "day" | "month";

/** The length of each window in milliseconds; `Infinity` for a window that does not roll. */
const WINDOW_MS: { readonly [per in Per]: number } = {
  run: Infinity,
  turn: Infinity,
  hour: HOUR_MS,
  day: DAY_MS,
  month: 30 * DAY_MS,
};

/** All windows, the shortest first. */
export const PERIODS = Object.keys(WINDOW_MS) as readonly Per[];

/** Amounts that were spent within an hour or a day. `at` is the time of the last one, epoch milliseconds. */
export type LedgerSum = readonly [
  at: number,
  tokens: number,
  costMicroUsd: number,
  steps: number,
  turns: number,
];

/** The oldest first. */
export type WindowLedger = readonly LedgerSum[];

/** The ledgers of an account, by window. An absent ledger is empty. */
export type Ledgers = { readonly [per in Per]?: WindowLedger };

/** The amount that counts against a window's limits now. */
export function spentIn(ledgers: Ledgers | undefined, per: Per, now: number): Amount {
  const spent = { tokens: 0, costMicroUsd: 0, steps: 0, turns: 0 };
  for (const [at, tokens, costMicroUsd, steps, turns] of ledgers?.[per] ?? []) {
    // mutant: rolled-out-counted
    if (at + WINDOW_MS[per] <= now) continue;
    spent.tokens += tokens;
    spent.costMicroUsd += costMicroUsd;
    spent.steps += steps;
    spent.turns += turns;
  }
  return spent;
}

/**
 * When a window has no more than this much spent, if nothing else is spent: epoch milliseconds. `undefined`
 * if it does not roll.
 */
export function freeAt(
  ledgers: Ledgers | undefined,
  per: Per,
  { kind, most, now }: { readonly kind: keyof Amount; readonly most: number; readonly now: number },
): number | undefined {
  if (WINDOW_MS[per] === Infinity || most < 0) return undefined;
  const ledger = ledgers?.[per] ?? [];
  let spent = spentIn(ledgers, per, now)[kind];
  for (const sum of ledger) {
    const until = sum[0] + WINDOW_MS[per];
    if (until <= now) continue;
    spent -= sum[KINDS[kind]];
    if (spent <= most) return until;
  }
  return undefined;
}

/** The place of each kind of amount in a sum. */
const KINDS = { tokens: 1, costMicroUsd: 2, steps: 3, turns: 4 } as const satisfies {
  readonly [kind in keyof Amount]: number;
};

/** A ledger with another amount (windows-2, windows-3). */
export function book(ledger: WindowLedger = [], per: Per, now: number, amount: Amount): WindowLedger {
  const last = ledger.at(-1);
  // A clock may be set back. The sums stay in order.
  const at = Math.max(now, last?.[0] ?? now);
  const added: LedgerSum = [at, amount.tokens, amount.costMicroUsd, amount.steps, amount.turns];
  if (WINDOW_MS[per] === Infinity) return [last === undefined ? added : joined(last, added)];
  const kept: LedgerSum[] = [];
  for (const sum of [...ledger, added]) {
    if (sum[0] + WINDOW_MS[per] <= now) continue;
    const before = kept.at(-1);
    const unit = now - sum[0] > DAY_MS ? DAY_MS : HOUR_MS;
    const isSame = before !== undefined && Math.floor(before[0] / unit) === Math.floor(sum[0] / unit);
    if (isSame) kept[kept.length - 1] = joined(before, sum);
    else kept.push(sum);
  }
  return kept;
}

function joined(a: LedgerSum, b: LedgerSum): LedgerSum {
  return [b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4]];
}

/** The ledgers with one of them empty. */
export function emptied(ledgers: Ledgers, per: Per): Ledgers {
  const { [per]: _, ...others } = ledgers;
  return others;
}
