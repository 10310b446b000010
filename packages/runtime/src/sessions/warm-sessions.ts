// `WarmSessions`: the sessions that only wait and are still in memory, the least recently used first.
//
//   - At most `sessionsMax` of them are kept, and at most `bytesMax` by estimate. The owner of this list
//     evicts the oldest one while there are more.
//   - Each operation costs O(log n): a Map whose first entries were deleted is searched past all of them.
//
// It knows no drivers and never evicts: it only says when its owner must.

import { ChurnMap, MIB, WakeQueue, type Queued } from "@holdfast/core";
import type { RuntimeOptions } from "../api/runtime-api.ts";

export interface WarmLimits {
  readonly sessionsMax: number;
  /** The highest sum of the estimates that are passed to `keep`. */
  readonly bytesMax: number;
}

/** By default 200 sessions: those that have only begun to wait take about 3 MB. */
export function warmLimits({
  warmSessions = 200,
  warmBytes = 16 * MIB,
}: Pick<RuntimeOptions, "warmBytes" | "warmSessions">): WarmLimits {
  return { sessionsMax: warmSessions, bytesMax: warmBytes };
}

export interface WarmSession {
  readonly sessionId: string;
  /** Epoch milliseconds up to which it is kept. */
  readonly until: number;
  readonly bytes: number;
}

interface Entry extends Queued {
  readonly sessionId: string;
  until: number;
  bytes: number;
}

export class WarmSessions {
  readonly #limits: WarmLimits;
  readonly #entries = new ChurnMap<string, Entry>();
  /** Queued by the order of their last use, not by `until`, which may be `Infinity`. */
  readonly #line = new WakeQueue<Entry>();
  #uses = 0;
  #bytes = 0;

  constructor(limits: WarmLimits) {
    this.#limits = limits;
  }

  get isOverLimit(): boolean {
    return this.#entries.size > this.#limits.sessionsMax || this.#bytes > this.#limits.bytesMax;
  }

  get oldest(): WarmSession | undefined {
    return this.#line.first();
  }

  /** The session was used just now: the others are older. */
  keep({ sessionId, until, bytes }: WarmSession): void {
    let entry = this.#entries.get(sessionId);
    if (entry === undefined) {
      entry = { sessionId, until, bytes: 0, queuedFor: Infinity, queueIndex: -1 };
      this.#entries.set(sessionId, entry);
    }
    this.#bytes += bytes - entry.bytes;
    entry.until = until;
    entry.bytes = bytes;
    this.#line.set(entry, this.#uses++);
  }

  delete(sessionId: string): void {
    const entry = this.#entries.get(sessionId);
    if (entry === undefined) return;
    this.#entries.delete(sessionId);
    this.#line.set(entry, Infinity);
    this.#bytes -= entry.bytes;
  }

  all(): WarmSession[] {
    return Array.from(this.#entries, ([, entry]) => entry);
  }
}
