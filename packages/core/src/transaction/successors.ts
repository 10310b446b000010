// The successors and the children of a session, and the sessions that its account pays for: walks over stored
// rows.
//
// A session that hands over names its successor, which may have handed over, too. An imported row may name
// any session. Each session is therefore visited once, and a session of another owner is not a successor
// (ST36).

import { isReservedName } from "../journal/signal-names.ts";
import type { Effect } from "../session/changes.ts";
import { isEnded, type Session } from "../session/session.ts";

export interface FamilyLookups<Child extends ChildLike = ChildLike> extends SessionLookup {
  /** The sessions that name this one as their parent. */
  children(sessionId: string): readonly Child[];
}

interface SessionLookup {
  find(sessionId: string): { readonly session: Session } | undefined;
}

interface ChildLike {
  readonly sessionId: string;
  readonly owner: string | undefined;
}

/**
 * The children of a session. A session of another owner is not a child, though it names this session as its
 * parent (ST36): the parent may have been made later.
 */
export function childrenOf<Child extends ChildLike>(
  lookups: FamilyLookups<Child>,
  sessionId: string,
): readonly Child[] {
  const owner = lookups.find(sessionId)?.session.placement?.owner;
  const named = lookups.children(sessionId);
  return owner === undefined ? named : named.filter((child) => child.owner === owner);
}

/** The session itself or, if it handed over, its last successor; `undefined` when that session has ended. */
export function activeSuccessor(lookups: SessionLookup, sessionId: string): Session | undefined {
  const session = lookups.find(sessionId)?.session;
  // mutant: predecessor-deleted
  const last = session && lastSuccessor(lookups, session);
  return last === undefined || isEnded(last.status) ? undefined : last;
}

/** The last stored successor of a session; the session itself if it has none. */
function lastSuccessor(lookups: SessionLookup, session: Session): Session {
  const seen = new Set([session.sessionId]);
  let last = session;
  for (let next = successorOf(lookups, last); next !== undefined && !seen.has(next.sessionId);) {
    seen.add(next.sessionId);
    last = next;
    next = successorOf(lookups, last);
  }
  return last;
}

/** The session that took over from this one, if it is stored. */
export function successorOf(lookups: SessionLookup, session: Session): Session | undefined {
  const next = session.handedOffTo === undefined ? undefined : lookups.find(session.handedOffTo)?.session;
  const owner = session.placement?.owner;
  // mutant: foreign-successor
  return owner === undefined || next?.placement?.owner === owner ? next : undefined;
}

/** Read the session, or its last successor if it handed over; `undefined` when that session is not found. */
export async function readInPlaceOf(
  read: (sessionId: string) => Promise<Session | undefined>,
  sessionId: string,
): Promise<Session | undefined> {
  let session = await read(sessionId);
  while (session?.handedOffTo !== undefined) session = await read(session.handedOffTo);
  return session;
}

/**
 * The sessions that a session's account pays for, without itself: its successor, its children, and the same
 * of each of these.
 */
export function paidBy(lookups: FamilyLookups, session: Session): readonly Session[] {
  const found = new Map([[session.sessionId, session]]);
  for (const at of found.values()) {
    const below = childrenOf(lookups, at.sessionId).map((child) => lookups.find(child.sessionId)?.session);
    for (const next of [successorOf(lookups, at), ...below])
      if (next !== undefined && !found.has(next.sessionId)) found.set(next.sessionId, next);
  }
  return [...found.values()].slice(1);
}

/**
 * ST26. Whether an effect on a session also reaches the session's successor. A request to the session itself
 * does not.
 */
export function isForSuccessor(effect: Effect): boolean {
  return effect.type === "request_cancel" || (effect.type === "send_signal" && !isReservedName(effect.name));
}
