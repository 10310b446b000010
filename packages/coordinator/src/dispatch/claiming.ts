// `Claiming` claims matched sessions for their runners, and releases the claims that no runner received.
//
//   claiming-1. A claim that no poll acknowledges and no runner uses is released after `ACK_MS`. A runner
//       begins nothing before a commit has confirmed the claim, also where it polls another coordinator.
//   claiming-2. If storage fails for one session, the other sessions of the cycle are not affected. The
//       failed session is no candidate until `AGAIN_MS` later, when `releaseOwed` asks whether it was
//       claimed and releases that claim. If storage did not return a token, the end of the lease identifies
//       the claim. A claim with another end belongs to another coordinator and is left alone.
//   - Only the claim of a session says how often it was lost. If the claim shows a suspect, the claim is
//     released, which counts as no loss, and the session is matched again as a suspect. A suspect that gets
//     company is pardoned first, in storage.

import type { AgentStorage, Clock, ReleaseClaim } from "@holdfast/core";
import type { Commit } from "../store/joined-commits.ts";
import type { Registry } from "../store/registry.ts";
import type { ArrivalRouter } from "./arrival-router.ts";
import { AGAIN_MS, JOIN_MS, type Cycles } from "./cycles.ts";
import type { DueScans } from "./due-scans.ts";
import type { Holdings } from "./holdings.ts";
import type { GivenClaim, PollAnswer, Poller, Pollers } from "./poller.ts";
import { hasSomethingToDo, isPoison, isSuspect, type Match } from "./rules.ts";
import { park, pardon } from "./suspects.ts";
import type { WaitingSessions } from "./waiting-sessions.ts";

export const ACK_MS = 2_000;

export interface ClaimingHost {
  readonly storage: AgentStorage;
  readonly commit: Commit;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly leaseMs: number;
  /** rules-4. How often a session may be lost with a runner that holds nothing else. */
  readonly lossesMax: number;
  /** Called with each failure of storage. Must not throw. */
  readonly warn: (message: string, error: unknown) => void;
  /** Called with how long a session waited, for each claim that is given. Must not throw. */
  readonly claimed: (waitedMs: number) => void;
}

export interface ClaimingParts {
  readonly pollers: Pollers;
  readonly holdings: Holdings;
  readonly waiting: WaitingSessions;
  readonly router: ArrivalRouter;
  readonly scans: DueScans;
  readonly cycles: Cycles;
}

/** A claim that may exist, and that no runner knows of (claiming-2). */
interface Owed {
  readonly runnerId: string;
  readonly requested: RequestedClaim;
  readonly at: number;
}

interface RequestedClaim {
  /** The end of its lease, unless it was renewed. */
  until?: number;
  /** `undefined` until storage has confirmed the claim. */
  token?: number | undefined;
}

export class Claiming {
  readonly #host: ClaimingHost;
  readonly #parts: ClaimingParts;
  readonly #owed = new Map<string, Owed>();

  constructor(host: ClaimingHost, parts: ClaimingParts) {
    this.#host = host;
    this.#parts = parts;
  }

  /** Whether a claim of this session may exist that no runner knows of (claiming-2). */
  owes(sessionId: string): boolean {
    return this.#owed.has(sessionId);
  }

  /** Claims the matched sessions, and answers the polls of their runners. @returns how many were claimed. */
  async give(matches: readonly Match[]): Promise<number> {
    const given = new Map<string, GivenClaim[]>();
    await Promise.all(
      matches.map(async (found) => {
        const claim = await this.#claimOrOwe(found);
        if (claim === undefined) return;
        const list = given.get(found.runnerId);
        if (list === undefined) given.set(found.runnerId, [claim]);
        else list.push(claim);
      }),
    );
    for (const [runnerId, claims] of given) this.#answer(this.#parts.pollers.find(runnerId), claims);
    return [...given.values()].flat().length;
  }

