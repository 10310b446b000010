// `MemoryIndex`: which sessions in memory are due, and which are held by a lease.
//
//   memory-index-1. `#ready` holds the sessions that can be due without a clock, by agent. `#timeline` holds
//       the sessions that a clock makes due. A parked session without a time is in neither and costs nothing.
//   - A claim whose lease ends is also listed by its owner, so a renewal costs what that owner holds. A claim
//     without an end is not listed.

import { type Claim, dueAt, lookAt, overdueAt, WakeQueue } from "@holdfast/core";
import type { Stored } from "./memory-rows.ts";

const NOTHING: ReadonlySet<Stored> = new Set();

export class MemoryIndex {
  readonly #leased = new Map<string, Set<Stored>>();
  readonly #ready = new Map<string, Set<Stored>>();
  readonly #timeline = new WakeQueue<Stored>();

  /** The sessions that an owner holds by a lease that ends. */
  leasedBy(owner: string): ReadonlySet<Stored> {
    return this.#leased.get(owner) ?? NOTHING;
  }

  /** All sessions that are held by a lease that ends. */
  leased(): readonly Stored[] {
    return [...this.#leased.values()].flatMap((held) => [...held]);
  }

  setClaim(stored: Stored, claim: Claim, leaseMs: number): void {
    this.#unlist(stored);
    stored.claim = claim;
    stored.leaseMs = leaseMs;
    if (claim.owner === undefined || claim.until === Infinity) return;
    const held = this.#leased.get(claim.owner);
    if (held === undefined) this.#leased.set(claim.owner, new Set([stored]));
    else held.add(stored);
  }

  /** memory-index-1. */
  place(stored: Stored): void {
    const { session, claim, answered } = stored;
    const at = dueAt(session, claim, answered);
    if (at !== stored.dueAt) {
      stored.dueAt = at;
      if (at === -Infinity) this.#setReady(stored);
      else this.#ready.get(session.agent.name)?.delete(stored);
    }
    // A ready session needs the clock only for the end of its time.
    const look = at === -Infinity ? overdueAt(session) : lookAt(session, claim, answered);
    if (look !== stored.queuedFor) this.#timeline.set(stored, look);
  }

  /** Drop a session that has ended, so it is neither ready nor on the timeline. */
  remove(stored: Stored): void {
    this.#unlist(stored);
  }

  /**
   * Take the sessions that the clock has reached off the timeline. Overdue ones are returned, the others
   * become ready.
   */
  *reach(now: number): Generator<string> {
    for (
      let stored = this.#timeline.first();
      stored !== undefined && stored.queuedFor <= now;
      stored = this.#timeline.first()
    ) {
      const overdue = overdueAt(stored.session);
      if (overdue <= now) {
        yield stored.session.sessionId;
      } else {
        this.#timeline.set(stored, overdue);
        this.#setReady(stored);
      }
    }
  }

  /** The due sessions of some agents, of all when `agents` is absent; and when the clock makes the next one due. */
  due(
    now: number,
    limit: number,
    agents: readonly string[] | undefined,
  ): { readonly sessionIds: readonly string[]; readonly nextAt: number } {
    const sessionIds: string[] = [];
    let nextAt = this.#timeline.first()?.queuedFor ?? Infinity;
    for (const agent of agents === undefined ? this.#ready.keys() : new Set(agents)) {
      for (const stored of this.#ready.get(agent) ?? NOTHING) {
        // An earlier call may have had a later time, because the clocks of several machines differ.
        if (stored.dueAt > now) nextAt = Math.min(nextAt, stored.dueAt);
        else if (sessionIds.length < limit) sessionIds.push(stored.session.sessionId);
        else break;
      }
    }
    return { sessionIds, nextAt };
  }

  #unlist(stored: Stored): void {
    const { owner } = stored.claim;
    const held = owner === undefined ? undefined : this.#leased.get(owner);
    if (owner === undefined || held === undefined) return;
    held.delete(stored);
    if (held.size === 0) this.#leased.delete(owner);
  }

  #setReady(stored: Stored): void {
    const { name } = stored.session.agent;
    const ready = this.#ready.get(name);
    if (ready === undefined) this.#ready.set(name, new Set([stored]));
    else ready.add(stored);
  }
}
