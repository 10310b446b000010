// ArrivalPoll: finds changes of other processes for listeners in this one. It polls a few times a second, and
// at each notice (`commit-notices.ts`). Nothing depends on finding a change at once.
//
//   - Sessions that were claimed through this storage are checked for a grown inbox and for having moved
//     away. Followed sessions are checked for any change. One statement checks all of them, and answers only
//     the changed ones.
//   - Unclaimed sessions with something to do are named once for each version, so that a listener may run
//     them. At most `READY_MAX` are read; `due` knows all of them.
//   arrival-poll-3. An arrival that this storage has announced may be announced once more. An arrival is a
//       hint: it is never wrong to look.
//   arrival-poll-4. However many notices come, the poll rests most of the time, because the cost of a look
//       grows with the number of known sessions.
//   - Only held sessions are watched. A session is not watched any more when it was claimed elsewhere, or has
//     ended or moved away.
//   arrival-poll-6. Followers of all sessions are notified when any transaction of the database server has
//       ended since the last look. The notice names no session, and there may be one too many.

import {
  type Arrival,
  ChurnMap,
  type Clock,
  type Followers,
  isActive,
  repeat,
  type Repetition,
} from "@holdfast/core";
import type { Database, Statement } from "../database/database.ts";
import type { Head, Heads } from "../tables/heads.ts";
import type { Peers } from "../tables/peers.ts";
import type { Reads } from "../read/reads.ts";
import type { WorkingSet } from "../write/working-set.ts";

const READY_MAX = 1_000;
/** Up to this many followed sessions are checked at every notice. */
const FOLLOWED_FEW = 500;
/** How long the poll rests after a look, as a multiple of the time that the look took. */
const REST = 3;
/** After how many looks the poll looks for other storages, and whether one has died. */
const PEERS_EVERY = 4;
/** The same for claims of a storage that nobody knows any more. The statement reads all held claims. */
const REAP_EVERY = 20;

const MOVED: Statement = {
  name: "moved",
  text: `SELECT v.session_id FROM unnest($1::int4[], $2::text[], $3::int8[]) AS v (lane, session_id, version)
    LEFT JOIN state t ON t.lane = v.lane AND t.session_id = v.session_id WHERE t.version IS DISTINCT FROM v.version`,
};

const VERSIONS: Statement = {
  name: "versions",
  text: `SELECT s.session_id, s.lane, t.version FROM session s
    JOIN state t ON t.lane = s.lane AND t.session_id = s.session_id WHERE s.session_id = ANY($1::text[])`,
};

const READY: Statement = {
  name: "ready",
  text: `SELECT session_id, version FROM state WHERE due_at = '-Infinity' ORDER BY due_at, lane, session_id LIMIT ${READY_MAX}`,
};

/** It differs when a transaction that wrote something has ended in between. */
const SNAPSHOT: Statement = { name: "snapshot", text: "SELECT pg_current_snapshot()::text AS snapshot" };

/** The last known version of a session. */
interface Known {
  readonly lane: number;
  readonly version: number;
}

interface Watched extends Known {
  /** The token of the claim that was made here. */
  readonly token: number;
  /** The inbox at the last arrival that listeners here received, or when the holder loaded the session. */
  readonly inbox: number;
}

export interface ArrivalPollOptions {
  readonly db: Pick<Database, "run">;
  readonly reads: Pick<Reads, "heads">;
  readonly heads: Pick<Heads, "put">;
  readonly peers: Pick<Peers, "look" | "reap">;
  readonly everyMs: number;
  readonly announce: (arrivals: readonly Arrival[]) => void;
  readonly followers: Followers;
  readonly setTimer: Clock["setTimer"];
}

export class ArrivalPoll {
  readonly #options: ArrivalPollOptions;
  readonly #watched = new ChurnMap<string, Watched>();
  /** The last known versions of followed sessions that are not among the watched. */
  readonly #followed = new Map<string, Known>();
  #followedAt = -Infinity;
  /** At the last look for followers of all sessions. */
  #snapshot: unknown;
  /** Versions of sessions that were named. */
  #named = new Map<string, number>();
  #repetition: Repetition | undefined;
  #looks = 0;
  #restsUntil = -Infinity;

  constructor(options: ArrivalPollOptions) {
    this.#options = options;
  }

