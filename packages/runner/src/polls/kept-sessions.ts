// `KeptSessions`: the sessions that this process has advanced and that have not ended. When newer code has
// replaced the code of this process, it takes back those of them that the newer code diverges from.
//
//   - A session is kept from its receipt on. It is no longer kept when it has ended, when another process has
//     committed to it, or when the code here diverged from its journal.
//   - At most `KEPT_MAX` sessions are kept: the first received are forgotten first. Such a session is paused
//     if newer code diverges from it.

import { type Change, type ChangeResult, ChurnMap, isEnded, type SessionSnapshot } from "@holdfast/core";

/** As many as a poll may name. */
const KEPT_MAX = 10_000;

interface Kept {
  /** The length of its journal after the last commit that this process knows. */
  nextSeq: number;
}

export class KeptSessions {
  readonly #kept = new ChurnMap<string, Kept>();

  get isEmpty(): boolean {
    return this.#kept.size === 0;
  }

  /** The kept sessions, as a poll names them. */
  get all(): { readonly sessionId: string; readonly nextSeq: bigint }[] {
    return Array.from(this.#kept, ([sessionId, { nextSeq }]) => ({ sessionId, nextSeq: BigInt(nextSeq) }));
  }

  received({ session: { sessionId, nextSeq } }: SessionSnapshot): void {
    this.#kept.set(sessionId, { nextSeq });
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= KEPT_MAX) break;
      this.#kept.delete(oldest);
    }
  }

  /** Notes the changes of this process that storage has answered. */
  committed(changes: readonly Change[], results: readonly ChangeResult[]): void {
    for (const [i, change] of changes.entries()) {
      if (change.type === "release_claim" && change.diverged === true) this.#kept.delete(change.sessionId);
      if (change.type !== "commit_batch" || results[i]?.status !== "committed") continue;
      const { sessionId, firstSeq, records, session } = change;
      const kept = this.#kept.get(sessionId);
      if (session !== undefined && isEnded(session.status)) this.#kept.delete(sessionId);
      else if (kept !== undefined) kept.nextSeq = firstSeq + records.length;
    }
  }

  /** Notes sessions that have ended, or that another process has continued. */
  left(sessionIds: readonly string[]): void {
    for (const sessionId of sessionIds) this.#kept.delete(sessionId);
  }
}
