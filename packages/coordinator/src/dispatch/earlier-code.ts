// `EarlierCode`: which runners may get a session while a runner with earlier code still keeps it.
//
// A runner is *superseded* once a newer runner with newer code has started beside it. It is given no sessions
// but those that it *keeps*: sessions that its code has advanced, and that no other runner has committed to
// since.
//
//   earlier-code-1. A kept session goes to a runner with newer code that it fits and has not diverged from.
//       If there is none, the session goes back to a runner that keeps it.
//   - A divergence is known until the session's next checkpoint: the journal that diverged is gone then. It
//     is kept in memory only. If it is forgotten, the newer code replays the session and diverges again.
//   earlier-code-3. That a runner is superseded is stored with it. After a restart of the coordinator, such a
//       runner may keep any session until it polls, for one lease at most.
//
// The runners of one machine poll one coordinator. A superseded runner that polls another coordinator keeps
// nothing here.

import { type AgentStorage, type Clock, ifCorrupt, isEnded, type Session } from "@holdfast/core";
import { fitnessOf, type Registry, type StoredRunner } from "../store/registry.ts";
import type { KeptSession, Pollers } from "./poller.ts";
import { takes, type Candidate } from "./rules.ts";

const DIVERGED_MAX = 50_000;

export interface EarlierCodeHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly leaseMs: number;
}

interface Divergence {
  readonly runners: Set<string>;
  /** The session's last checkpoint, once its row was read after the divergence. */
  checkpointSeq?: number;
}

export class EarlierCode {
  readonly #host: EarlierCodeHost;
  readonly #pollers: Pollers;
  readonly #beganAt: number;
  readonly #diverged = new Map<string, Divergence>();

  constructor(host: EarlierCodeHost, pollers: Pollers) {
    this.#host = host;
    this.#pollers = pollers;
    this.#beganAt = host.clock.monotonic();
  }

  /** Notes that a session diverged from the code of a runner, which has released it. */
  diverged(sessionId: string, runnerId: string): void {
    const known = this.#diverged.get(sessionId);
    const runners = new Set([...(known?.runners ?? []), runnerId]);
    this.#diverged.delete(sessionId);
    this.#diverged.set(sessionId, { ...known, runners });
    for (const oldest of this.#diverged.keys()) {
      if (this.#diverged.size <= DIVERGED_MAX) break;
      this.#diverged.delete(oldest);
    }
  }

  /** The same candidates; those that a superseded runner keeps name the runners that may get them (earlier-code-1). */
  async place(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const all = await this.#host.registry.all();
    const alive = all.filter((runner) => runner.draining !== true && this.#isAlive(runner));
    const superseded = alive.filter((runner) => this.isSuperseded(runner));
    if (superseded.length === 0) return candidates;
    const current = alive.filter((runner) => !superseded.includes(runner));
    return candidates.map((candidate) => {
      const diverged = this.#divergedOf(candidate);
      const keepers = idsOf(superseded.filter(({ runnerId }) => this.#keeps(runnerId, candidate.sessionId)));
      const left = new Set(keepers.filter((runnerId) => !diverged.has(runnerId)));
      if (left.size === 0) return candidate;
      const fitting = current.filter(
        (runner) => !diverged.has(runner.runnerId) && takes(fitnessOf(runner), candidate),
      );
      // mutant: returned-nowhere
      const onlyAt = fitting.length > 0 ? new Set(idsOf(fitting)) : left;
      return { ...candidate, onlyAt, keepers: left };
    });
  }

  /** Whether a superseded runner keeps a session, as far as is known here. */
  async isKept(sessionId: string): Promise<boolean> {
    const all = await this.#host.registry.all();
    return all.some(
      (runner) =>
        this.isSuperseded(runner) && this.#isAlive(runner) && this.#keeps(runner.runnerId, sessionId),
    );
  }

  isSuperseded({ runnerId, superseded }: StoredRunner): boolean {
    return superseded === true || this.#pollers.find(runnerId)?.kept !== undefined;
  }

  /**
   * The first kept sessions that have ended, that another runner has committed to, or that wait for other
   * code. The first one that stays ends the search, because its runner stays for it.
   */
  async leftOf(runnerId: string, kept: readonly KeptSession[]): Promise<readonly string[]> {
    const left: string[] = [];
    for (const { sessionId, nextSeq } of kept) {
      const row = await this.#host.storage.reader.session(sessionId).catch(ifCorrupt);
      if (row !== undefined && !hasLeft(row, nextSeq)) break;
      const [claim] = await this.#host.storage.heldClaims({
        now: this.#host.clock.now(),
        limit: 1,
        sessionId,
      });
      if (claim?.owner === runnerId) break; // Its journal has grown here.
      left.push(sessionId);
    }
    return left;
  }

  /** earlier-code-3. */
  #keeps(runnerId: string, sessionId: string): boolean {
    const kept = this.#pollers.find(runnerId)?.kept;
    return kept === undefined || kept.has(sessionId);
  }

  #isAlive({ runnerId }: StoredRunner): boolean {
    const { clock, leaseMs } = this.#host;
    const quietMs = this.#pollers.quietFor(runnerId);
    if (quietMs < Infinity) return quietMs < leaseMs;
    return clock.monotonic() - this.#beganAt < leaseMs;
  }

  #divergedOf({ sessionId, checkpointSeq = -1 }: Candidate): ReadonlySet<string> {
    const known = this.#diverged.get(sessionId);
    if (known === undefined) return NONE;
    known.checkpointSeq ??= checkpointSeq;
    if (known.checkpointSeq === checkpointSeq) return known.runners;
    this.#diverged.delete(sessionId);
    return NONE;
  }
}

const NONE: ReadonlySet<string> = new Set();

function idsOf(runners: readonly StoredRunner[]): readonly string[] {
  return runners.map(({ runnerId }) => runnerId);
}

/** Whether the earlier code is no longer needed. A session that is paused for its code waits for other code. */
function hasLeft({ status, move, nextSeq, pauseReason }: Session, known: number): boolean {
  const waitsForCode = pauseReason === "nondeterminism" || pauseReason === "agent_fault";
  return isEnded(status) || move !== undefined || waitsForCode || nextSeq > known;
}
