// Who held a session when, from the changes of its claims.

import type { ClaimChange } from "./observed.ts";

export class Claims {
  /** By session, in their order. */
  readonly #changes: ReadonlyMap<string, readonly ClaimChange[]>;

  constructor(changes: readonly ClaimChange[]) {
    this.#changes = Map.groupBy(changes, ({ sessionId }) => sessionId);
  }

  /** Who was given it last, whether or not it has given it back since. */
  holderAt(sessionId: string, at: number): string | undefined {
    const changes = this.#changes.get(sessionId);
    return changes?.findLast((change) => change.at <= at && change.holder !== undefined)?.holder;
  }

  /** When each session that somebody held at a moment was given to anybody the next time, if it was. */
  nextAfter(holder: string, at: number): readonly number[] {
    return [...this.#changes.values()].flatMap((changes) => {
      if (changes.findLast((change) => change.at <= at)?.holder !== holder) return [];
      const next = changes.find((change) => change.at > at && change.holder !== undefined);
      return next === undefined ? [] : [next.at];
    });
  }
}
