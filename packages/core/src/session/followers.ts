// `Followers`: the callbacks of `follow`, by session, and those of all sessions. They are called when a
// session has, or may have, changed. A notice is a hint to look, and must not throw.
//
// A follower that leaves while others are notified is not notified any more.

import type { Session } from "./session.ts";

/**
 * Called with whether the session is known to be active, and for followers of all sessions with the session.
 * The session is missing when the storage does not know which one has changed.
 */
export type Notice = (isActive: boolean, session?: Session) => void;

export class Followers {
  /** The followers of all sessions are under `undefined`. */
  readonly #followers = new Map<string | undefined, Set<Notice>>();

  /** The sessions that are followed by their ids. */
  get sessionIds(): readonly string[] {
    return [...this.#followers.keys()].filter((sessionId) => sessionId !== undefined);
  }

  /** The number of sessions that have followers; all sessions together count as one. */
  get size(): number {
    return this.#followers.size;
  }

  /** @param sessionId `undefined`: whether all sessions are followed. */
  has(sessionId: string | undefined): boolean {
    return this.#followers.has(sessionId);
  }

  /** @returns the unsubscriber. */
  follow(sessionId: string | undefined, onNotice: Notice): () => void {
    // Wrapped, so that a function that follows twice is notified twice and leaves once.
    const notice: Notice = (isActive, session) => onNotice(isActive, session);
    const others = this.#followers.get(sessionId);
    if (others === undefined) this.#followers.set(sessionId, new Set([notice]));
    else others.add(notice);
    return () => {
      const all = this.#followers.get(sessionId);
      if (all?.delete(notice) === true && all.size === 0) this.#followers.delete(sessionId);
    };
  }

  /** Notifies the followers of one session. @param isActive whether it is known to be active here. */
  notify(sessionId: string, isActive = false): void {
    for (const notice of this.#followers.get(sessionId) ?? []) notice(isActive);
  }

  /** Notifies the followers of all sessions. */
  notifyOfAll(session?: Session): void {
    for (const notice of this.#followers.get(undefined) ?? []) notice(false, session);
  }

  /** Notifies the followers of a session, and those of all sessions. */
  changed(session: Session, isActive: boolean): void {
    this.notify(session.sessionId, isActive);
    this.notifyOfAll(session);
  }
}
