// `Budget`, `Account`, `applyCharges`: limits of what a session and the sessions below it may spend, as pure
// functions.
//
// A *payer* is a session with a budget of its own. Amounts that sessions below it spend are spent from its
// account as well. Every payer reserves the worst case of a task before the task starts, if the task declares
// one. When the task ends, the reservation is *settled* at the amount that the task used.
//
//   B1. Nothing is admitted when spent + reserved + its worst case is above any payer's limit. If the worst
//       cases are true, no budget is ever overspent.
//   B2. Charges are decided and stored in the commit that asks, task by task in the order asked. Spent
//       amounts only grow, until a person releases the part that was charged for lost attempts.
//   budget-3. All amounts are integers: tokens, micro-dollars, counts.

import { UsageError } from "../errors/errors.ts";
import type { Amount, Remaining } from "../journal/amounts.ts";

/**
 * Limits of a session and the sessions below it. They are integers above zero. An absent limit is no limit.
 */
export interface Budget {
  readonly maxTokens?: number;
  /** Millionths of a US dollar. */
  readonly maxCostMicroUsd?: number;
  /** The most that one model call may use. A call that declares more is refused. */
  readonly maxTokensPerCall?: number;
  /** The number of tasks. Further attempts of a task do not count. */
  readonly maxSteps?: number;
  /** The number of checkpoints. */
  readonly maxTurns?: number;
  /** The time from the session's start until it is cancelled. */
  readonly ttlMs?: number;
  /** The reaction to a reached limit: `park` the session until the budget is raised, or `cancel` it. */
  readonly onExhausted?: "park" | "cancel";
}

export const NO_AMOUNT: Amount = { tokens: 0, costMicroUsd: 0, steps: 0, turns: 0 };

export interface Account {
  readonly limits: Budget;
  readonly spent: Amount;
  readonly reserved: Amount;
  /** The part of `spent` that was charged for attempts lost with their process. Absent when it is zero. */
  readonly lost?: Amount;
  /** Whether the parent was notified that less than a tenth is left. */
  readonly low: boolean;
}

/** The reservation for a task that was admitted and has not settled. */
export interface Hold {
  /** Number of the task's command. */
  readonly task: number;
  readonly amount: Amount;
}

/** An item that a batch charges to the accounts, in the order it happened. */
export type Charge =
  /** A reservation before a task starts. Reserving twice for one task is reserving once. */
  | { readonly type: "reserve"; readonly task: number; readonly amount: Amount }
  /**
   * The end of an attempt: its reservation is released, and the used amount is spent. Settling twice is
   * settling once. An attempt is `lost` when it ended with its process. `used` is then an assumption, which a
   * person may take back.
   */
  | { readonly type: "settle"; readonly task: number; readonly used: Amount; readonly lost?: true }
  /** A turn begins. */
  | { readonly type: "turn" };

/** The answer to a `reserve` or a `turn`. */
export type Admission =
  | { readonly status: "admitted" }
  /** The amount fits once other tasks have settled: ask again. */
  | { readonly status: "queued" }
  /** The amount cannot fit unless the limit is raised. */
  | ({ readonly status: "refused" } & Exhausted);

export interface Exhausted {
  /** The session whose limit it is. */
  readonly payer: string;
  readonly limit: LimitName;
  readonly used: number;
  readonly max: number;
  readonly then: "park" | "cancel";
}

const LIMITED = [
  ["maxTokens", "tokens"],
  ["maxCostMicroUsd", "costMicroUsd"],
  ["maxSteps", "steps"],
  ["maxTurns", "turns"],
] as const satisfies readonly (readonly [keyof Budget, keyof Amount])[];

export type LimitName = (typeof LIMITED)[number][0];

/** An account that has spent nothing. */
export function openAccount(limits: Budget): Account {
  return { limits, spent: NO_AMOUNT, reserved: NO_AMOUNT, low: false };
}

/** Limits of what tasks report when they end. A task that declares no cost may exceed them once. */
const REPORTED: ReadonlySet<LimitName> = new Set(["maxTokens", "maxCostMicroUsd"]);

/**
 * B1. Whether every payer admits an amount. A payer that refuses decides, before any payer that only makes it
 * wait. A payer that has spent more than a limit admits nothing, not even a task that declares no cost.
 */
export function decideAdmission(payers: ReadonlyMap<string, Account>, amount: Amount): Admission {
  let queued = false;
  // mutant: first-payer-only
  for (const [payer, { limits, spent, reserved }] of payers) {
    for (const [limit, kind] of LIMITED) {
      const max = limits[limit];
      if (max === undefined || (amount[kind] === 0 && !REPORTED.has(limit))) continue;
      const after = spent[kind] + amount[kind];
      if (after > max) {
        const then = limits.onExhausted ?? "park";
        return { status: "refused", payer, limit, used: spent[kind], max, then };
      }
      queued ||= amount[kind] > 0 && after + reserved[kind] > max;
    }
  }
  return { status: queued ? "queued" : "admitted" };
}

