// `Budget`, `Account`, `applyCharges`: limits of what a session and the sessions below it may spend, as pure
// functions.
//
// A *payer* is a session with a budget of its own. Amounts that sessions below it spend are spent from its
// account as well. Every payer reserves the worst case of a task before the task starts, if the task declares
// one. When the task ends, the reservation is *settled* at the amount that the task used.
//
// A limit is per lifetime, or per window: a run, a turn, an hour, a day or a month (`windows.ts`).
//
//   B1. Nothing is admitted when spent + reserved + its worst case is above any payer's limit. If the worst
//       cases are true, no budget is ever overspent. Reserved amounts count in every window.
//   B2. Charges are decided and stored in the commit that asks, task by task in the order asked. Spent
//       amounts only grow, until a person releases the part that was charged for lost attempts.
//   budget-3. All amounts are integers: tokens, micro-dollars, counts.

import { defined } from "../defined.ts";
import { add, subtract, type Amount, type RemainingBudget } from "../journal/amounts.ts";
import { book, emptied, freeAt, spentIn, type Ledgers, type Per } from "./windows.ts";

/** Limits of amounts. They are integers above zero. An absent limit is no limit. */
export interface AmountLimits {
  /** The tokens of all calls of models. */
  readonly maxTokens?: number;
  /** Millionths of a US dollar. */
  readonly maxCostMicroUsd?: number;
  /** The number of tasks. Further attempts of a task do not count. */
  readonly maxSteps?: number;
  /** The number of checkpoints. */
  readonly maxTurns?: number;
}

/** Limits of what is spent in each run, turn, hour, day or month. Hours, days and months of 30 days roll. */
export interface BudgetWindow extends AmountLimits {
  readonly per: Per;
}

/** Limits of a session and the sessions below it. The limits outside of `windows` are per lifetime. */
export interface Budget extends AmountLimits {
  /** At most one for each `per`. */
  readonly windows?: readonly BudgetWindow[];
  /** The most that one model call may use. A call that declares more is refused. */
  readonly maxTokensPerCall?: number;
  /** The time from the session's start until it is cancelled. */
  readonly ttlMs?: number;
  /**
   * The reaction to a reached limit: `park` the session until the budget is raised or its window has rolled
   * on, or `cancel` it.
   */
  readonly onExhausted?: "park" | "cancel";
}

export const NO_AMOUNT: Amount = { tokens: 0, costMicroUsd: 0, steps: 0, turns: 0 };

export interface Account {
  readonly limits: Budget;
  readonly spent: Amount;
  readonly reserved: Amount;
  /** The spent amounts of each window. Absent without windows. */
  readonly ledgers?: Ledgers;
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
  /** An amount that was used without a reservation, by a task that tells of it while it runs. Never refused. */
  | { readonly type: "spend"; readonly used: Amount }
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
  /** The window of the limit. Absent for a limit per lifetime. */
  readonly per?: Per;
  readonly used: number;
  readonly max: number;
  /** The amount that was asked for. Absent where a limit is passed already, and nothing more can be asked for. */
  readonly asked?: number;
  /** When the window has rolled on far enough, if nothing else is spent. Epoch milliseconds. */
  readonly until?: number;
  readonly then: "park" | "cancel";
}

export const LIMITED = [
  ["maxTokens", "tokens"],
  ["maxCostMicroUsd", "costMicroUsd"],
  ["maxSteps", "steps"],
  ["maxTurns", "turns"],
] as const satisfies readonly (readonly [keyof Budget, keyof Amount])[];

type LimitName = (typeof LIMITED)[number][0];

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
export function decideAdmission(
  payers: ReadonlyMap<string, Account>,
  amount: Amount,
  now: number,
): Admission {
  let queued = false;
  // mutant: first-payer-only
  for (const [payer, account] of payers) {
    for (const { limit, kind, per, spent, max } of usesOf(account, now)) {
      if (amount[kind] === 0 && !REPORTED.has(limit)) continue;
      const after = spent + amount[kind];
      if (after > max) {
        const then = account.limits.onExhausted ?? "park";
        const asked = amount[kind] === 0 ? {} : { asked: amount[kind] };
        const window = per === undefined ? {} : { per };
        const exhausted = { payer, limit, ...window, used: spent, max, ...asked, then };
        const most = max - amount[kind];
        const until = per === undefined ? undefined : freeAt(account.ledgers, per, { kind, most, now });
        return { status: "refused", ...exhausted, ...(until === undefined ? {} : { until }) };
      }
      queued ||= amount[kind] > 0 && after + account.reserved[kind] > max;
    }
  }
  return { status: queued ? "queued" : "admitted" };
}

/** A limit of an account, and what is spent of it. */
export interface LimitUse {
  readonly limit: LimitName;
  readonly kind: keyof Amount;
  /** Absent for a limit per lifetime. */
  readonly per?: Per;
  readonly max: number;
  readonly spent: number;
}

