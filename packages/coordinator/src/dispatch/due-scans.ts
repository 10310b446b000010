// `DueScans` decides when `WaitingSessions` are read from storage again.
//
//   - A scan runs when a claim was released, when `SCAN_MS` have passed, and when the next session becomes
//     due. It also runs when a poll offers an agent that the last scan did not ask for.
//   due-scans-2. While no runner has a free slot, candidates that other coordinators gave away are removed
//       every `PRUNE_MS`.

import type { Clock } from "@holdfast/core";
import type { Cycles } from "./cycles.ts";
import type { Holdings } from "./holdings.ts";
import type { Offer } from "./rules.ts";
import { SCAN_MS, type WaitingSessions } from "./waiting-sessions.ts";

export const PRUNE_MS = 60_000;

export interface DueScansParts {
  readonly clock: Clock;
  readonly holdings: Holdings;
  readonly waiting: WaitingSessions;
  readonly cycles: Cycles;
}

export class DueScans {
  readonly #parts: DueScansParts;
  #isWanted = true;
  #scannedAt = -Infinity;
  #scannedAgents = new Set<string>();
  #prunedAt: number;

  constructor(parts: DueScansParts) {
    this.#parts = parts;
    this.#prunedAt = parts.clock.monotonic();
  }

  /** Makes the next cycle scan. */
  want(): void {
    this.#isWanted = true;
  }

  async scan(offers: readonly Offer[]): Promise<void> {
    const { clock, holdings, waiting, cycles } = this.#parts;
    const agents = new Set(offers.flatMap((offer) => [...offer.agents.keys()]));
    // mutant: no-scan
    const isOld = clock.monotonic() - this.#scannedAt >= SCAN_MS;
    const isNarrow = [...agents].some((agent) => !this.#scannedAgents.has(agent));
    if (this.#isWanted || isOld || isNarrow) {
      this.#isWanted = false;
      this.#scannedAt = clock.monotonic();
      this.#scannedAgents = agents;
      const nextAt = await waiting.scan([...agents], clock.now());
      for (const { sessionId } of waiting.all) holdings.drop(sessionId); // No runner holds a due session.
      if (nextAt !== undefined && nextAt - clock.now() < SCAN_MS) {
        this.#isWanted = true;
        cycles.wakeAfter(Math.max(1, nextAt - clock.now()));
      }
    } else if (waiting.isBehind) {
      await waiting.readMore(clock.now());
    }
  }

  /** due-scans-2. */
  async prune(): Promise<void> {
    const { clock, waiting } = this.#parts;
    if (clock.monotonic() - Math.max(this.#prunedAt, this.#scannedAt) < PRUNE_MS) return;
    this.#prunedAt = clock.monotonic();
    await waiting.prune(clock.now());
  }
}
