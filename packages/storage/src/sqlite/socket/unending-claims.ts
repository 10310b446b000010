// UnendingClaims: the claims without an end that a process has made, as far as the answers that it got say.

import { isEnded, type Change, type ChangeResult, type CommitBatch } from "@holdfast/core";
import type { KnownClaim } from "../engine/client-claims.ts";

export class UnendingClaims {
  readonly #tokens = new Map<string, number>();

  get size(): number {
    return this.#tokens.size;
  }

  all(): KnownClaim[] {
    return [...this.#tokens].map(([sessionId, token]) => ({ sessionId, token }));
  }

  claimed(sessionId: string, token: number): void {
    this.#tokens.set(sessionId, token);
  }

  answered(changes: readonly Change[], results: readonly ChangeResult[]): void {
    for (const [i, asked] of changes.entries()) {
      const result = results[i];
      const change = asked.type === "audited" ? asked.change : asked;
      if (change === undefined) continue;
      if (change.type === "create_session") {
        const isHeld = makesClaim(change) && !isEnding(change.first);
        if (isHeld && result?.status === "created" && result.token !== undefined)
          this.#tokens.set(change.sessionId, result.token);
      } else if (change.type === "release_claim") {
        if (result?.status === "released") this.#tokens.delete(change.sessionId);
      } else if (change.type === "commit_batch") {
        const isOver = result?.status === "fenced" || (result?.status === "committed" && isEnding(change));
        // The session may be held under a newer claim.
        if (isOver && this.#tokens.get(change.sessionId) === change.token)
          this.#tokens.delete(change.sessionId);
      }
    }
  }
}

/** Whether a change makes a claim without an end. */
export function makesClaim(asked: Change): boolean {
  const change = asked.type === "audited" ? asked.change : asked;
  return change?.type === "create_session" && change.claimFor?.leaseMs === Infinity;
}

function isEnding(batch: Pick<CommitBatch, "session"> | undefined): boolean {
  return isEnded(batch?.session?.status ?? "working");
}
