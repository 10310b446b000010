// `GivenClaims`: drives sessions whose claims a coordinator made for this process.
//
//   given-claims-1. A claim that is older than `claimAgeMs` is released. Its answer was delayed or this
//       process was suspended, and another runner may hold the session by now.
//   given-claims-2. The claim of a session that cannot run here is released after `RELEASE_MS`, so that the
//       coordinator does not give it again at once.
//   given-claims-3. Arrivals that are announced after `drive` returns are received (S2).

import { toHoldfastError, type Clock } from "@holdfast/core";
import type { GivenClaim } from "../api/runtime-api.ts";
import { alarm, type Timers } from "../loop/timers.ts";
import type { Claims } from "../claims/claims.ts";
import type { LiveSessions } from "./live-sessions.ts";

const RELEASE_MS = 5_000;

export interface GivenClaimsHost {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly sessions: LiveSessions;
  readonly claimAgeMs: number;
  readonly claims: Claims;
}

export class GivenClaims {
  readonly #host: GivenClaimsHost;

  constructor(host: GivenClaimsHost) {
    this.#host = host;
  }

  drive(given: GivenClaim): void {
    const { token, snapshot, claimedAt } = given;
    const { clock, timers, sessions, claimAgeMs, claims } = this.#host;
    const { sessionId } = snapshot.session;
    claims.terms(sessionId);
    claims.received(sessionId, given);
    // mutant: old-claim-used
    if (clock.monotonic() - claimedAt > claimAgeMs) return claims.release(sessionId, token); // given-claims-1.
    sessions.drive(given).catch((error: unknown) => {
      sessions.failedToRun(sessionId, toHoldfastError(error));
      const release = alarm(() => claims.release(sessionId, token));
      timers.after(release, RELEASE_MS); // given-claims-2.
    });
  }
}
