// Sessions that no registered runner fits: named while they wait, and after five minutes not left to wait for ever (P5).
//
//   N1. The five minutes begin when this coordinator saw it first. One that has just begun, or a runner that has just gone, costs
//       nobody his session; what a session's row says of its age does not count.
//   N2. What never began fails, and its parent hears of it as of any other end. What has begun is paused: it has something to lose,
//       and goes on when a person says so, or raises a runner that fits and unpauses it.
//   N3. A look takes its time: what a runner came for meanwhile, and left with nothing to do, stays as that one left it.
//   N4. One that is damaged stays as it is, and keeps no other one from being looked at.
//
// It claims what it acts on, like anybody else.

import type { AgentStorage, Change, Clock, Session } from "@holdfast/core";
import { ifCorrupt } from "@holdfast/core/internal";
import { fitnessOf, type Registry } from "./registry.ts";
import { hasSomethingToDo, NO_MATCH_MS, unmetBy, type Needs } from "./rules.ts";

export interface UnmatchedHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly registry: Registry;
}

export const SWEEP_MS = 5_000;
const PAGE = 10_000;
const ACT_LEASE_MS = 10_000;
const ACTOR = "coordinator";

interface Waits {
  readonly since: number;
  readonly unmet: string;
}

export class Unmatched {
  readonly #host: UnmatchedHost;
  #waiting = new Map<string, Waits>();
  /** What never changes of sessions that were due at the last sweep: each row is read once for as long as it waits. */
  #needs = new Map<string, Needs>();

  constructor(host: UnmatchedHost) {
    this.#host = host;
  }

  /** What a session waits for that no runner has. */
  reasonFor(sessionId: string): string | undefined {
    return this.#waiting.get(sessionId)?.unmet;
  }

  /** When it fails or is paused for that, unless a runner comes. */
  endsAt(sessionId: string): number | undefined {
    const waits = this.#waiting.get(sessionId);
    const { clock } = this.#host;
    return waits && clock.now() + waits.since + NO_MATCH_MS - clock.monotonic();
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Look at everything that is due, and act on what has waited for too long. */
  async sweep(): Promise<void> {
    const { storage, clock, registry } = this.#host;
    const runners = (await registry.all()).filter(({ draining }) => draining !== true).map(fitnessOf);
    const { sessionIds } = await storage.due({ now: clock.now(), limit: PAGE });
    const now = clock.monotonic();
    const [before, waiting] = [this.#waiting, new Map<string, Waits>()];
    const needs = new Map<string, Needs>();
    for (const sessionId of sessionIds) {
      const found = this.#needs.get(sessionId) ?? (await this.#needsOf(sessionId));
      if (found === undefined) continue;
      needs.set(sessionId, found);
      const unmet = unmetBy(runners, found);
      if (unmet === undefined) continue;
      const since = before.get(sessionId)?.since ?? now;
      if (now - since >= NO_MATCH_MS) await this.#act(sessionId, unmet);
      else waiting.set(sessionId, { since, unmet });
    }
    this.#waiting = waiting;
    this.#needs = needs;
  }

  async #needsOf(sessionId: string): Promise<Needs | undefined> {
    const session = await this.#host.storage.reader.session(sessionId).catch(ifCorrupt);
    if (session === undefined || session.cancel !== undefined) return undefined; // Its deadline ends it.
    const { agent, placement } = session;
    return { agent: agent.name, version: agent.version, ...placement };
  }

  /** N2, N3. */
  async #act(sessionId: string, unmet: string): Promise<void> {
    const { storage, clock } = this.#host;
    const now = clock.now();
    const claim = await storage.claim({ sessionId, owner: ACTOR, now, leaseMs: ACT_LEASE_MS });
    if (claim.status !== "claimed") return;
    const { token } = claim;
    const snapshot = await storage.load(sessionId).catch(ifCorrupt);
    const changes: Change[] = [{ type: "release_claim", sessionId, token }];
    if (snapshot !== undefined && snapshot.session.cancel === undefined && hasSomethingToDo(snapshot, now))
      changes.unshift(endOf(snapshot.session, token, unmet));
    await storage.commit(changes, now);
  }
}

function endOf({ sessionId, status, nextSeq }: Session, token: number, unmet: string): Change {
  const hasBegun = status !== "submitted" || nextSeq > 0;
  const error = {
    name: "HoldfastError",
    code: "no_matching_runner",
    message: `no runner for the session within ${NO_MATCH_MS / 60_000} minutes: ${unmet}`,
    fix: hasBegun
      ? `start a runner that fits, then let it go on: \`holdfast unpause ${sessionId}\``
      : "start a runner that fits, or ask for less, and start it again",
  };
  return {
    type: "commit_batch",
    sessionId,
    token,
    firstSeq: nextSeq,
    records: [],
    entries: [],
    consumed: [],
    session: hasBegun
      ? { status: "paused", pauseReason: "no_matching_runner", error }
      : { status: "failed", waits: [], error },
  };
}