  /** claiming-2. */
  async #claimOrOwe(found: Match): Promise<GivenClaim | undefined> {
    const requested: RequestedClaim = {};
    try {
      return await this.#claim(found, requested);
    } catch (error) {
      const { sessionId, runnerId } = found;
      this.#host.warn(`session ${sessionId} could not be given to a runner`, error);
      // mutant: failed-claims-kept
      this.#owe(sessionId, { runnerId, requested });
      return undefined;
    }
  }

  #owe(sessionId: string, owed: Omit<Owed, "at">): void {
    this.#parts.holdings.drop(sessionId);
    this.#owed.set(sessionId, { ...owed, at: this.#host.clock.monotonic() + AGAIN_MS });
    this.#parts.cycles.wakeAfter(AGAIN_MS);
  }

  /** claiming-2. */
  async releaseOwed(): Promise<void> {
    if (this.#owed.size === 0) return;
    const now = this.#host.clock.monotonic();
    const owed = [...this.#owed].filter(([, { at }]) => at <= now);
    await Promise.all(
      owed.map(async ([sessionId, { runnerId, requested }]) => {
        try {
          requested.token ??= await this.#tokenOf(sessionId, runnerId, requested);
          if (requested.token !== undefined)
            await this.#host.commit([{ type: "release_claim", sessionId, token: requested.token }]);
          this.#owed.delete(sessionId);
          this.#parts.scans.want();
        } catch (error) {
          this.#host.warn(`a claim of session ${sessionId} could not be released`, error);
          this.#owe(sessionId, { runnerId, requested });
        }
      }),
    );
  }

  /** The token of the requested claim, if it was made and is held. */
  async #tokenOf(
    sessionId: string,
    runnerId: string,
    { until }: RequestedClaim,
  ): Promise<number | undefined> {
    const claim = await this.#parts.holdings.ask(sessionId);
    // mutant: foreign-claim-released
    return claim?.owner === runnerId && claim.until === until ? claim.token : undefined;
  }

  /** The claim of a match, or `undefined`. @param requested filled with what is known, also when this throws. */
  async #claim(
    { sessionId, runnerId, isAlone, mayReturn }: Match,
    requested: RequestedClaim,
  ): Promise<GivenClaim | undefined> {
    const { storage, clock, registry, lossesMax, claimed } = this.#host;
    const { holdings, waiting } = this.#parts;
    // mutant: old-losses-counted
    if (!isAlone) await this.#pardonHeldBy(runnerId);
    const { since, suspectSince } = waiting.get(sessionId) ?? {};
    waiting.remove(sessionId);
    // The runner may trust a longer lease with which it registered: no other may claim the session before.
    const leaseMs = Math.max(this.#host.leaseMs, (await registry.find(runnerId))?.leaseMs ?? 0);
    const now = clock.now();
    const askedAt = clock.monotonic();
    requested.until = now + leaseMs;
    const result = await storage.claim({ sessionId, owner: runnerId, now, leaseMs, unlessHeld: true });
    if (result.status === "busy" && registry.knows(result.owner)) {
      // Another coordinator gave the session to its runner: arrivals are for that runner (arrival-router-1).
      const claim = await holdings.ask(sessionId);
      if (claim !== undefined) this.#parts.router.found(claim);
    }
    if (result.status !== "claimed") return undefined;
    holdings.drop(sessionId);
    const { token, before } = result;
    let { losses } = result;
    requested.token = token;
    let snapshot = await storage.load(sessionId);
    if (snapshot === undefined || !hasSomethingToDo(snapshot, now)) {
      await this.#host.commit([{ type: "release_claim", sessionId, token }]);
      return undefined;
    }
    if (isPoison(losses, lossesMax)) {
      await this.#host.commit(park(snapshot.session, token, lossesMax));
      return undefined;
    }
    if (isSuspect(losses) && suspectSince === undefined) {
      await this.#host.commit([{ type: "release_claim", sessionId, token }]);
      // Only the claim says how often it was lost, so the session is matched again.
      waiting.suspected(snapshot.session, now, losses);
      return undefined;
    }
    if (isSuspect(losses) && !isAlone) {
      await this.#host.commit(pardon(snapshot.session, token));
      losses = 0;
      snapshot = (await storage.load(sessionId))!;
    }
    const { nextSeq, updatedAt, inbox } = snapshot.session;
    holdings.hold(sessionId, { runnerId, token, inbox, losses, read: inbox, givenAt: now });
    claimed(Math.max(0, now - (since ?? now)));
    const asGiven = { nextSeq, updatedAt };
    const given = { sessionId, token, before, askedAt, leaseMs, asGiven, mayReturn };
    return { ...given, snapshot: JSON.stringify(snapshot) };
  }

  /** rules-6. If storage fences the batch, a commit of the holder has cleared the losses. */
  async #pardonHeldBy(runnerId: string): Promise<void> {
    const { holdings } = this.#parts;
    for (const [sessionId, holding] of holdings.suspectsOf(runnerId)) {
      const row = await this.#host.storage.reader.session(sessionId);
      if (row !== undefined) await this.#host.commit(pardon(row, holding.token));
      holdings.hold(sessionId, { ...holding, losses: 0 });
    }
  }

  #answer(poller: Poller | undefined, claims: readonly GivenClaim[]): void {
    // claiming-1. After a slow claim, the lease may end before the runner reads the answer.
    const oldest = this.#host.clock.monotonic() - ACK_MS;
    const fresh = claims.filter(({ askedAt }) => askedAt > oldest);
    // The poll may have ended since, or ask for fewer sessions.
    const sent = fresh.slice(0, poller?.waiting?.free ?? 0);
    this.#release(claims.filter((claim) => !sent.includes(claim)));
    if (sent.length > 0) poller?.waiting?.answer(sent);
  }

  /** claiming-1. */
  expectUse(poller: Poller, { pollId }: PollAnswer): void {
    this.#host.clock.setTimer(() => this.releaseUnused(poller.expire(pollId)), ACK_MS, true);
  }

  /** claiming-1. Storage checks whether the runner used the claim through another coordinator. */
  releaseUnused(claims: readonly GivenClaim[]): void {
    // mutant: used-claim-released
    this.#release(claims, ({ asGiven }) => ({ ifUnchanged: asGiven }));
  }

  #release(
    claims: readonly GivenClaim[],
    only: (claim: GivenClaim) => Pick<ReleaseClaim, "ifUnchanged"> = () => ({}),
  ): void {
    if (claims.length === 0) return;
    const releases = claims.map((claim) => {
      const { sessionId, token } = claim;
      return { type: "release_claim", sessionId, token, ...only(claim) } as const;
    });
    this.#host.commit(releases).then(
      (results) => {
        claims.forEach(({ sessionId }, i) => {
          if (results[i]?.status === "released") this.#parts.holdings.drop(sessionId);
        });
        this.#parts.scans.want();
        this.#parts.cycles.wake(JOIN_MS);
      },
      (error: unknown) => this.#host.warn("claims that reached no runner could not be released", error),
    );
  }
}
