// `MemoryStorage`: sessions in the memory of this process, the storage of ephemeral mode.
//
// `applyChange` decides what a change does, for this storage as for every other one. `MemoryIndex`
// finds due and leased sessions; this file joins the parts. No method awaits, so every call is one
// transaction.

import {
  type AgentStorage,
  applyChange,
  applyOverdue,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  claimedAfter,
  type ClaimResult,
  CorruptRecordError,
  type Due,
  type Entry,
  Followers,
  type HeldClaim,
  isEnded,
  listHolds,
  newsOf,
  type Notice,
  pageOfClaims,
  refuseClaim,
  remainingFor,
  renewedClaim,
  type SessionSnapshot,
  type StorageReader,
} from "@holdfast/core";
import { MemoryIndex } from "./memory-index.ts";
import { MemoryLedger } from "./memory-ledger.ts";
import { MemoryReader } from "./memory-reader.ts";
import { findEntry, Rows, statesOf } from "./memory-rows.ts";
import { MemoryTransaction } from "./memory-transaction.ts";

/** A storage that lives as long as its process, for tests and for sessions that need no more. */
export class MemoryStorage implements AgentStorage {
  readonly name = "memory";
  readonly durable = false;
  readonly reader: StorageReader;

  readonly #rows = new Rows();
  readonly #ledger = new MemoryLedger();
  readonly #index = new MemoryIndex();
  readonly #followers = new Followers();
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  /** The latest time of a call, for what remains of windows that roll. */
  #latestNow = 0;
  readonly #transaction = new MemoryTransaction({
    rows: this.#rows,
    ledger: this.#ledger,
    index: this.#index,
    followers: this.#followers,
  });

  constructor() {
    this.reader = new MemoryReader(this.#rows, this.#ledger);
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    this.#latestNow = Math.max(this.#latestNow, now);
    const results = changes.map((change) => applyChange(this.#transaction, change, now));
    this.#transaction.publish(this.#listeners);
    return results;
  }

  async claim({
    sessionId,
    owner,
    now,
    leaseMs,
    unlessHeld,
  }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
    const refusal = refuseClaim(stored.session, stored.claim, { owner, now, unlessHeld });
    if (refusal !== undefined) return refusal;
    this.#latestNow = Math.max(this.#latestNow, now);
    return claimedAfter(stored.claim, this.#transaction.claim(stored, { owner, now, leaseMs }));
  }

  async renew({
    owner,
    sessionIds,
    now,
    leaseMs,
  }: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    const wanted = sessionIds && new Set(sessionIds);
    let sessions = 0;
    for (const stored of this.#index.leasedBy(owner)) {
      const { sessionId, status } = stored.session;
      // mutant: unnamed-leases-renewed
      if (isEnded(status) || wanted?.has(sessionId) === false) continue;
      stored.claim = renewedClaim(stored.claim, now + leaseMs);
      stored.leaseMs = leaseMs;
      this.#index.place(stored);
      sessions++;
    }
    return { sessions };
  }

  async heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    const one = query.sessionId === undefined ? undefined : this.#rows.sessions.get(query.sessionId);
    const held = one === undefined ? this.#index.leased() : [one];
    return pageOfClaims(held, query);
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return undefined;
    const { session, records, pending } = stored;
    const remaining = remainingFor(this.#transaction, session, this.#latestNow);
    return {
      session,
      records: records.slice(session.checkpointSeq ?? 0),
      signals: pending.after(0),
      states: statesOf(stored),
      holds: listHolds(stored),
      ...(remaining === undefined ? {} : { remaining }),
    };
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    const { session, pending } = this.#rows.find(sessionId);
    const signals = pending.after(after);
    const remaining = remainingFor(this.#transaction, session, this.#latestNow);
    return {
      inbox: session.inbox,
      signals,
      session: newsOf(session),
      ...(remaining === undefined ? {} : { remaining }),
    };
  }

  async conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    const { entries } = this.#rows.find(sessionId);
    const branch: Entry[] = [];
    for (let id: number | undefined = leaf; id !== undefined;) {
      const entry = findEntry(entries, id);
      if (entry === undefined) {
        throw new CorruptRecordError(`conversation of ${sessionId}`, `there is no entry at position ${id}`);
      }
      branch.push(entry);
      id = entry.parent;
    }
    return branch.reverse();
  }

  async due({ now, limit, agents }: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    this.#latestNow = Math.max(this.#latestNow, now);
    for (const sessionId of this.#index.reach(now)) applyOverdue(this.#transaction, sessionId, now);
    this.#transaction.publish(this.#listeners);
    const { sessionIds, nextAt: lookAt } = this.#index.due(now, limit, agents);
    const { schedules, nextAt: firesAt } = this.#ledger.schedules.due(now);
    const nextAt = Math.min(lookAt, firesAt);
    return nextAt === Infinity ? { sessionIds, schedules } : { sessionIds, schedules, nextAt };
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // A wrapper per call, so a function that is subscribed twice is called twice and unsubscribed once.
    const notify = (arrival: Arrival) => listener(arrival);
    this.#listeners.add(notify);
    return () => void this.#listeners.delete(notify);
  }

  follow(sessionId: string | undefined, onNotice: Notice): () => void {
    return this.#followers.follow(sessionId, onNotice);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
  }
}