  start(): void {
    this.#repetition ??= repeat({
      clock: this.#options,
      isIdle: true,
      pauseMs: () => this.#options.everyMs,
      restMs: () => this.#restsUntil - performance.now(), // arrival-poll-4.
      // The database is away: the next look finds what this one did not.
      look: () => this.#look(),
    });
  }

  stop(): void {
    this.#repetition?.close();
    this.#repetition = undefined;
  }

  /**
   * There may be something: look now, or after a rest when it is being looked, or was just now
   * (arrival-poll-4).
   */
  hurry(): void {
    this.#repetition?.hurry();
  }

  /** Whether it is claimed here: nobody else waits for it. */
  isWatching(sessionId: string): boolean {
    return this.#watched.has(sessionId);
  }

  /** It was claimed here. */
  watch({ sessionId, lane, version, session, claim }: Head): void {
    this.#watched.set(sessionId, { lane, version, token: claim.token, inbox: session.inbox });
  }

  /** Watch a session that was claimed here on, as long as that claim is held. */
  #watchOn(head: Head): void {
    const { sessionId, session, claim } = head;
    const known = this.#watched.get(sessionId);
    if (known === undefined) return;
    const isHeld = claim.owner !== undefined && claim.token === known.token && isActive(session);
    if (isHeld) this.watch(head);
    else this.#watched.delete(sessionId);
  }

  /** Take over the results of a group that was written here. */
  note({ writes }: WorkingSet): void {
    for (const { head } of writes.created.values()) if (head.claim.owner !== undefined) this.watch(head);
    for (const { sessionId } of writes.removed) this.#watched.delete(sessionId);
    const { followers } = this.#options;
    for (const head of writes.changed) {
      this.#watchOn(head);
      const { sessionId, lane, version } = head;
      if (this.#followed.has(sessionId)) this.#followed.set(sessionId, { lane, version });
      followers.changed(head.session, isActive(head.session) && !writes.removed.has(head));
    }
    for (const { head } of writes.created.values()) followers.changed(head.session, false);
    for (const { session } of writes.removed) followers.changed(session, false);
  }

  async #look(): Promise<void> {
    const begunAt = performance.now();
    try {
      const arrivals = [...(await this.#lookAtKnown()), ...(await this.#lookForReady())];
      for (const sessionId of await this.#lookForDead()) arrivals.push({ sessionId, awaited: true });
      if (this.#repetition !== undefined) this.#options.announce(arrivals);
      await this.#lookForAny();
    } finally {
      const endedAt = performance.now();
      this.#restsUntil = endedAt + Math.min(REST * (endedAt - begunAt), this.#options.everyMs);
    }
  }

  /** arrival-poll-6. */
  async #lookForAny(): Promise<void> {
    const { followers, db } = this.#options;
    const before = this.#snapshot;
    this.#snapshot = followers.has(undefined) ? (await db.run(SNAPSHOT))[0]?.["snapshot"] : undefined;
    if (before !== this.#snapshot) followers.notifyOfAll();
  }

  async #lookForDead(): Promise<readonly string[]> {
    const looks = this.#looks++;
    const { peers } = this.#options;
    return [
      ...(looks % PEERS_EVERY === 0 ? await peers.look() : []),
      ...(looks % REAP_EVERY === 0 ? await peers.reap() : []),
    ];
  }

  async #lookAtKnown(): Promise<Arrival[]> {
    await this.#knowFollowed();
    const all = [...this.#followedNow(), ...this.#watched];
    if (all.length === 0) return [];
    const moved = await this.#options.db.run(MOVED, [
      all.map(([, { lane }]) => lane),
      all.map(([sessionId]) => sessionId),
      all.map(([, { version }]) => version),
    ]);
    if (moved.length === 0) return [];
    const ids = new Set(moved.map((row) => row["session_id"] as string));
    const found = await this.#options.reads.heads([...ids]);
    const arrivals: Arrival[] = [];
    for (const sessionId of ids) {
      const head = found.get(sessionId);
      if (head instanceof Error) continue;
      if (head === undefined) {
        this.#watched.delete(sessionId);
        if (this.#followed.delete(sessionId)) this.#options.followers.notify(sessionId);
        continue;
      }
      this.#notifyFollowers(head);
      const known = this.#watched.get(sessionId);
      if (known === undefined || head.version <= known.version) continue;
      const hasMoved = head.session.move?.isDone === true; // Nothing more arrives at it here.
      if (hasMoved || head.session.inbox > known.inbox) arrivals.push({ sessionId, awaited: true });
      this.#watchOn(head);
      this.#options.heads.put(head);
    }
    return arrivals;
  }

  /** Many followed sessions are checked at the regular interval only, whatever notices come. */
  #followedNow(): Iterable<readonly [string, Known]> {
    const now = performance.now();
    if (this.#followed.size > FOLLOWED_FEW && now - this.#followedAt < this.#options.everyMs) return [];
    this.#followedAt = now;
    return this.#followed;
  }

  #notifyFollowers({ sessionId, lane, version }: Head): void {
    const known = this.#followed.get(sessionId);
    if (known === undefined || version <= known.version) return;
    this.#followed.set(sessionId, { lane, version });
    this.#options.followers.notify(sessionId);
  }

  /**
   * Forget sessions that nobody follows any more, and read the versions of new ones. Notify the followers of
   * these once.
   */
  async #knowFollowed(): Promise<void> {
    const { followers, db } = this.#options;
    for (const sessionId of this.#followed.keys())
      if (!followers.has(sessionId)) this.#followed.delete(sessionId);
    const unknown = followers.sessionIds.filter((sessionId) => !this.#followed.has(sessionId));
    if (unknown.length === 0) return;
    for (const row of await db.run(VERSIONS, [unknown])) {
      const sessionId = row["session_id"] as string;
      this.#followed.set(sessionId, { lane: row["lane"] as number, version: row["version"] as number });
      followers.notify(sessionId);
    }
  }

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
