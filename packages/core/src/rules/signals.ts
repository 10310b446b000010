// `decideSignal`: the rules for signals that are sent to a session.

import { isReservedName } from "../journal/signal-names.ts";
import { LIMITS } from "../limits.ts";
import type { ChangeResult, SendSignal } from "../session/changes.ts";
import { isAnsweredBy, isAwaited, isEnded, type Session } from "../session/session.ts";
import { movedAway } from "./moving.ts";

/**
 * The result for a session that accepts no change any more, because it has ended or moved away (ST15, ST45).
 */
export function findFinal(session: Session): ChangeResult | undefined {
  if (isEnded(session.status)) return { status: "ended", sessionStatus: session.status };
  return movedAway(session);
}

/** How a session remembers a dedup key. A key counts for signals of one name (ST9). */
export function dedupMark(name: string, dedupKey: string): string {
  // mutant: dedup-key-for-all-names
  return JSON.stringify([name, dedupKey]);
}

/** The name and the key of a mark. */
export function readDedupMark(mark: string): readonly [name: string, dedupKey: string] {
  return JSON.parse(mark) as [string, string];
}

/** Facts about a signal that the storage reads. */
export interface SignalFacts {
  /**
   * Whether the session has seen this id, or this dedup key with this name, before. Asked only where the
   * signal cannot be stored, since storing it tells the same.
   */
  isSeen(): boolean;
  /** Number of the session's signals that nobody has consumed. */
  readonly pending: number;
}

export const DUPLICATE = { status: "duplicate" } as const satisfies ChangeResult;

/**
 * Whether a signal is stored if the session has not seen it, and the row of its session then. The result has
 * the signal's `order`. For a signal that the session has seen it is `DUPLICATE` instead.
 *
 * A session that has ended answers `ended` also to a signal that it once took, so storage need not keep
 * signals and their ids.
 */
export function decideSignal(
  session: Session,
  signal: SendSignal,
  facts: SignalFacts,
  now: number,
): { readonly result: ChangeResult; readonly session?: Session } {
  const final = findFinal(session);
  if (final !== undefined) return { result: final };
  // The number of sessions limits the signals with reserved names, and a lost end would be waited for without
  // end. A signal that the session waits for is consumed at once, so a full inbox does not refuse it.
  const awaited = isAwaited(session, signal.name);
  const isConsumedAtOnce = awaited && isAnsweredBy(session.waits, signal.name);
  if (facts.pending >= LIMITS.signalsPending && !isReservedName(signal.name) && !isConsumedAtOnce) {
    if (facts.isSeen()) return { result: DUPLICATE };
    const reason = `session ${session.sessionId} has ${facts.pending} unconsumed signals, the limit "signalsPending"`;
    return { result: { status: "invalid", reason } };
  }
  const inbox = session.inbox + 1;
  return {
    result: { status: "stored", order: inbox, awaited },
    session: { ...session, inbox, updatedAt: now },
  };
}
