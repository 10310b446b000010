// `SessionLoads`: whole sessions and their arrivals, each with the budget that remains for the session.

import { type Arrivals, type Entry, remainingFor, type Session, type SessionSnapshot } from "@holdfast/core";
import type { Database } from "../database/database.ts";
import { asHead, type Heads } from "../tables/heads.ts";
import { ArrivalReads } from "./arrival-reads.ts";
import type { Reads } from "./reads.ts";

export class SessionLoads {
  readonly #reads: Reads;
  readonly #heads: Heads;
  readonly #arrivals: ArrivalReads;
  readonly #latestNow: () => number;

  /** @param latestNow the latest time of a call, for what remains of windows that roll. */
  constructor(db: Database, reads: Reads, heads: Heads, latestNow: () => number) {
    this.#latestNow = latestNow;
    this.#reads = reads;
    this.#heads = heads;
    this.#arrivals = new ArrivalReads(db, reads);
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const loaded = await this.#reads.load(sessionId);
    if (loaded === undefined) return undefined;
    return { ...loaded, ...(await this.#remaining(loaded.session)) };
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    const arrivals = await this.#arrivals.read(sessionId, after);
    const known = this.#heads.get(sessionId) ?? (await this.#reads.heads([sessionId])).get(sessionId);
    return { ...arrivals, ...(await this.#remaining(asHead(known)?.session)) };
  }

  conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    return this.#reads.conversation(sessionId, leaf);
  }

  /** Not before the rest was read: what had been spent then is taken off. */
  async #remaining(session: Session | undefined): Promise<Pick<SessionSnapshot, "remaining">> {
    if (session === undefined || session.payers.length === 0) return {};
    const heads = await this.#reads.heads(session.payers);
    const remaining = remainingFor({ find: (id) => asHead(heads.get(id)) }, session, this.#latestNow());
    return remaining === undefined ? {} : { remaining };
  }
}
