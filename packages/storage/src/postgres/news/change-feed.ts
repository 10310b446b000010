// `ChangeFeed`: the listeners and followers of one storage. They are called for the changes of this process
// at once, and for those of other processes when the poll finds them.
//
// The poll and the change notifications run only while there is a listener or a follower.

import { type Arrival, Followers, type Notice } from "@holdfast/core";
import { setNodeTimer } from "../../node-timers.ts";
import type { Database } from "../database/database.ts";
import type { Reads } from "../read/reads.ts";
import type { Head, Heads } from "../tables/heads.ts";
import type { Peers } from "../tables/peers.ts";
import type { WorkingSet } from "../write/working-set.ts";
import { ArrivalPoll } from "./arrival-poll.ts";
import { CommitNotices } from "./commit-notices.ts";

export interface ChangeFeedOptions {
  readonly db: Database;
  readonly reads: Reads;
  readonly heads: Heads;
  readonly peers: Peers;
  /** How often the database is polled for arrivals of other processes. */
  readonly pollMs: number;
  /** The schema that notices name, and a warning for people when notices do not work; `undefined` without notices. */
  readonly notices: { readonly schema: string; readonly warn: (text: string) => void } | undefined;
}

export class ChangeFeed {
  readonly #poll: ArrivalPoll;
  readonly #notices: CommitNotices | undefined;
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #followers = new Followers();

  constructor({ db, notices, pollMs, ...parts }: ChangeFeedOptions) {
    this.#poll = new ArrivalPoll({
      db,
      ...parts,
      everyMs: pollMs,
      announce: (arrivals) => this.announce(arrivals),
      followers: this.#followers,
      setTimer: setNodeTimer,
    });
    if (notices !== undefined)
      this.#notices = new CommitNotices({ db, ...notices, received: () => this.#poll.hurry() });
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // Wrapped, so that a function subscribed twice is called twice and unsubscribed once.
    const notify = (arrival: Arrival): void => listener(arrival);
    this.#listeners.add(notify);
    this.#listen();
    return () => {
      this.#listeners.delete(notify);
      this.#stopUnused();
    };
  }

  follow(sessionId: string | undefined, onNotice: Notice): () => void {
    const leave = this.#followers.follow(sessionId, onNotice);
    this.#listen();
    return () => {
      leave();
      this.#stopUnused();
    };
  }

  announce(arrivals: readonly Arrival[]): void {
    for (const arrival of arrivals) for (const listener of this.#listeners) listener(arrival);
  }

  /** Announces a group that was written, here and to other processes. */
  written(set: WorkingSet): void {
    this.#poll.note(set);
    this.announce(set.arrived);
    if (this.#concernsOthers(set)) this.#notices?.send();
  }

  /** From here on, arrivals for the session are looked for. */
  claimed(head: Head): void {
    this.#poll.watch(head);
  }

  stop(): void {
    this.#poll.stop();
    this.#listeners.clear();
  }

  async close(): Promise<void> {
    await this.#notices?.close();
  }

  /** Whether another process has to act: as the holder of a session, or because nobody has claimed a session. */
  #concernsOthers({ arrived, writes }: WorkingSet): boolean {
    if (writes.released.size > 0 || arrived.some(({ sessionId }) => !this.#poll.isWatching(sessionId)))
      return true;
    for (const { head } of writes.created.values()) if (head.claim.owner === undefined) return true;
    return false;
  }

  #listen(): void {
    this.#poll.start();
    this.#notices?.listen();
  }

  #stopUnused(): void {
    if (this.#listeners.size > 0 || this.#followers.size > 0) return;
    this.#poll.stop();
    void this.#notices?.stop();
  }
}
