// `Claims`: the holders of sessions over time, from the changes of their claims.

import type { ClaimChange } from "./observed.ts";

export class Claims {
  /** The changes by session, in their order. */
  readonly #changes: ReadonlyMap<string, readonly ClaimChange[]>;

  constructor(changes: readonly ClaimChange[]) {
    this.#changes = Map.groupBy(changes, ({ sessionId }) => sessionId);
  }

  /**
   * The runners that received the claim last, in their order: the last one before `from`, and those until `to`.
   * A holder counts until the next one, whether or not it has released the claim before.
   */
  holdersBetween(sessionId: string, from: number, to: number): readonly string[] {
    const given = (this.#changes.get(sessionId) ?? []).filter(({ holder }) => holder !== undefined);
    const first = given.findLastIndex(({ at }) => at <= from);
    return given.slice(Math.max(first, 0)).flatMap(({ at, holder }) => (at <= to ? [holder!] : []));
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
