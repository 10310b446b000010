// `LeasedClaims`: the claims of a process with the keeper of their leases. The watchdog learns which claims
// the process holds, because the watchdog's thread renews them while the event loop is blocked.

import type { AgentStorage, Clock, HoldfastError, ThreadRenewal } from "@holdfast/core";
import type { Watchdog } from "../isolation/watchdog.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import { withdrawn } from "../session/session-claim.ts";
import { leaseLost } from "../session/session-errors.ts";
import type { UnbegunTasks } from "../tasks/unbegun-tasks.ts";
import { Claims, type ClaimTerms } from "./claims.ts";
import { LeaseKeeper } from "./lease-keeper.ts";

/** The sessions that are claimed in this process, or about to be. */
interface HeldSessions {
  readonly held: readonly string[];
  readonly isHolding: boolean;
  readonly drivers: readonly { readonly sessionId: string; abandon(error: HoldfastError): void }[];
}

export interface LeasedClaimsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly clock: Clock;
  readonly watchdog: Watchdog | undefined;
  readonly unbegun: UnbegunTasks;
  readonly entries: HeldSessions;
  readonly owner: string;
  /** As in `AgentStorage.claim`. */
  readonly leaseMs: number;
  /** As in `LeaseKeeperHost`. */
  readonly renewMs: number | undefined;
  /** The highest age of a claim that a coordinator made for this process. */
  readonly claimAgeMs: number | undefined;
}

export class LeasedClaims {
  readonly #host: LeasedClaimsHost;
  readonly keeper: LeaseKeeper;
  readonly claims: Claims;

  /** @throws UsageError when `renewMs` is too long for the lease. */
  constructor(host: LeasedClaimsHost) {
    this.#host = host;
    const { storage, committer, clock, watchdog, unbegun, entries, leaseMs, renewMs } = host;
    this.keeper = new LeaseKeeper({
      clock,
      leaseMs: leaseMs < Infinity ? leaseMs : (this.#renewal()?.silentMs ?? Infinity),
      renewMs,
      renew: () => this.#renew(),
      isHolding: () => entries.isHolding,
      abandonAll: () => this.#lapse(),
      watch: (abandonInMs) => watchdog?.expectAbandon(abandonInMs),
      renewedAgoMs: () => watchdog?.renewedAgoMs(),
    });
    const terms = (sessionId: string): ClaimTerms => this.#terms(sessionId);
    this.claims = new Claims({ storage, committer, clock, terms, unbegun });
    if (this.keeper.leaseMs < Infinity) this.#announce([]);
  }

  #terms(sessionId: string): ClaimTerms {
    const { watchdog, owner, leaseMs, claimAgeMs } = this.#host;
    this.keeper.claiming(claimAgeMs);
    watchdog?.claims(sessionId);
    return { owner, leaseMs };
  }

  #renew(): Promise<unknown> {
    const { storage, clock, entries, owner, leaseMs } = this.#host;
    const sessionIds = entries.held;
    this.#announce(sessionIds);
    return storage.renew({ owner, sessionIds, now: clock.now(), leaseMs });
  }

  /** O4. The leases of this process may end soon: abandon all sessions, and try each again later. */
  #lapse(): void {
    const { committer, entries, leaseMs } = this.#host;
    // Claims without an end are not let go: storage releases them where it has heard nothing of a process,
    // and fences it then.
    if (leaseMs === Infinity) return this.keeper.claiming();
    this.claims.abandonAll();
    committer.revise(withdrawn); // Before the releases of these claims, which follow them.
    for (const driver of entries.drivers) driver.abandon(leaseLost(driver.sessionId));
  }

  #announce(sessionIds: readonly string[]): void {
    const { watchdog, owner, leaseMs } = this.#host;
    const { renewMs: everyMs, abandonMs } = this.keeper;
    const by = this.#renewal();
    if (by !== undefined) watchdog!.holds({ by, owner, leaseMs, everyMs, abandonMs, sessionIds });
  }

  #renewal(): ThreadRenewal | undefined {
    return this.#host.watchdog && this.#host.storage.renewal?.();
  }
}
