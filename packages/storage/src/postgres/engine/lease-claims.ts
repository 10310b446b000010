// `LeaseClaims`: claims of sessions and their leases.
//
//   - Other processes renew claims without a new version of the row, so a claim is always read before it is
//     decided upon.
//   - At the first call's time, leases start over that outlived every process that could renew them.

import {
  type AgentStorage,
  claimedAfter,
  type ClaimResult,
  type HeldClaim,
  nextClaim,
  refuseClaim,
  UnavailableError,
} from "@holdfast/core";
import type { Database } from "../database/database.ts";
import type { Reads } from "../read/reads.ts";
import { nextVersion, type Head, type Heads } from "../tables/heads.ts";
import type { Instance } from "../tables/instance.ts";
import { beginLeases, readClaims, renewLeases, writeClaim } from "../tables/leases.ts";
import type { Peers } from "../tables/peers.ts";
import { TRIES_MAX } from "./transactions.ts";

export interface LeaseClaimsOptions {
  readonly db: Database;
  /** The database, as errors name it. */
  readonly at: string;
  readonly stamp: () => number;
  readonly reads: Reads;
  readonly heads: Heads;
  readonly instance: Instance;
  readonly peers: Peers;
  /** Called with each session that was claimed. */
  readonly onClaimed: (head: Head) => void;
}

export class LeaseClaims {
  readonly #options: LeaseClaimsOptions;
  /** The latest time that `begin` was called with. */
  latestNow = 0;
  #hasBegun = false;
  #beginning: Promise<void> | undefined;

  constructor(options: LeaseClaimsOptions) {
    this.#options = options;
  }

  /** To be awaited before anything is decided by a time. */
  async begin(now: number): Promise<void> {
    this.latestNow = Math.max(this.latestNow, now);
    if (this.#hasBegun) return;
    const { db, peers, instance } = this.#options;
    // Peers are checked first, because a peer that is known to be gone cannot renew its leases.
    this.#beginning ??= peers.look().then(() => beginLeases(db, now, instance.id));
    try {
      await this.#beginning;
      this.#hasBegun = true;
    } finally {
      this.#beginning = undefined;
    }
  }

  async renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    await this.begin(renewal.now);
    if (renewal.leaseMs === Infinity) {
      await this.#options.instance.confirm();
      return { sessions: 0 };
    }
    await this.#options.instance.begin();
    return { sessions: await renewLeases(this.#options.db, renewal) };
  }

  async held(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    await this.begin(query.now);
    return readClaims(this.#options.db, query);
  }

  async claim(request: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const { sessionId, owner, now, leaseMs, unlessHeld } = request;
    const { db, at, stamp, reads, heads, instance, peers, onClaimed } = this.#options;
    let hasLooked = false;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      await this.#landed(sessionId);
      // Other processes renew claims without a new version of the row.
      const found = (await reads.heads([sessionId])).get(sessionId);
      if (found === undefined) return { status: "not_found" };
      if (found instanceof Error) throw found;
      const refusal = refuseClaim(found.session, found.claim, { owner, now, unlessHeld });
      if (refusal !== undefined && (refusal.status !== "busy" || hasLooked)) return refusal;
      if (refusal !== undefined) {
        // Perhaps its holder is gone.
        await peers.look();
        hasLooked = true;
        continue;
      }
      const { claim: before } = found;
      const claim = { ...nextClaim(before, request, Math.max(before.token + 1, stamp())), owner };
      // From here on it is alive: without it nobody would know when to renew.
      await instance.begin();
      const version = nextVersion(found, stamp());
      const write = { head: found, untilBefore: found.until, claim, leaseMs, instance: instance.id, version };
      if (!(await writeClaim(db, write))) continue;
      found.version = version;
      found.claim = claim;
      heads.put(found);
      onClaimed(found);
      return claimedAfter(before, claim);
    }
    throw new UnavailableError("storage_unavailable", `session ${sessionId} changes too fast to be claimed`, {
      at,
      fix: "try again",
    });
  }

  /** Waits until no transaction of this process uses the session (postgres-storage-1). */
  async #landed(sessionId: string): Promise<void> {
    for (;;) {
      const flight = this.#options.heads.get(sessionId)?.flight;
      if (flight === undefined) return;
      await Promise.allSettled([flight]);
    }
  }
}
