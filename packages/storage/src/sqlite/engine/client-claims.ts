// ClientClaims: what the file of a database knows of the processes that hold claims through its owner
// (sqlite-leases-5). It holds a number and a mark of each such process, by which the next owner tells whether
// the process lives.

import { isEnded, NO_CLAIM, type ReleaseClaim, unlessCorrupt } from "@holdfast/core";
import { readMark, type PresenceMark } from "../../host-presence.ts";
import type { SqlDriver } from "../file/driver.ts";
import type { Leases } from "../tables/leases.ts";
import type { Heads } from "./heads.ts";

/** A claim as its holder knows it. */
export interface KnownClaim {
  readonly sessionId: string;
  readonly token: number;
}

const KEY = "client:";

export class ClientClaims {
  readonly #driver: SqlDriver;
  readonly #leases: Leases;
  readonly #heads: Heads;

  constructor(driver: SqlDriver, leases: Leases, heads: Heads) {
    this.#driver = driver;
    this.#leases = leases;
    this.#heads = heads;
  }

  /** The processes that the file knows, with their marks. */
  known(): ReadonlyMap<number, PresenceMark | undefined> {
    const rows = this.#driver
      .prepare("SELECT key, value FROM meta WHERE key >= 'client:' AND key < 'client;'")
      .all();
    const known = new Map<number, PresenceMark | undefined>();
    for (const client of this.#leases.clients()) known.set(client, undefined);
    for (const { key, value } of rows)
      known.set(Number(String(key).slice(KEY.length)), readMark(String(value)));
    return known;
  }

  put(client: number, mark: PresenceMark): void {
    const put = this.#driver.prepare("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)");
    put.run(`${KEY}${client}`, JSON.stringify(mark));
  }

  forget(client: number): void {
    this.#driver.prepare("DELETE FROM meta WHERE key = ?").run(`${KEY}${client}`);
  }

  /** The sessions, among these, that a process holds by any claim. Nothing is read. */
  claimed(sessionIds: readonly string[]): readonly string[] {
    return sessionIds.filter((sessionId) => this.#heads.isClaimed(sessionId));
  }

  /**
   * The releases of the claims that a process does not have.
   *
   * @param held those that it has. It may have missed the answer to the batch that ended a session, and sends
   *   that batch again (ST3).
   */
  releases(client: number, held: readonly KnownClaim[]): readonly ReleaseClaim[] {
    const tokens = new Map(held.map(({ sessionId, token }) => [sessionId, token]));
    for (const { sessionId, token } of held) {
      const head = unlessCorrupt(() => this.#heads.get(sessionId));
      if (head === undefined || !isEnded(head.session.status)) continue;
      if (head.claim.token === NO_CLAIM.token) this.#heads.amend(sessionId, () => ({ ...NO_CLAIM, token }));
    }
    return this.#leases
      .ofClient(client)
      .filter(({ sessionId, token }) => tokens.get(sessionId) !== token)
      .map((claim) => ({ type: "release_claim", ...claim }));
  }
}
