// `Claims`: the holders of sessions over time, from the changes of their claims.

import type { ClaimChange } from "./observed.ts";

export class Claims {
  /** The changes by session, in their order. */
  readonly #changes: ReadonlyMap<string, readonly ClaimChange[]>;

  constructor(changes: readonly ClaimChange[]) {
    this.#changes = Map.groupBy(changes, ({ sessionId }) => sessionId);
  }

  /** The runner that received the claim last, whether or not it has released the claim since. */
  holderAt(sessionId: string, at: number): string | undefined {
    const changes = this.#changes.get(sessionId);
    return changes?.findLast((change) => change.at <= at && change.holder !== undefined)?.holder;
  }

  /** The times of the next claims of all sessions that a runner held at a moment, where there was a next claim. */
  nextAfter(holder: string, at: number): readonly number[] {
    return [...this.#changes.values()].flatMap((changes) => {
      if (changes.findLast((change) => change.at <= at)?.holder !== holder) return [];
      const next = changes.find((change) => change.at > at && change.holder !== undefined);
      return next === undefined ? [] : [next.at];
    });
  }
}
