// `Followers`: the callbacks of `follow`, by session. Each storage calls them for the changes that it has
// stored.
//
//   followers-1. A follower that leaves while others are notified is not notified any more.

export class Followers {
  readonly #followers = new Map<string, Set<(isActive: boolean) => void>>();

  get sessionIds(): readonly string[] {
    return [...this.#followers.keys()];
  }

  /** The number of sessions that have followers. */
  get size(): number {
    return this.#followers.size;
  }

  has(sessionId: string): boolean {
    return this.#followers.has(sessionId);
  }

  /** @returns the unsubscriber. */
  follow(sessionId: string, onNotice: (isActive: boolean) => void): () => void {
    // Wrapped, so that a function that follows twice is notified twice and leaves once.
    const notice = (isActive: boolean): void => onNotice(isActive);
    const others = this.#followers.get(sessionId);
    if (others === undefined) this.#followers.set(sessionId, new Set([notice]));
    else others.add(notice);
    return () => {
      const all = this.#followers.get(sessionId);
      if (all?.delete(notice) === true && all.size === 0) this.#followers.delete(sessionId);
    };
  }

  /** @param isActive whether the session is known to be active here. */
  notify(sessionId: string, isActive = false): void {
    for (const notice of this.#followers.get(sessionId) ?? []) notice(isActive);
  }
}
