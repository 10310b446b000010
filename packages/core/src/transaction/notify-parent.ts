// `notifyParent`: a signal from a session to its parent.

import { isUnwanted } from "../rules/consequences.ts";
import type { SendSignal } from "../session/changes.ts";
import type { Session } from "../session/session.ts";
import { sessionIn, type Transaction } from "./transaction.ts";

/**
 * ST36. Send a signal to a session's parent, unless the session that the child names is another owner's, or
 *     the
 * parent does not want it (consequences-6).
 */
export function notifyParent(tx: Transaction, from: Session, signal: SendSignal): void {
  if (isUnwanted(from, signal)) return;
  // mutant: foreign-parent-notified
  if (isParentOf(sessionIn(tx, signal.sessionId), from)) tx.apply(signal);
}

/**
 * Whether the session that a child names as its parent is its parent: both have one owner, or the parent has
 * none.
 */
export function isParentOf(named: Session | undefined, { parent, placement }: Session): boolean {
  if (named === undefined || named.sessionId !== parent?.sessionId) return false;
  const owner = named.placement?.owner;
  return owner === undefined || owner === placement?.owner;
}
