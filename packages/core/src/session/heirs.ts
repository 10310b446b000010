// Who is below a session, who has its place, and whom it goes on to pay for, as pure walks over what is stored.
//
//   heirs-1. A session that hands over names its heir, which may have handed over, too. Rows that were made elsewhere
//       may name anybody: each session is looked at once, and another owner's is nobody's heir (ST36).

import { isReservedName } from "../journal/signal-names.ts";
import type { Effect } from "./changes.ts";
import { isEnded, type Session } from "./session.ts";

export interface FamilyLookups<Child extends ChildLike = ChildLike> {
  session(sessionId: string): Session | undefined;
  /** Those that name it as their parent. */
  children(sessionId: string): readonly Child[];
}

interface ChildLike {
  readonly sessionId: string;
  readonly owner: string | undefined;
}

/** Those below a session, but for another owner's: who names a parent before it is there cannot know whose it will be (ST36). */
export function childrenOf<Child extends ChildLike>(
  lookups: FamilyLookups<Child>,
  sessionId: string,
): readonly Child[] {
  const owner = lookups.session(sessionId)?.placement?.owner;
  const named = lookups.children(sessionId);
  return owner === undefined ? named : named.filter((child) => child.owner === owner);
}

/** The session itself or, where it has ended, the heir that goes on; `undefined` when none does. */
export function goingOn(lookups: Pick<FamilyLookups, "session">, sessionId: string): Session | undefined {
  const session = lookups.session(sessionId);
  const last = session && lastHeir(lookups, session);
  return last === undefined || isEnded(last.status) ? undefined : last;
}

/** The last that took over from a session, as far as they are here; itself, when none did. */
export function lastHeir(lookups: Pick<FamilyLookups, "session">, session: Session): Session {
  const seen = new Set([session.sessionId]);
  let last = session;
  for (let heir = heirOf(lookups, last); heir !== undefined && !seen.has(heir.sessionId);) {
    seen.add(heir.sessionId);
    last = heir;
    heir = heirOf(lookups, last);
  }
  return last;
}

/** Who took over from a session, as far as it is here. */
export function heirOf(lookups: Pick<FamilyLookups, "session">, session: Session): Session | undefined {
  const heir = session.handedOffTo === undefined ? undefined : lookups.session(session.handedOffTo);
  const owner = session.placement?.owner;
  return owner === undefined || heir?.placement?.owner === owner ? heir : undefined;
}

/** Read who has a session's place now: itself, or the last that took over; `undefined` when that one is not there. */
export async function readInPlaceOf(
  read: (sessionId: string) => Promise<Session | undefined>,
  sessionId: string,
): Promise<Session | undefined> {
  const seen = new Set<string>();
  let session = await read(sessionId);
  while (session?.handedOffTo !== undefined && !seen.has(session.sessionId)) {
    seen.add(session.sessionId);
    session = await read(session.handedOffTo);
  }
  return session;
}

/** Whom a session's account pays for besides itself: who took over from it, those below it, and so on with each of these. */
export function paidBy(lookups: FamilyLookups, session: Session): readonly Session[] {
  const found = new Map([[session.sessionId, session]]);
  for (const at of found.values()) {
    const below = childrenOf(lookups, at.sessionId).map((child) => lookups.session(child.sessionId));
    for (const next of [heirOf(lookups, at), ...below])
      if (next !== undefined && !found.has(next.sessionId)) found.set(next.sessionId, next);
  }
  return [...found.values()].slice(1);
}

/** ST26. Whether an effect is for the successor of a session as well. A request to the session itself is not. */
export function isForHeir(effect: Effect): boolean {
  return effect.type === "request_cancel" || (effect.type === "send_signal" && !isReservedName(effect.name));
}