/** All limits of amounts, those per lifetime first. */
export function usesOf({ limits, spent, ledgers }: Account, now: number): readonly LimitUse[] {
  const uses: LimitUse[] = [];
  for (const [limit, kind] of LIMITED) {
    const max = limits[limit];
    if (max !== undefined) uses.push({ limit, kind, max, spent: spent[kind] });
  }
  for (const window of limits.windows ?? []) {
    const { per } = window;
    const inWindow = spentIn(ledgers, per, now);
    for (const [limit, kind] of LIMITED) {
      const max = window[limit];
      if (max !== undefined) uses.push({ limit, kind, per, max, spent: inWindow[kind] });
    }
  }
  return uses;
}

/** The least that any payer has left, without spent and reserved amounts; never below zero. */
export function remainingOf(payers: Iterable<Account>, now: number): RemainingBudget {
  const remaining: { -readonly [kind in keyof RemainingBudget]: number } = {};
  for (const account of payers) {
    const { maxTokensPerCall } = account.limits;
    if (maxTokensPerCall !== undefined)
      remaining.tokensPerCall = Math.min(remaining.tokensPerCall ?? Infinity, maxTokensPerCall);
    for (const { kind, max, spent } of usesOf(account, now)) {
      const left = Math.max(0, max - spent - account.reserved[kind]);
      remaining[kind] = Math.min(remaining[kind] ?? Infinity, left);
    }
  }
  return remaining;
}

/**
 * The account of a session that its payers no longer pay for: their remaining amounts become its own limits.
 * A window and its ledger are those of the nearest account that has it.
 *
 * @param own the session's own account, if it has one.
 */
export function separateAccount(own: Account | undefined, payers: readonly Account[]): Account {
  const account = own ?? openAccount({});
  // The remaining amount of a window is no limit per lifetime.
  // mutant: window-left-for-life
  const { tokensPerCall, ...left } = remainingOf(payers.map(withoutWindows), 0);
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
  if (onExhausted !== undefined) limits.onExhausted = onExhausted;
  let { ledgers } = account;
  for (const payer of payers) {
    for (const window of payer.limits.windows ?? []) {
      if (limits.windows?.some(({ per }) => per === window.per) === true) continue;
      limits.windows = [...(limits.windows ?? []), window];
      ledgers = { ...ledgers, [window.per]: payer.ledgers?.[window.per] };
    }
  }
  return { ...account, limits, ...(ledgers === undefined ? {} : { ledgers }) };
}

function withoutWindows(account: Account): Account {
  const { windows: _windows, ...limits } = account.limits;
  return { ...account, limits };
}

/** Whether less than a tenth of a limit is left. */
export function isLow(account: Account, now: number): boolean {
  return usesOf(account, now).some(({ max, spent }) => (max - spent) * 10 < max);
}

/** The account with these limits; other limits stay. After a raise the account may no longer be low. */
export function raise(account: Account, { windows, ...limits }: Budget, now: number): Account {
  const raised = { ...account, limits: { ...account.limits, ...defined(limits) } };
  if (windows !== undefined) raised.limits.windows = raisedWindows(raised.limits.windows, windows);
  return { ...raised, low: raised.low && isLow(raised, now) };
}

function raisedWindows(
  before: readonly BudgetWindow[] = [],
  windows: readonly BudgetWindow[],
): readonly BudgetWindow[] {
  const raised = new Map(before.map((window) => [window.per, window]));
  for (const { per, ...limits } of windows) raised.set(per, { ...raised.get(per), per, ...defined(limits) });
  return [...raised.values()];
}

/** One more window: nothing is spent in it yet (windows-4). Reserved amounts stay reserved. */
export function grantWindow(account: Account, per: Per, now: number): Account {
  if (account.ledgers === undefined) return account;
  const granted = { ...account, ledgers: emptied(account.ledgers, per) };
  return { ...granted, low: granted.low && isLow(granted, now) };
}

/** windows-1. The account when its session is blocked: a new run of it spends nothing yet. */
export function endRun(account: Account): Account {
  return account.ledgers?.run === undefined
    ? account
    : { ...account, ledgers: emptied(account.ledgers, "run") };
}

/** The account without the charges for lost attempts (ST51). Releasing twice is releasing once. */
export function releaseLost(account: Account, now: number): Account {
  const { lost, ...rest } = account;
  if (lost === undefined) return account;
  const released = { ...rest, spent: subtract(rest.spent, lost) };
  return { ...released, low: released.low && isLow(released, now) };
}

/** Why an account that was made elsewhere cannot be stored, or `undefined`. */
export function findAccountProblem({ spent, lost = NO_AMOUNT }: Account): string | undefined {
  const isPart = Object.values(subtract(spent, lost)).every((amount) => amount >= 0);
  return isPart ? undefined : "has more charged for lost attempts than it has spent";
}