/** The least that any payer has left, without spent and reserved amounts; never below zero. */
export function remainingOf(payers: Iterable<Account>): Remaining {
  const remaining: { -readonly [kind in keyof Remaining]: number } = {};
  for (const { limits, spent, reserved } of payers) {
    const { maxTokensPerCall } = limits;
    if (maxTokensPerCall !== undefined)
      remaining.tokensPerCall = Math.min(remaining.tokensPerCall ?? Infinity, maxTokensPerCall);
    for (const [limit, kind] of LIMITED) {
      const max = limits[limit];
      if (max === undefined) continue;
      const left = Math.max(0, max - spent[kind] - reserved[kind]);
      remaining[kind] = Math.min(remaining[kind] ?? Infinity, left);
    }
  }
  return remaining;
}

/**
 * The account of a session that its payers no longer pay for: their remaining amounts become its own limits.
 *
 * @param own the session's own account, if it has one.
 */
export function separateAccount(own: Account | undefined, payers: readonly Account[]): Account {
  const account = own ?? openAccount({});
  const { tokensPerCall, ...left } = remainingOf(payers);
  const limits: { -readonly [name in keyof Budget]: Budget[name] } = { ...account.limits };
  if (tokensPerCall !== undefined)
    limits.maxTokensPerCall = Math.min(limits.maxTokensPerCall ?? Infinity, tokensPerCall);
  for (const [limit, kind] of LIMITED) {
    const most = left[kind];
    if (most === undefined) continue;
    // The payers hold the account's own reservations as well.
    const share = account.spent[kind] + account.reserved[kind] + most;
    limits[limit] = Math.min(limits[limit] ?? Infinity, share);
  }
  const onExhausted = limits.onExhausted ?? payers[0]?.limits.onExhausted;
  return { ...account, limits: { ...limits, ...(onExhausted === undefined ? {} : { onExhausted }) } };
}

/** Whether less than a tenth of a limit is left. */
export function isLow({ limits, spent }: Account): boolean {
  return LIMITED.some(([limit, kind]) => {
    const max = limits[limit];
    return max !== undefined && (max - spent[kind]) * 10 < max;
  });
}

/** The account with these limits; other limits stay. After a raise the account may no longer be low. */
export function raise(account: Account, limits: Budget): Account {
  const given = Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined));
  const raised = { ...account, limits: { ...account.limits, ...given } };
  return { ...raised, low: raised.low && isLow(raised) };
}

/** The account without the charges for lost attempts (ST51). Releasing twice is releasing once. */
export function releaseLost(account: Account): Account {
  const { lost, ...rest } = account;
  if (lost === undefined) return account;
  const released = { ...rest, spent: subtract(rest.spent, lost) };
  return { ...released, low: released.low && isLow(released) };
}

/** Why an account that was made elsewhere cannot be stored, or `undefined`. */
export function findAccountProblem({ spent, lost = NO_AMOUNT }: Account): string | undefined {
  const isPart = Object.values(subtract(spent, lost)).every((amount) => amount >= 0);
  return isPart ? undefined : "has more charged for lost attempts than it has spent";
}

/** @throws UsageError naming the limit that is not an integer above zero. */
export function checkBudget(budget: Budget): Budget {
  for (const [name, value] of Object.entries(budget)) {
    if (name === "onExhausted") {
      if (value === "park" || value === "cancel") continue;
      throw new UsageError(`a budget's onExhausted cannot be ${JSON.stringify(value)}`, {
        expected: '"park" or "cancel"',
      });
    }
    if (!BUDGET_NAMES.has(name))
      throw new UsageError(`a budget has no "${name}"`, {
        expected: `some of ${[...BUDGET_NAMES].join(", ")}`,
      });
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0)) continue;
    throw new UsageError(`the budget's ${name} is ${String(value)}`, {
      expected: "an integer above zero; costs are in millionths of a dollar",
      fix: name === "maxCostMicroUsd" ? "5 dollars are 5_000_000" : "leave it out for no limit",
    });
  }
  return budget;
}

const BUDGET_NAMES: ReadonlySet<string> = new Set<keyof Budget>([
  "maxTokens",
  "maxCostMicroUsd",
  "maxTokensPerCall",
  "maxSteps",
  "maxTurns",
  "ttlMs",
  "onExhausted",
]);

function add(a: Amount, b: Amount): Amount {
  return {
    tokens: a.tokens + b.tokens,
    costMicroUsd: a.costMicroUsd + b.costMicroUsd,
    steps: a.steps + b.steps,
    turns: a.turns + b.turns,
  };
}

function subtract(a: Amount, b: Amount): Amount {
  return {
    tokens: a.tokens - b.tokens,
    costMicroUsd: a.costMicroUsd - b.costMicroUsd,
    steps: a.steps - b.steps,
    turns: a.turns - b.turns,
  };
}

// ---- charges -----------------------------------------------------------------------------------------------------

/** The accounts that pay and their reservations, as a batch finds them. */
export interface Ledger {
  readonly payers: ReadonlyMap<string, Account>;
  held(task: number): Amount | undefined;
}

