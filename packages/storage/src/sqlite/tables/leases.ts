// Leases: claims that outlive this process, with leases that expire, and losses that are not yet reset (ST38,
// ST39).
//
// Claims without an expiry cost nothing here, except those of sqlite-leases-4. For the others the file holds
// token, owner, length of the lease and losses, but no expiry time. A renewal therefore writes nothing, and a
// lease that outlived its storage starts over in full.
//
//   - `#rows` mirrors the table. It changes in the transaction that changes the table. After a failed
//     transaction the next use reads the table again.
//   - After opening, leases count from the first time that a caller gives; until then they have no expiry.
//   - The claim of a session that has ended is kept until its lease expires. Its holder may have missed the
//     answer to the ending commit, and sends it again (ST3).
//   sqlite-leases-4. A claim without an expiry ends with the process that owns the file. The file holds such
//       a claim where its loss must be counted. Then the session has losses, or the last owner died and the
//       session has not been claimed since. A commit that proves the holder, or a release, removes the row.
//       The next owner finds the rows that are left, and counts a loss for each if the owner before it died
//       (ST39). A session that nobody has lost therefore costs no write.
//   sqlite-leases-5. A claim without an expiry that another process made through the owner outlives the owner
//       (`client-processes.ts`). The file holds it until it is released or its session ends, with the number
//       of that process.
//
// It knows no sessions but their numbers and ids, and decides nothing: `claims.ts` of the core does.

import { NO_CLAIM, releasedClaim, type Claim } from "@holdfast/core";
import { rowChecksum } from "./checksum.ts";
import type { SqlDriver, SqlRow, SqlStatement, SqlValue } from "../file/driver.ts";
import { assertChecksum, list, marks, valuesOf } from "./row-checks.ts";

const COLUMNS = ["session", "token", "owner", "lease_ms", "losses"];

export const SELECT_CLAIM = `SELECT ${list(COLUMNS)}, checksum FROM claim`;

/** `died`: without closing the file, while the machine ran on. */
export type LastOwner = "died" | "closed";

/**
 * The length of a lease in the row of a claim without an expiry (sqlite-leases-4). A lower number is that of
 * another process, negated (sqlite-leases-5).
 */
const UNENDING_MS = -1;

/** A row of the table; without an owner it was released, and only its losses are kept. */
export interface Lease {
  readonly number: number;
  readonly token: number;
  readonly owner: string | undefined;
  readonly leaseMs: number;
  readonly losses: number;
}

/** How the file is to keep a claim. */
export interface Filing {
  readonly leaseMs?: number;
  /** sqlite-leases-4. Whether it holds the claim although that has no expiry and no losses. */
  readonly isFiled?: boolean;
}

interface Kept extends Lease {
  readonly sessionId: string;
  /** Whether the session has ended. */
  readonly isSpent: boolean;
}

export class Leases {
  readonly #path: string;
  readonly #put: SqlStatement;
  readonly #remove: SqlStatement;
  readonly #all: SqlStatement;
  readonly #rows = new Map<string, Kept>();
  readonly #owned = new Map<string, Set<string>>();
  /** sqlite-leases-5. The sessions that other processes have claimed, by their numbers. */
  readonly #ofClients = new Map<number, Set<string>>();
  /** Ended sessions, and when their leases end. */
  readonly #spent = new Map<string, number>();
  readonly #lastOwner: LastOwner;
  /** sqlite-leases-5. The process whose change is applied, if that is not this one. */
  client: number | undefined;
  /** The latest time that `begin` was called with. */
  latestNow = 0;
  #hasBegun = false;
  /** Whether the open transaction has changed it, and whether a transaction that had changed it failed. */
  #isChanged = false;
  #isStale = true;

