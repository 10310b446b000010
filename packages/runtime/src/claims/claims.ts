// `Claims`: the claims of sessions that a process asks storage for, under the lease of this process.
//
// A claim that was requested before all sessions were let go is not held: its lease may have ended by now.

import type { AgentStorage, ClaimResult, Clock, ReleaseClaim, SessionSnapshot } from "@holdfast/core";
import type { GroupCommitter } from "../loop/group-committer.ts";
import { leaseLost, sessionNotFound } from "../session/session-errors.ts";
import type { UnbegunTasks } from "../tasks/unbegun-tasks.ts";

/** As in `AgentStorage.claim`. */
export interface ClaimTerms {
  readonly owner: string;
  readonly leaseMs: number;
}

export interface ClaimsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly clock: Clock;
  readonly unbegun: UnbegunTasks;
  /** The owner and the lease of a claim. Called right before each claim: its lease may begin from then on. */
  terms(sessionId: string): ClaimTerms;
}

type Claimed = Extract<ClaimResult, { readonly status: "claimed" }>;

export class Claims {
  readonly #host: ClaimsHost;
  /** Claims that were made to learn their losses, and are not used yet. */
  readonly #early = new Map<string, Promise<Claimed | undefined>>();
  /** How often all sessions were let go. */
  #abandonCount = 0;

  constructor(host: ClaimsHost) {
    this.#host = host;
  }

  /** Call right before each claim that is made elsewhere. */
  terms(sessionId: string): ClaimTerms {
    return this.#host.terms(sessionId);
  }

  /** @throws UnavailableError when all sessions were let go meanwhile. */
  async ask(sessionId: string): Promise<ClaimResult> {
    const early = this.#early.get(sessionId);
    this.#early.delete(sessionId);
    const claimed = early === undefined ? undefined : await early;
    if (claimed !== undefined) return claimed;
    return this.#ask(sessionId);
  }

  async #ask(sessionId: string, unlessHeld = false): Promise<ClaimResult> {
    const { storage, clock } = this.#host;
    const abandonCount = this.#abandonCount;
    const claim = await storage.claim({ sessionId, now: clock.now(), ...this.terms(sessionId), unlessHeld });
    if (claim.status === "claimed") {
      this.received(sessionId, claim);
      this.#check(abandonCount, sessionId, claim.token);
    }
    return claim;
  }

  /** Every claim is received, also one that is then released unused (unbegun-tasks-2). */
  received(sessionId: string, { token, before }: Pick<Claimed, "token" | "before">): void {
    this.#host.unbegun.claimed(sessionId, token, before);
  }

  /** Claim a session for a later `ask`. Answers how often it was lost, and 0 if it cannot be claimed. */
  async askEarly(sessionId: string): Promise<number> {
    // A driver of this process may hold it: a second claim would fence that driver.
    const early = this.#ask(sessionId, true).then(
      (claim) => (claim.status === "claimed" ? claim : undefined),
      () => undefined,
    );
    this.#early.set(sessionId, early);
    return (await early)?.losses ?? 0;
  }

  /** Release the claims that no `ask` has used. */
  releaseEarly(): void {
    for (const [sessionId, early] of this.#early)
      void early.then((claim) => claim && this.release(sessionId, claim.token));
    this.#early.clear();
  }

  /** Load a claimed session. @throws HoldfastError when it cannot be read, or as `ask`; then it is released. */
  async load(sessionId: string, token: number): Promise<SessionSnapshot> {
    const abandonCount = this.#abandonCount;
    let snapshot: SessionSnapshot | undefined;
    try {
      snapshot = await this.#host.storage.load(sessionId);
    } catch (error) {
      this.release(sessionId, token);
      throw error;
    }
    if (snapshot === undefined) throw sessionNotFound(sessionId);
    this.#check(abandonCount, sessionId, token);
    return snapshot;
  }

  /** @param onDone called when the release is stored, or has failed. */
  release(
    sessionId: string,
    token: number,
    onDone = (): void => {},
    why: Pick<ReleaseClaim, "diverged"> = {},
  ): void {
    const change = { type: "release_claim", sessionId, token, ...why } as const;
    this.#host.committer.submit({ change, onResult: onDone, onError: onDone });
  }

  /** O4. All sessions are let go. */
  abandonAll(): void {
    this.#abandonCount++;
    this.releaseEarly();
  }

  #check(abandonCount: number, sessionId: string, token: number): void {
    if (abandonCount === this.#abandonCount) return;
    this.release(sessionId, token);
    throw leaseLost(sessionId);
  }
}
