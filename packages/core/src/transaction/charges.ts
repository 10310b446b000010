// Charges to the accounts that pay for a session, inside one transaction.
//
// `../budget/budget.ts` has the arithmetic. This file finds the accounts, stores what the arithmetic
// returns, and notifies a parent when an account runs low.

import type { Amount, RemainingBudget } from "../journal/amounts.ts";
import { notifyLow } from "../rules/consequences.ts";
import { activeSuccessor } from "./successors.ts";
import {
  admitAgain,
  applyCharges,
  endRun,
  isLow,
  NO_AMOUNT,
  remainingOf,
  settleAll,
  type Account,
  type Admission,
  type Charge,
  type Hold,
} from "../budget/budget.ts";
import type { Paid } from "../session/changes.ts";
import { isEnded, type Session } from "../session/session.ts";
import { notifyParent } from "./notify-parent.ts";
import type { HoldsByTask, RowPort, StoredSession } from "./row-port.ts";
import type { Transaction } from "./transaction.ts";

/**
 * Charge the accounts of a session. Returns one admission for each `reserve` and `turn` among the charges.
 */
export function charge(tx: Transaction, session: Session, charges: readonly Charge[]): readonly Admission[] {
  const { rows, now } = tx;
  const { sessionId } = session;
  if (charges.length === 0) return [];
  const accounts = accountsOf(rows, session);
  if (accounts.size === 0) return admitAgain(charges, false, []);
  const held = (task: number): Amount | undefined => rows.find(sessionId)?.holds?.get(task);
  const isOwnTurn = (payer: string): boolean => isOwn(rows, payer, session);
  const charged = applyCharges({ payers: accounts, held, isOwnTurn }, charges, now);
  for (const [task, amount] of charged.holds) rows.update(sessionId, { hold: { task, amount } });
  for (const [owner, account] of charged.payers) {
    if (account === accounts.get(owner)) continue;
    // An account with windows may be low again without a raise.
    const low = isLow(account, now);
    const stored = low === account.low ? account : { ...account, low };
    rows.update(owner, { account: stored });
    const active = low && !account.low ? activeSuccessor(rows, owner) : undefined;
    if (active !== undefined)
      for (const signal of notifyLow(active, stored, now)) notifyParent(tx, active, signal);
  }
  return charged.admissions;
}

/** Whether the runs and turns of a session are those of an account: its own, or its predecessor's. */
function isOwn(rows: RowPort, owner: string, { sessionId }: Session): boolean {
  return owner === sessionId || activeSuccessor(rows, owner)?.sessionId === sessionId;
}

/** windows-1. The run of a session ends when it is blocked and none of its tasks runs. */
export function endRunOf({ rows }: Transaction, session: Session): void {
  const { sessionId, status } = session;
  if (status !== "waiting" && status !== "input_required") return;
  if (listHolds(rows.find(sessionId)).length > 0) return;
  for (const [owner, account] of accountsOf(rows, session)) {
    const ended = endRun(account);
    // mutant: run-of-child-ends
    if (ended !== account && isOwn(rows, owner, session)) rows.update(owner, { account: ended });
  }
}

/** Release what is still reserved for the tasks of a session that has just ended. */
export function settleEnded(tx: Transaction, before: Session, after: Session): void {
  if (after.payers.length === 0 || !isEnded(after.status) || isEnded(before.status)) return;
  const holds = listHolds(tx.rows.find(after.sessionId));
  charge(tx, after, settleAll(holds, after.error?.code === "session_lost"));
}

/**
 * ST3. The answer to charges that were applied before. Only the holds of that time remain; the session may
 * ask again for the others.
 */
export function chargeAgain(
  rows: RowPort,
  session: Session,
  charges: readonly Charge[],
): readonly Admission[] {
  const isPaid = accountsOf(rows, session).size > 0;
  return admitAgain(charges, isPaid, listHolds(rows.find(session.sessionId)));
}

/** The reservations of a session's tasks, in the order of the tasks. */
export function listHolds(stored: Pick<StoredSession, "holds"> | undefined): Hold[] {
  const holds: HoldsByTask | undefined = stored?.holds;
  if (holds === undefined) return [];
  return Array.from(holds, ([task, amount]) => ({ task, amount })).sort((a, b) => a.task - b.task);
}

/**
 * The accounts that pay for a session, nearest first. A session that is not stored here, or is another
 * owner's (ST36), does not pay.
 */
export function accountsOf(
  rows: SessionLookup,
  { payers, placement }: Pick<Session, "payers" | "placement">,
): ReadonlyMap<string, Account> {
  const accounts = new Map<string, Account>();
  for (const payer of payers) {
    const row = rows.find(payer)?.session;
    if (row?.account === undefined) continue;
    const { owner } = row.placement ?? {};
    // mutant: foreign-account-charged
    if (owner === undefined || owner === placement?.owner) accounts.set(payer, row.account);
  }
  return accounts;
}

/** The amount left to spend for a session; `undefined` when no account pays for it. */
export function remainingFor(
  rows: SessionLookup,
  session: Pick<Session, "payers" | "placement">,
  now: number,
): RemainingBudget | undefined {
  return session.payers.length === 0 ? undefined : remainingOf(accountsOf(rows, session).values(), now);
}

/** The amount that is not spent of the limits for a session, also where it is reserved for running tasks (ST56). */
export function unspentFor(
  rows: SessionLookup,
  session: Pick<Session, "payers" | "placement">,
  now: number,
): RemainingBudget {
  const accounts = [...accountsOf(rows, session).values()];
  return remainingOf(
    accounts.map((account) => ({ ...account, reserved: NO_AMOUNT })),
    now,
  );
}

interface SessionLookup {
  find(sessionId: string): Pick<StoredSession, "session"> | undefined;
}

/** The part of a result that says what became of charges and what is left. */
export function paidPart(
  { rows, now }: Pick<Transaction, "rows" | "now">,
  session: Session,
  admissions: readonly Admission[] | undefined,
): Paid {
  const remaining = remainingFor(rows, session, now);
  return {
    ...(admissions === undefined ? {} : { admissions }),
    ...(remaining === undefined ? {} : { remaining }),
  };
}
