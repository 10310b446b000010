// What other processes stored, for listeners in this one: found by looking, a few times a second and whenever somebody says that
// there is something (`commit-notices.ts`). Nothing depends on it being found at once.
//
//   L1. Sessions that were claimed through this storage are looked at for an inbox that has grown.
//   L2. Sessions that nobody holds and that have something to do are named once for each version they have: whoever listens
//       here may run them. At most `READY_MAX` are looked at; `due` knows all of them.
//   L3. What this storage announced by itself may be announced once more. An arrival is a hint: it is never wrong to look.

import { isEnded, type Arrival } from "@holdfast/core";
import type { Database, Statement } from "./database.ts";
import type { Head, Heads } from "./heads.ts";
import { reap } from "./instance.ts";
import type { Reads } from "./reads.ts";
import type { WorkingSet } from "./working-set.ts";

const READY_MAX = 1_000;
/** How often it is looked whether some other storage has died, counted in looks. */
const REAP_EVERY = 20;

const MOVED: Statement = {
  name: "moved",
  text: `SELECT t.session_id FROM unnest($1::int4[], $2::text[], $3::int8[]) AS v (lane, session_id, version)
    JOIN state t ON t.lane = v.lane AND t.session_id = v.session_id WHERE t.version <> v.version`,
};

const READY: Statement = {
  name: "ready",
  text: `SELECT session_id, version FROM state WHERE due_at = '-Infinity' ORDER BY due_at, lane, session_id LIMIT ${READY_MAX}`,
};

interface Watched {
  readonly lane: number;
  version: number;
  /** As it was when listeners here last heard of it, or whoever claimed it loaded it. */
  inbox: number;
}

export interface ArrivalPollOptions {
  readonly db: Database;
  readonly reads: Reads;
  readonly heads: Heads;
  /** Who looks. */
  readonly instance: string;
  readonly everyMs: number;
  readonly announce: (arrivals: readonly Arrival[]) => void;
}

export class ArrivalPoll {
  readonly #options: ArrivalPollOptions;
  readonly #watched = new Map<string, Watched>();
  /** Versions of sessions that were named (L2). */
  #named = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #looks = 0;
  #isLooking = false;
  /** Whether there may be something that the look under way does not find. */
  #isLate = false;

  constructor(options: ArrivalPollOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.#look(), this.#options.everyMs);
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** There may be something: look now, or once more when it is being looked. */
  hurry(): void {
    if (this.#timer === undefined) return;
    if (this.#isLooking) this.#isLate = true;
    else void this.#look();
  }

  /** Whether it is claimed here: nobody else waits for it. */
  isWatching(sessionId: string): boolean {
    return this.#watched.has(sessionId);
  }

  /** It was claimed here. */
  watch({ sessionId, lane, version, session }: Head): void {
    this.#watched.set(sessionId, { lane, version, inbox: session.inbox });
  }

  /** A group was written: what it did is known here. */
  note({ writes }: WorkingSet): void {
    for (const { head } of writes.created.values()) if (head.claim.owner !== undefined) this.watch(head);
    for (const { sessionId } of writes.removed) this.#watched.delete(sessionId);
    for (const head of writes.changed) {
      const isOver = writes.released.has(head) || writes.removed.has(head) || isEnded(head.session.status);
      if (isOver) this.#watched.delete(head.sessionId);
      else if (this.#watched.has(head.sessionId)) this.watch(head);
    }
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    this.#isLooking = true;
    try {
      const arrivals = [...(await this.#lookAtWatched()), ...(await this.#lookForReady())];
      if (this.#looks++ % REAP_EVERY === 0)
        for (const sessionId of await reap(this.#options.db, this.#options.instance))
          arrivals.push({ sessionId, awaited: true });
      if (this.#timer !== undefined) this.#options.announce(arrivals);
    } catch {
      // The database is away: the next look finds what this one did not.
    }
    this.#isLooking = false;
    if (this.#timer === undefined) return;
    if (this.#isLate) {
      this.#isLate = false;
      return void this.#look();
    }
    this.#timer = undefined;
    this.start();
  }

  /** L1. */
  async #lookAtWatched(): Promise<Arrival[]> {
    if (this.#watched.size === 0) return [];
    const watched = [...this.#watched];
    const moved = await this.#options.db.run(MOVED, [
      watched.map(([, { lane }]) => lane),
      watched.map(([sessionId]) => sessionId),
      watched.map(([, { version }]) => version),
    ]);
    if (moved.length === 0) return [];
    const found = await this.#options.reads.heads(moved.map((row) => row["session_id"] as string));
    const arrivals: Arrival[] = [];
    for (const [sessionId, head] of found) {
      const known = this.#watched.get(sessionId);
      if (known === undefined || head instanceof Error || head.version <= known.version) continue;
      const { inbox } = head.session;
      if (inbox > known.inbox) arrivals.push({ sessionId, awaited: true });
      this.#watched.set(sessionId, { lane: head.lane, version: head.version, inbox });
      this.#options.heads.put(head);
    }
    return arrivals;
  }

  /** L2. */
  async #lookForReady(): Promise<Arrival[]> {
    const named = new Map<string, number>();
    const arrivals: Arrival[] = [];
    for (const row of await this.#options.db.run(READY)) {
      const [sessionId, version] = [row["session_id"] as string, row["version"] as number];
      named.set(sessionId, version);
      if (this.#named.get(sessionId) !== version) arrivals.push({ sessionId, awaited: true });
    }
    this.#named = named;
    return arrivals;
  }
}
