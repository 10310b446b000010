// `ArrivalRouter` sends each arrival to the runner that holds its session, or has the session matched.
//
//   arrival-router-1. An arrival for a session that a runner holds is sent to that runner alone. A runner
//       that was silent here for a lease may have lost the session, so that storage is asked first.
//   - An arrival whose holder is not known makes the router ask storage for the claim, in the next cycle.
//     Without a claim the session becomes a candidate.
//   - Every `SCAN_MS` while polls wait, the router asks storage for arrivals that came without a notice. The
//     claims of a runner that is new here are read at once.

import type { Arrival, Clock, HeldClaim } from "@holdfast/core";
import type { Cycles } from "./cycles.ts";
import type { Holdings } from "./holdings.ts";
import type { Poller, Pollers } from "./poller.ts";
import { SCAN_MS, type WaitingSessions } from "./waiting-sessions.ts";

export interface ArrivalRouterParts {
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly pollers: Pollers;
  readonly holdings: Holdings;
  readonly waiting: WaitingSessions;
  readonly cycles: Cycles;
}

export class ArrivalRouter {
  readonly #parts: ArrivalRouterParts;
  /** The runners whose held claims were read from storage. */
  readonly #known = new WeakSet<Poller>();
  /** Sessions without a known holder that something arrived for since the last cycle. */
  #unrouted = new Set<string>();
  #lookedAt = -Infinity;

  constructor(parts: ArrivalRouterParts) {
    this.#parts = parts;
  }

  /** arrival-router-1. */
  route({ sessionId, awaited }: Arrival): void {
    const { pollers, holdings, cycles, leaseMs } = this.#parts;
    const holder = pollers.find(holdings.find(sessionId)?.runnerId ?? "");
    if (holder !== undefined && pollers.quietFor(holder.runnerId) < leaseMs) {
      holder.arrived(sessionId, awaited);
      cycles.wake(0);
    } else if (awaited) {
      this.#unrouted.add(sessionId);
      cycles.wake(0);
    }
  }

  /** Notes the holder of a session, as storage says. The holder is sent earlier arrivals now. */
  found({ owner, sessionId, token, inbox, losses }: HeldClaim): void {
    const { pollers, holdings } = this.#parts;
    const poller = pollers.find(owner);
    if (poller === undefined) return;
    const known = holdings.find(sessionId);
    holdings.hold(sessionId, { runnerId: owner, token, inbox, losses });
    // mutant: restart-arrivals-unsent
    if (known?.runnerId !== owner || known.inbox < inbox) poller.arrived(sessionId, true);
  }

  async routeRest(): Promise<void> {
    if (this.#unrouted.size === 0) return;
    const { holdings, waiting, clock } = this.#parts;
    const ids = [...this.#unrouted];
    this.#unrouted = new Set();
    try {
      const claims = await Promise.all(ids.map((sessionId) => holdings.ask(sessionId)));
      for (const claim of claims) if (claim !== undefined) this.found(claim);
      const free = ids.filter((_, i) => claims[i] === undefined);
      await waiting.arrived(free, clock.now());
    } catch (error) {
      for (const sessionId of ids) this.#unrouted.add(sessionId);
      throw error;
    }
  }

  async look(): Promise<void> {
    const { pollers, holdings, clock, cycles } = this.#parts;
    const { waiting } = pollers;
    if (waiting.length > 0) cycles.wakeAfter(SCAN_MS);
    const isDue = clock.monotonic() - this.#lookedAt >= SCAN_MS;
    if (isDue) this.#lookedAt = clock.monotonic();
    await Promise.all(
      waiting.map(async (poller) => {
        if (!isDue && this.#known.has(poller)) return;
        this.#known.add(poller);
        // mutant: other-coordinator-unheard
        for (const sessionId of await holdings.look(poller.runnerId)) poller.arrived(sessionId, true);
      }),
    );
  }
}