/** The result of a batch's charges. */
export interface Charged {
  /** One for each `reserve` and `turn`. */
  readonly admissions: readonly Admission[];
  /** All payers, as they are now. */
  readonly payers: ReadonlyMap<string, Account>;
  /** The reservations that changed, with their new amount; `undefined` for none. */
  readonly holds: ReadonlyMap<number, Amount | undefined>;
}

/** B2. Decide charges in order; later charges see the effect of earlier ones. */
export function applyCharges(ledger: Ledger, charges: readonly Charge[]): Charged {
  const admissions: Admission[] = [];
  const holds = new Map<number, Amount | undefined>();
  const drafts = new Map<string, Draft>();
  for (const [payer, account] of ledger.payers) drafts.set(payer, draftOf(account));
  const held = (task: number): Amount | undefined => (holds.has(task) ? holds.get(task) : ledger.held(task));
  for (const charge of charges) {
    if (charge.type === "settle") {
      const had = held(charge.task);
      if (had === undefined) continue; // The same batch settled it before; a batch without records is known by nothing else (ST3).
      for (const draft of drafts.values()) settle(draft, had, charge);
      holds.set(charge.task, undefined);
      continue;
    }
    if (charge.type === "reserve" && held(charge.task) !== undefined) {
      admissions.push(ADMITTED);
      continue;
    }
    const amount = charge.type === "turn" ? ONE_TURN : charge.amount;
    const admission = decideAdmission(drafts, amount);
    admissions.push(admission);
    if (admission.status !== "admitted") continue;
    for (const draft of drafts.values()) reserve(draft, amount);
    if (charge.type === "reserve") holds.set(charge.task, amount);
  }
  const payers = new Map<string, Account>();
  for (const [payer, account] of ledger.payers) {
    const { isChanged, ...charged } = drafts.get(payer)!;
    payers.set(payer, isChanged ? charged : account);
  }
  return { admissions, payers, holds };
}

/** An account that is changed in place, because one batch may charge thousands of tasks. */
interface Draft extends Account {
  readonly spent: Writable<Amount>;
  readonly reserved: Writable<Amount>;
  lost?: Amount;
  isChanged: boolean;
}

type Writable<T> = { -readonly [key in keyof T]: T[key] };

function draftOf(account: Account): Draft {
  return { ...account, spent: { ...account.spent }, reserved: { ...account.reserved }, isChanged: false };
}

/** Amounts that count at the start are spent at once, because they cannot be released. */
function reserve(draft: Draft, { steps, turns, tokens, costMicroUsd }: Amount): void {
  const { spent, reserved } = draft;
  spent.steps += steps;
  spent.turns += turns;
  reserved.tokens += tokens;
  reserved.costMicroUsd += costMicroUsd;
  draft.isChanged = true;
}

/** @param held the amount that was reserved for the attempt. */
function settle(draft: Draft, held: Amount, { used, lost }: Extract<Charge, { type: "settle" }>): void {
  const { spent, reserved } = draft;
  spent.tokens += used.tokens;
  spent.costMicroUsd += used.costMicroUsd;
  reserved.tokens -= held.tokens;
  reserved.costMicroUsd -= held.costMicroUsd;
  // A step counts when its task begins, and a task begins once, however its attempts end.
  if (lost === true && hasCost(used))
    draft.lost = add(draft.lost ?? NO_AMOUNT, { ...used, steps: 0, turns: 0 });
  // A task that only counts as a step leaves its account unchanged, so the account need not be stored again.
  draft.isChanged ||= hasCost(held) || hasCost(used);
}

function hasCost({ tokens, costMicroUsd }: Amount): boolean {
  return tokens !== 0 || costMicroUsd !== 0;
}

/**
 * The answer to charges that were decided before, for a caller that did not receive it. Only the reservations
 * are known to have been admitted. The caller must ask again for the others. Without payers everything is
 * admitted.
 */
export function admitAgain(
  charges: readonly Charge[],
  isPaid: boolean,
  holds: readonly Hold[],
): readonly Admission[] {
  const asked = charges.filter(({ type }) => type !== "settle");
  if (!isPaid) return asked.map(() => ADMITTED);
  const held = new Set(holds.map(({ task }) => task));
  return asked.map((charge) => (charge.type === "reserve" && held.has(charge.task) ? ADMITTED : QUEUED));
}

/**
 * Settlements for attempts without an outcome: each is charged the amount that was reserved for it. They are
 * also made for all reservations of a session that ends.
 *
 * @param areLost whether the attempts ended with their process.
 */
export function settleAll(holds: readonly Hold[], areLost: boolean): Charge[] {
  const mark = areLost ? ({ lost: true } as const) : {};
  return holds.map(({ task, amount }) => ({ type: "settle", task, used: amount, ...mark }));
}

export function sumOf(holds: readonly Hold[]): Amount {
  return holds.reduce((sum, { amount }) => add(sum, amount), NO_AMOUNT);
}

const ADMITTED: Admission = { status: "admitted" };
const QUEUED: Admission = { status: "queued" };
const ONE_TURN: Amount = { ...NO_AMOUNT, turns: 1 };