  /** @param lastOwner how the last owner of the file ended. */
  constructor(driver: SqlDriver, path: string, lastOwner: LastOwner = "closed") {
    this.#path = path;
    this.#lastOwner = lastOwner;
    this.#put = driver.prepare(
      `INSERT OR REPLACE INTO claim (${list(COLUMNS)}, checksum) VALUES (${marks(COLUMNS)}, ?)`,
    );
    this.#remove = driver.prepare("DELETE FROM claim WHERE session = ?");
    this.#all = driver.prepare(
      `SELECT ${list(COLUMNS, "c.")}, c.checksum, s.session_id, t.ended_at IS NOT NULL AS is_spent
         FROM claim c JOIN session s ON s.session = c.session JOIN state t ON t.session = c.session`,
    );
    this.refresh();
    this.#endLeft(driver);
    this.refresh();
  }

  /**
   * To be called before the first method of a transaction. A damaged row counts as missing: its session can
   * be claimed, under a higher token.
   */
  refresh(): void {
    if (!this.#isStale) return;
    this.#rows.clear();
    this.#owned.clear();
    this.#ofClients.clear();
    for (const row of this.#all.all()) {
      const lease = readIntact(row, this.#path);
      if (lease !== undefined)
        this.#keep({ ...lease, sessionId: row["session_id"] as string, isSpent: row["is_spent"] === 1 });
    }
    for (const sessionId of this.#spent.keys())
      if (this.#rows.get(sessionId)?.isSpent !== true) this.#spent.delete(sessionId);
    this.#isStale = false;
  }

  /** The transaction is committed, or has failed. */
  ended(isCommitted: boolean): void {
    this.#isStale ||= this.#isChanged && !isCommitted;
    this.#isChanged = false;
  }

  /** The length of the lease on a session's claim, if the claim is held and expires. */
  leaseMsOf(sessionId: string): number | undefined {
    return this.#rows.get(sessionId)?.leaseMs;
  }

  /** Claims that are held or have losses, by session; none of them has an expiry yet. */
  *claims(): Iterable<readonly [sessionId: string, claim: Claim]> {
    for (const { sessionId, token, owner, leaseMs, losses } of this.#rows.values())
      yield [
        sessionId,
        owner === undefined || leaseMs === UNENDING_MS
          ? { ...NO_CLAIM, token, losses }
          : { token, owner, until: Infinity, losses },
      ];
  }

  /** sqlite-leases-4. Whether the file must hold a claim without an expiry that follows this one. */
  mustFile(sessionId: string, before: Claim): boolean {
    return this.#rows.has(sessionId) || (this.#lastOwner === "died" && before.token === NO_CLAIM.token);
  }

  /** Whether the file holds the session's claim, which has no expiry. */
  isUnending(sessionId: string): boolean {
    return this.#rows.get(sessionId)?.leaseMs === UNENDING_MS;
  }

  /** sqlite-leases-4. End the claims of the last owner. */
  #endLeft(driver: SqlDriver): void {
    const left = [...this.#rows.values()].filter(({ leaseMs }) => leaseMs === UNENDING_MS);
    if (left.length === 0) return;
    try {
      driver.exec("BEGIN");
      for (const { number, sessionId, token, owner = "", losses } of left) {
        const claim = { token, owner, until: Infinity, losses };
        this.file(number, sessionId, releasedClaim(claim, this.#lastOwner === "died"));
      }
      driver.exec("COMMIT");
      this.ended(true);
    } catch {
      // A full disk must not keep the database from being opened. The claims have ended all the same.
      if (driver.inTransaction) driver.exec("ROLLBACK");
      this.ended(false);
    }
  }

  /** sqlite-leases-5. The processes that hold claims without an expiry through this one. */
  clients(): readonly number[] {
    return [...this.#ofClients.keys()];
  }

  /** The claims without an expiry of such a process. */
  ofClient(client: number): readonly { readonly sessionId: string; readonly token: number }[] {
    const sessionIds = [...(this.#ofClients.get(client) ?? [])];
    return sessionIds.map((sessionId) => ({ sessionId, token: this.#rows.get(sessionId)!.token }));
  }

  /** Sessions whose claim is held and expires: all, or only the given session's or the given owner's. */
  *held({ sessionId, owner }: { readonly sessionId?: string; readonly owner?: string }): Iterable<string> {
    if (sessionId !== undefined) yield* this.#rows.has(sessionId) ? [sessionId] : [];
    else if (owner !== undefined) yield* this.#owned.get(owner) ?? [];
    else for (const sessionIds of this.#owned.values()) yield* sessionIds;
  }

  /** The expiry of each lease, at the first call; nothing at later calls. */
  begin(now: number): readonly (readonly [sessionId: string, until: number])[] {
    this.latestNow = Math.max(this.latestNow, now);
    if (this.#hasBegun) return NONE;
    this.#hasBegun = true;
    const begun: (readonly [string, number])[] = [];
    for (const { sessionId, owner, leaseMs, isSpent } of this.#rows.values()) {
      if (owner === undefined || leaseMs < 0) continue;
      if (isSpent) this.#spent.set(sessionId, now + leaseMs);
      // mutant: reopened-lease-expired
      begun.push([sessionId, now + leaseMs]);
    }
    return begun;
  }

  /** Active sessions that this owner has claimed. */
  ofOwner(owner: string): readonly string[] {
    return [...(this.#owned.get(owner) ?? [])];
  }

  /** Make the file say of a session's claim what it is to know after this process. In a transaction. */
  file(number: number, sessionId: string, claim: Claim, filing: Filing = {}): void {
    const { leaseMs, isFiled = false } = filing;
    const kept = this.#rows.get(sessionId);
    const filedMs = this.client !== undefined && leaseMs === Infinity ? -this.client : leaseMs;
    const lease = toLease(number, claim, filedMs ?? kept?.leaseMs ?? Infinity, isFiled);
    if (lease === undefined) {
      if (kept !== undefined) this.drop(sessionId);
    } else if (kept === undefined || isOther(kept, lease)) {
      this.#write({ ...lease, sessionId, isSpent: false });
    }
  }

  #write(kept: Kept): void {
    const values = valuesOfLease(kept);
    this.#isChanged = true;
    this.#put.run(...values, rowChecksum(values));
    this.#forget(kept.sessionId);
    this.#keep(kept);
  }

  /** It is renewed for another time than it was claimed for. In a transaction. */
  lengthen(sessionId: string, leaseMs: number): void {
    const kept = this.#rows.get(sessionId);
    if (kept !== undefined) this.#write({ ...kept, leaseMs });
  }

  /** The file knows nothing of it any more. In a transaction. */
  drop(sessionId: string): void {
    const kept = this.#rows.get(sessionId);
    if (kept === undefined) return;
    this.#isChanged = true;
    this.#remove.run(kept.number);
    this.#forget(sessionId);
  }

  /** The session has ended. */
  spend(sessionId: string, until: number): void {
    const kept = this.#rows.get(sessionId);
    if (kept === undefined) return;
    if (kept.leaseMs < 0) return this.drop(sessionId);
    this.#isChanged = true;
    this.#forget(sessionId);
    this.#keep({ ...kept, isSpent: true });
    this.#spent.set(sessionId, until);
  }

  /** Ended sessions whose lease has expired. */
  spentBy(now: number): readonly string[] {
    if (this.#spent.size === 0) return [];
    return [...this.#spent].flatMap(([sessionId, until]) => (until <= now ? sessionId : []));
  }

  #keep(kept: Kept): void {
    const { sessionId, owner, isSpent, leaseMs } = kept;
    this.#rows.set(sessionId, kept);
    if (leaseMs < UNENDING_MS) include(this.#ofClients, -leaseMs, sessionId);
    else if (owner !== undefined && !isSpent && leaseMs !== UNENDING_MS)
      include(this.#owned, owner, sessionId);
  }

  #forget(sessionId: string): void {
    const kept = this.#rows.get(sessionId);
    this.#rows.delete(sessionId);
    this.#spent.delete(sessionId);
    if (kept === undefined) return;
    if (kept.leaseMs < UNENDING_MS) exclude(this.#ofClients, -kept.leaseMs, sessionId);
    else if (kept.owner !== undefined) exclude(this.#owned, kept.owner, sessionId);
  }
}

function include<K>(sets: Map<K, Set<string>>, key: K, sessionId: string): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([sessionId]));
  else set.add(sessionId);
}

function exclude<K>(sets: Map<K, Set<string>>, key: K, sessionId: string): void {
  const set = sets.get(key);
  set?.delete(sessionId);
  if (set?.size === 0) sets.delete(key);
}

const NONE: readonly never[] = [];

/** The row that the file keeps for a claim; `undefined` when it keeps none. */
function toLease(number: number, claim: Claim, leaseMs: number, isFiled: boolean): Lease | undefined {
  const { token, owner, until, losses } = claim;
  if (owner !== undefined && until === Infinity && leaseMs < UNENDING_MS)
    return { number, token, owner, leaseMs, losses };
  if (owner !== undefined && until === Infinity && (isFiled || losses > 0))
    return { number, token, owner, leaseMs: UNENDING_MS, losses };
  if (owner !== undefined && until !== Infinity) return { number, token, owner, leaseMs, losses };
  return losses === 0 ? undefined : { number, token, owner: undefined, leaseMs: 0, losses };
}

function isOther(kept: Lease, lease: Lease): boolean {
  return (
    kept.token !== lease.token ||
    kept.owner !== lease.owner ||
    kept.leaseMs !== lease.leaseMs ||
    kept.losses !== lease.losses
  );
}

function valuesOfLease({ number, token, owner, leaseMs, losses }: Lease): SqlValue[] {
  return [number, token, owner ?? null, leaseMs, losses];
}

export function readLease(row: SqlRow, path: string): Lease {
  const number = row["session"] as number;
  assertChecksum(path, "claim", String(number), row["checksum"], rowChecksum(valuesOf(row, COLUMNS)));
  return {
    number,
    token: row["token"] as number,
    owner: (row["owner"] as string | null) ?? undefined,
    leaseMs: row["lease_ms"] as number,
    losses: row["losses"] as number,
  };
}

function readIntact(row: SqlRow, path: string): Lease | undefined {
  try {
    return readLease(row, path);
  } catch {
    return undefined; // `holdfast doctor` reports it.
  }
}