// ---- charges -----------------------------------------------------------------------------------------------------

/** The accounts that pay and their reservations, as a batch finds them. */
export interface Funds {
  readonly payers: ReadonlyMap<string, Account>;
  held(task: number): Amount | undefined;
  /** Whether a turn of the session is one of this payer's own session. Asked for payers with windows. */
  isOwnTurn(payer: string): boolean;
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
export function applyCharges(funds: Funds, charges: readonly Charge[], now: number): Charged {
  const admissions: Admission[] = [];
  const holds = new Map<number, Amount | undefined>();
  const drafts = new Map<string, Draft>();
  for (const [payer, account] of funds.payers) drafts.set(payer, draftOf(account));
  const held = (task: number): Amount | undefined => (holds.has(task) ? holds.get(task) : funds.held(task));
  for (const charge of charges) {
    if (charge.type === "spend") {
      for (const draft of drafts.values()) {
        spend(draft, { ...charge.used, steps: 0, turns: 0 }, now);
        draft.isChanged = true;
      }
      continue;
    }
    if (charge.type === "settle") {
      const had = held(charge.task);
      if (had === undefined) continue; // The same batch settled it before; a batch without records is known by nothing else (ST3).
      for (const draft of drafts.values()) settle(draft, had, charge, now);
      holds.set(charge.task, undefined);
      continue;
    }
    if (charge.type === "reserve" && held(charge.task) !== undefined) {
      admissions.push(ADMITTED);
      continue;
    }
    if (charge.type === "turn")
      for (const [payer, draft] of drafts)
        if (draft.ledgers?.turn !== undefined && funds.isOwnTurn(payer)) {
          draft.ledgers = emptied(draft.ledgers, "turn"); // windows-1.
          draft.isChanged = true;
        }
    const amount = charge.type === "turn" ? ONE_TURN : charge.amount;
    const admission = decideAdmission(drafts, amount, now);
    admissions.push(admission);
    if (admission.status !== "admitted") continue;
    for (const draft of drafts.values()) reserve(draft, amount, now);
    if (charge.type === "reserve") holds.set(charge.task, amount);
  }
  const payers = new Map<string, Account>();
  for (const [payer, account] of funds.payers) {
    const { isChanged, ...charged } = drafts.get(payer)!;
    payers.set(payer, isChanged ? charged : account);
  }
  return { admissions, payers, holds };
}

/** An account that is changed in place, because one batch may charge thousands of tasks. */
interface Draft extends Account {
  readonly spent: Writable<Amount>;
  readonly reserved: Writable<Amount>;
  ledgers?: Ledgers;
  lost?: Amount;
  isChanged: boolean;
}

type Writable<T> = { -readonly [key in keyof T]: T[key] };

function draftOf(account: Account): Draft {
  return { ...account, spent: { ...account.spent }, reserved: { ...account.reserved }, isChanged: false };
}

/** Amounts that count at the start are spent at once, because they cannot be released. */
function reserve(draft: Draft, { steps, turns, tokens, costMicroUsd }: Amount, now: number): void {
  const { reserved } = draft;
  spend(draft, { ...NO_AMOUNT, steps, turns }, now);
  reserved.tokens += tokens;
  reserved.costMicroUsd += costMicroUsd;
  draft.isChanged = true;
}

/** @param held the amount that was reserved for the attempt. */
function settle(
  draft: Draft,
  held: Amount,
  { used, lost }: Extract<Charge, { type: "settle" }>,
  now: number,
): void {
  const { reserved } = draft;
  // A step counts when its task begins, and a task begins once, however its attempts end.
  const cost = { ...used, steps: 0, turns: 0 };
  spend(draft, cost, now);
  reserved.tokens -= held.tokens;
  reserved.costMicroUsd -= held.costMicroUsd;
  if (lost === true && hasCost(used)) draft.lost = add(draft.lost ?? NO_AMOUNT, cost);
  // A task that only counts as a step leaves its account unchanged, so the account need not be stored again.
  draft.isChanged ||= hasCost(held) || hasCost(used);
}

/** Count an amount as spent, per lifetime and in each window. */
function spend(draft: Draft, amount: Amount, now: number): void {
  const { spent, limits } = draft;
  const { tokens, costMicroUsd, steps, turns } = amount;
  spent.tokens += tokens;
  spent.costMicroUsd += costMicroUsd;
  spent.steps += steps;
  spent.turns += turns;
  if (limits.windows === undefined || (steps === 0 && turns === 0 && !hasCost(amount))) return;
  // mutant: window-of-first-only
  for (const { per } of limits.windows)
    draft.ledgers = { ...draft.ledgers, [per]: book(draft.ledgers?.[per], per, now, amount) };
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
  const asked = charges.filter(({ type }) => type === "reserve" || type === "turn");
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
