// `MemoryTransaction`: the rows that `applyChange` reads and writes in memory, and the notices to listeners
// afterwards.
//
// No method awaits, so each call of the storage is one transaction.

import {
  type Arrival,
  type ChildRow,
  type Claim,
  type CommitBatch,
  type Followers,
  isActive,
  isAnsweredBy,
  isEnded,
  isSameRecords,
  type NewSession,
  nextClaim,
  NO_CLAIM,
  provenClaim,
  type RowPatch,
  type RowPort,
  type SeenSignals,
  type Session,
} from "@holdfast/core";
import type { MemoryIndex } from "./memory-index.ts";
import type { MemoryLedger } from "./memory-ledger.ts";
import { addSeen, childRow, hasSeen, setHold, type Rows, type Stored } from "./memory-rows.ts";

export class MemoryTransaction implements RowPort {
  readonly ledger: MemoryLedger;
  readonly #rows: Rows;
  readonly #index: MemoryIndex;
  readonly #followers: Followers;
  /** The last token of this storage, so that a session with the id of a deleted one never gets an old token. */
  #lastToken = NO_CLAIM.token;
  #arrived: Arrival[] = [];
  /** The changed sessions that have followers. */
  #changed = new Set<Stored>();

  constructor(parts: {
    readonly rows: Rows;
    readonly ledger: MemoryLedger;
    readonly index: MemoryIndex;
    readonly followers: Followers;
  }) {
    this.#rows = parts.rows;
    this.ledger = parts.ledger;
    this.#index = parts.index;
    this.#followers = parts.followers;
  }

  find(sessionId: string): Stored | undefined {
    return this.#rows.sessions.get(sessionId);
  }

  exists(sessionId: string): boolean {
    return this.#rows.sessions.has(sessionId);
  }

  children(sessionId: string): readonly ChildRow[] {
    return this.#rows.childrenOf(sessionId).map(childRow);
  }

  exhaustedBy(sessionId: string): readonly string[] {
    return this.#rows.exhaustedBy(sessionId);
  }

  hasSeen(sessionId: string, seen: SeenSignals): boolean {
    return hasSeen(this.#rows.find(sessionId), seen);
  }

  holdsRecords({ sessionId, firstSeq, records }: CommitBatch): boolean {
    const held = this.#rows.find(sessionId).records.slice(firstSeq, firstSeq + records.length);
    return isSameRecords(held, records);
  }

  insert({ session, records, entries, committedAt, claimFor }: NewSession): Claim {
    const stored = this.#rows.add(session);
    for (const record of records) stored.records.push(record);
    for (const entry of entries) stored.entries.push(entry);
    if (claimFor === undefined) this.#noteChange(stored);
    else this.claim(stored, { ...claimFor, now: committedAt });
    return stored.claim;
  }

  commit(batch: CommitBatch, after: Session, now: number): void {
    const stored = this.#rows.find(batch.sessionId);
    const waitsChanged = after.waits !== stored.session.waits;
    stored.claim = provenClaim(stored.claim, batch);
    for (const record of batch.records) stored.records.push(record);
    for (const entry of batch.entries) stored.entries.push({ ...entry, createdAt: now });
    if (isEnded(after.status)) return this.#replace(stored, after);
    for (const signalId of batch.consumed) stored.pending.remove(signalId);
    stored.session = after;
    if (waitsChanged || batch.consumed.length > 0) stored.answered = stored.pending.answers(after.waits);
    this.#noteChange(stored);
  }

  update(sessionId: string, { session, signal, account, hold, claim, seen }: RowPatch): boolean {
    const stored = this.#rows.find(sessionId);
    // mutant: duplicate-signal-stored
    if (signal !== undefined && seen !== undefined && hasSeen(stored, seen)) return false;
    if (signal !== undefined) {
      stored.session = session ?? stored.session;
      stored.pending.add(signal);
      stored.answered ||= isAnsweredBy(stored.session.waits, signal.name);
      this.#noteChange(stored);
    } else if (session !== undefined) this.#replace(stored, session);
    if (account !== undefined) {
      stored.session = { ...stored.session, account };
      this.#noteChange(stored);
    }
    if (hold !== undefined) setHold(stored, hold.task, hold.amount);
    if (claim !== undefined) this.#setClaim(stored, claim, 0);
    if (seen !== undefined) addSeen(stored, seen);
    return true;
  }

  remove(sessionId: string): void {
    const stored = this.#rows.find(sessionId);
    this.#index.remove(stored);
    this.#rows.remove(stored);
    if (this.#isFollowed(sessionId)) this.#changed.add(stored);
  }

  announce(sessionId: string, awaited: boolean): void {
    this.#arrived.push({ sessionId, awaited });
  }

  /** Make a claim with a new token. */
  claim(
    stored: Stored,
    asked: { readonly owner: string; readonly now: number; readonly leaseMs: number },
  ): Claim {
    this.#setClaim(stored, nextClaim(stored.claim, asked, ++this.#lastToken), asked.leaseMs);
    return stored.claim;
  }

  /** Notify the listeners and the followers of the changed sessions. */
  publish(listeners: ReadonlySet<(arrival: Arrival) => void>): void {
    if (this.#arrived.length > 0) {
      const arrived = this.#arrived;
      this.#arrived = [];
      for (const arrival of arrived) for (const listener of listeners) listener(arrival);
    }
    if (this.#changed.size === 0) return;
    const changed = this.#changed;
    this.#changed = new Set();
    for (const { session } of changed) this.#followers.changed(session, isActive(session));
  }

  #isFollowed(sessionId: string): boolean {
    return this.#followers.has(sessionId) || this.#followers.has(undefined);
  }

  #setClaim(stored: Stored, claim: Claim, leaseMs: number): void {
    this.#index.setClaim(stored, claim, leaseMs);
    this.#noteChange(stored);
  }

  #replace(stored: Stored, session: Session): void {
    stored.session = session;
    if (isEnded(session.status)) {
      // Nothing reads the signals of an ended session.
      stored.pending.clear();
      stored.seen = undefined;
      stored.answered = false;
    } else {
      stored.answered = stored.pending.answers(session.waits);
    }
    this.#noteChange(stored);
  }

  /** To be called after every change of a row, a claim or `answered`. */
  #noteChange(stored: Stored): void {
    if (this.#isFollowed(stored.session.sessionId)) this.#changed.add(stored);
    this.#rows.listStatus(stored);
    this.#index.place(stored);
  }
}
