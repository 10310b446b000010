// Sessions in the memory of this process: the storage of ephemeral mode.
//
// It decides nothing: what a change does is `storage-rules.ts`, shared with every other adapter. It knows how to find
// things quickly, and relies on one fact: no method awaits, so every call is one transaction by being one slice.
//
//   M1. Rows, records, entries and signals are never changed in place, so they are handed out without copying.
//   M2. `ready` holds the sessions that can be due without a clock, `timeline` those that a clock makes due. Both are kept
//       by `#index` alone, from `dueAt` and `lookAt`; a parked session without a time is in neither and costs nothing.
//   M3. Pending signals are a list in the order of arrival. `seen` knows the `order` of each, 0 once it is consumed, so a
//       backlog of many thousand signals makes neither the next one nor taking one out slower.

import {
  CorruptRecordError,
  encodeRecords,
  invariant,
  isEnded,
  NotFoundError,
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type CommitBatch,
  type CreateSession,
  type Due,
  type Entry,
  type JournalRecord,
  type RequestCancel,
  type SendSignal,
  type Session,
  type SessionSnapshot,
  type SessionStatus,
  type StorageReader,
  type StoredSignal,
} from "@holdfast/core";
import {
  applyBatch,
  createSession,
  firstBatch,
  decideCancel,
  decideRelease,
  decideSignal,
  dueAt,
  endOverdue,
  isAnsweredBy,
  lookAt,
  NO_CLAIM,
  refuseBatch,
  refuseClaim,
  type BatchLookups,
  type Claim,
} from "@holdfast/core/internal";
import { WakeQueue, type Queued } from "./wake-queue.ts";

export class MemoryStorage implements AgentStorage {
  readonly name = "memory";
  readonly durable = false;
  readonly reader: StorageReader;

  readonly #sessions = new Map<string, Stored>();
  /** In the order they were created, for paging. */
  readonly #created: Stored[] = [];
  readonly #ready = new Set<Stored>();
  readonly #timeline = new WakeQueue<Stored>();
  readonly #listeners = new Set<(arrival: Arrival) => void>();

  constructor() {
    this.reader = new MemoryReader(this.#sessions, this.#created);
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const arrived: Arrival[] = [];
    const results = changes.map((change) => this.#apply(change, now, arrived));
    this.#tell(arrived);
    return results;
  }

  async claim({
    sessionId,
    owner,
    now,
    leaseMs,
  }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const stored = this.#sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
    const refusal = refuseClaim(stored.session, stored.claim, { owner, now });
    if (refusal !== undefined) return refusal;
    this.#setClaim(stored, { token: stored.claim.token + 1, owner, until: now + leaseMs });
    return { status: "claimed", token: stored.claim.token };
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const stored = this.#sessions.get(sessionId);
    if (stored === undefined) return undefined;
    const { session, records, pending } = stored;
    return { session, records: records.slice(session.checkpointSeq ?? 0), signals: pending.slice() };
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    const { session, pending } = find(this.#sessions, sessionId);
    const { inbox, status, cancel } = session;
    const signals = pending.slice(firstAbove(pending, after));
    return { inbox, signals, session: cancel === undefined ? { status } : { status, cancel } };
  }

  async conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    const { entries } = find(this.#sessions, sessionId);
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

  async due({ now, limit }: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    const ended: Arrival[] = [];
    // What the clock has reached leaves the timeline: it ends here, or it is ready.
    for (
      let stored = this.#timeline.first();
      stored !== undefined && stored.queuedFor <= now;
      stored = this.#timeline.first()
    ) {
      const session = endOverdue(stored.session, now);
      if (session === undefined) {
        this.#timeline.set(stored, stored.session.cancel?.deadlineAt ?? Infinity);
        this.#ready.add(stored);
      } else {
        this.#end(stored, session);
        ended.push({ sessionId: session.sessionId, awaited: true });
      }
    }
    this.#tell(ended);
    return this.#listDue(now, limit);
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // Wrapped, so that a function subscribed twice is told twice and unsubscribed once.
    const told = (arrival: Arrival) => listener(arrival);
    this.#listeners.add(told);
    return () => void this.#listeners.delete(told);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
  }

  #apply(change: Change, now: number, arrived: Arrival[]): ChangeResult {
    const stored = this.#sessions.get(change.sessionId);
    if (change.type === "create_session")
      return stored === undefined ? this.#create(change, now) : { status: "exists" };
    if (stored === undefined) return { status: "not_found" };
    switch (change.type) {
      case "commit_batch":
        return this.#commitBatch(stored, change, now);
      case "send_signal":
        return this.#sendSignal(stored, change, now, arrived);
      case "request_cancel":
        return this.#requestCancel(stored, change, now, arrived);
      case "release_claim":
        return this.#release(stored, change.token);
    }
  }

  #create(change: CreateSession, now: number): ChangeResult {
    const { sessionId, claimFor } = change;
    const refusal = this.#refuseFirst(change, now);
    if (refusal !== undefined) return refusal;
    const stored: Stored = {
      session: createSession(change, now),
      claim:
        claimFor === undefined
          ? NO_CLAIM
          : { token: 1, owner: claimFor.owner, until: now + claimFor.leaseMs },
      answered: false,
      position: this.#created.length,
      records: [],
      entries: [],
      pending: [],
      seen: undefined,
      dueAt: Infinity,
      queuedFor: Infinity,
      queueIndex: -1,
    };
    this.#sessions.set(sessionId, stored);
    this.#created.push(stored);
    this.#index(stored);
    const first = firstBatch(change, stored.claim.token);
    if (first !== undefined) this.#commitBatch(stored, first, now);
    return claimFor === undefined ? { status: "created" } : { status: "created", token: stored.claim.token };
  }

  /** What a first batch would be refused for, before anything of its session is stored (ST25). */
  #refuseFirst(change: CreateSession, now: number): ChangeResult | undefined {
    const claim = {
      ...NO_CLAIM,
      ...change.claimFor,
      token: change.claimFor === undefined ? NO_CLAIM.token : 1,
    };
    const first = firstBatch(change, claim.token);
    return first === undefined
      ? undefined
      : refuseBatch(createSession(change, now), claim, first, NOTHING_YET);
  }

  #commitBatch(stored: Stored, batch: CommitBatch, now: number): ChangeResult {
    const refusal = refuseBatch(stored.session, stored.claim, batch, new Lookups(stored));
    if (refusal !== undefined) return refusal;
    const session = applyBatch(stored.session, batch, now);
    if (isEnded(session.status)) {
      append(stored, batch, now);
      this.#end(stored, session);
      return { status: "committed", inbox: session.inbox };
    }
    const waitsChanged = session.waits !== stored.session.waits;
    append(stored, batch, now);
    for (const signalId of batch.consumed) consume(stored, signalId);
    stored.session = session;
    if (waitsChanged || batch.consumed.length > 0) stored.answered = isAnswered(stored);
    this.#index(stored);
    return { status: "committed", inbox: session.inbox };
  }

  #sendSignal(stored: Stored, signal: SendSignal, now: number, arrived: Arrival[]): ChangeResult {
    const { sessionId, signalId, name, payload, dedupKey } = signal;
    const seen = hasSeen(stored.seen, signalId, dedupKey);
    const decision = decideSignal(stored.session, signal, { seen, pending: stored.pending.length }, now);
    if (!("session" in decision)) return decision.result;
    const { order, awaited } = decision.result;
    stored.session = decision.session;
    stored.seen ??= { orders: new Map(), dedupKeys: new Set() };
    stored.seen.orders.set(signalId, order);
    if (dedupKey !== undefined) stored.seen.dedupKeys.add(dedupKey);
    stored.pending.push({ signalId, name, payload, order, sentAt: now });
    stored.answered ||= isAnsweredBy(stored.session.waits, name);
    this.#index(stored);
    arrived.push({ sessionId, awaited });
    return decision.result;
  }

  #requestCancel(stored: Stored, request: RequestCancel, now: number, arrived: Arrival[]): ChangeResult {
    const { result, session } = decideCancel(stored.session, request, now);
    if (session === undefined) return result;
    if (isEnded(session.status)) {
      this.#end(stored, session);
    } else {
      stored.session = session;
      stored.answered = isAnswered(stored);
      this.#index(stored);
    }
    arrived.push({ sessionId: request.sessionId, awaited: true });
    return result;
  }

  #release(stored: Stored, token: number): ChangeResult {
    const status = decideRelease(stored.claim, token);
    if (status === "released") this.#setClaim(stored, { token, until: -Infinity });
    return { status };
  }

  #setClaim(stored: Stored, claim: Claim): void {
    stored.claim = claim;
    this.#index(stored);
  }

  /** Terminal is final: nothing will ask for its signals again. */
  #end(stored: Stored, session: Session): void {
    stored.session = session;
    stored.pending = [];
    stored.seen = undefined;
    stored.answered = false;
    this.#index(stored);
  }

  /** M2. After every change of row, claim or `answered`. */
  #index(stored: Stored): void {
    const { session, claim, answered } = stored;
    const at = dueAt(session, claim, answered);
    if (at !== stored.dueAt) {
      stored.dueAt = at;
      if (at === -Infinity) this.#ready.add(stored);
      else this.#ready.delete(stored);
    }
    // A ready session needs the clock only for the end of its cancel.
    const look =
      at === -Infinity ? (session.cancel?.deadlineAt ?? Infinity) : lookAt(session, claim, answered);
    if (look !== stored.queuedFor) this.#timeline.set(stored, look);
  }

  #listDue(now: number, limit: number): Due {
    const sessionIds: string[] = [];
    let nextAt = this.#timeline.first()?.queuedFor ?? Infinity;
    for (const stored of this.#ready) {
      if (stored.dueAt > now) {
        // An earlier call was told a later time: clocks of several machines differ.
        nextAt = Math.min(nextAt, stored.dueAt);
      } else if (sessionIds.length < limit) {
        sessionIds.push(stored.session.sessionId);
      } else {
        break;
      }
    }
    return nextAt === Infinity ? { sessionIds } : { sessionIds, nextAt };
  }

  #tell(arrivals: readonly Arrival[]): void {
    for (const arrival of arrivals) {
      for (const listener of this.#listeners) listener(arrival);
    }
  }
}

/** One session. `session` and what stands in the lists is never changed, only replaced (M1). */
interface Stored extends Queued {
  session: Session;
  claim: Claim;
  /** Whether a pending signal is one it waits for. */
  answered: boolean;
  /** Where it stands in the order of creation. */
  readonly position: number;
  readonly records: JournalRecord[];
  readonly entries: Entry[];
  pending: StoredSignal[];
  /** Of all its signals; most sessions never get one. */
  seen: Seen | undefined;
  /** As the index knows it (M2). */
  dueAt: number;
}

interface Seen {
  /** By signal id (M3). */
  readonly orders: Map<string, number>;
  readonly dedupKeys: Set<string>;
}

function hasSeen(seen: Seen | undefined, signalId: string, dedupKey: string | undefined): boolean {
  if (seen === undefined) return false;
  return seen.orders.has(signalId) || (dedupKey !== undefined && seen.dedupKeys.has(dedupKey));
}

/** What there is to look up for a session that does not exist yet. */
const NOTHING_YET: BatchLookups = { holdsRecords: () => false, isPending: () => false };

class Lookups implements BatchLookups {
  readonly #stored: Stored;

  constructor(stored: Stored) {
    this.#stored = stored;
  }

  holdsRecords({ firstSeq, records }: CommitBatch): boolean {
    const held = this.#stored.records.slice(firstSeq, firstSeq + records.length);
    return encodeRecords(held, INLINE_BLOBS) === encodeRecords(records, INLINE_BLOBS);
  }

  isPending(signalId: string): boolean {
    return (this.#stored.seen?.orders.get(signalId) ?? CONSUMED) !== CONSUMED;
  }
}

const CONSUMED = 0;

/** For comparing only: a large payload stands for itself. */
const INLINE_BLOBS = { put: (text: string) => text };

function append(stored: Stored, { records, entries }: CommitBatch, now: number): void {
  for (const record of records) stored.records.push(record);
  for (const entry of entries) stored.entries.push({ ...entry, createdAt: now });
}

function consume({ pending, seen }: Stored, signalId: string): void {
  const order = seen?.orders.get(signalId);
  invariant(order !== undefined, `consuming signal ${signalId}, which was never stored`);
  seen?.orders.set(signalId, CONSUMED);
  pending.splice(firstAbove(pending, order) - 1, 1);
}

function isAnswered({ session: { waits }, pending }: Stored): boolean {
  return waits.length > 0 && pending.some(({ name }) => isAnsweredBy(waits, name));
}

function firstAbove(pending: readonly StoredSignal[], order: number): number {
  let low = 0;
  let high = pending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pending[middle]!.order > order) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Entries stand in the order of their `id`. */
function findEntry(entries: readonly Entry[], id: number): Entry | undefined {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle]!.id < id) low = middle + 1;
    else high = middle;
  }
  return entries[low]?.id === id ? entries[low] : undefined;
}

function find(sessions: ReadonlyMap<string, Stored>, sessionId: string): Stored {
  const stored = sessions.get(sessionId);
  if (stored === undefined) {
    throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
  }
  return stored;
}

class MemoryReader implements StorageReader {
  readonly #sessions: ReadonlyMap<string, Stored>;
  readonly #created: readonly Stored[];

  constructor(sessions: ReadonlyMap<string, Stored>, created: readonly Stored[]) {
    this.#sessions = sessions;
    this.#created = created;
  }

  async sessions(query: {
    readonly limit: number;
    readonly before?: string;
    readonly status?: SessionStatus;
  }): Promise<readonly Session[]> {
    const page: Session[] = [];
    const start =
      query.before === undefined ? this.#created.length : find(this.#sessions, query.before).position;
    for (let i = start - 1; i >= 0 && page.length < query.limit; i--) {
      const { session } = this.#created[i]!;
      if (query.status === undefined || session.status === query.status) page.push(session);
    }
    return page;
  }

  async session(sessionId: string): Promise<Session | undefined> {
    return this.#sessions.get(sessionId)?.session;
  }

  async journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]> {
    return this.#sessions.get(sessionId)?.records.slice(fromSeq, fromSeq + limit) ?? [];
  }

  async entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]> {
    return this.#sessions.get(sessionId)?.entries.slice(from, from + limit) ?? [];
  }

  async pendingSignals(sessionId: string): Promise<readonly StoredSignal[]> {
    return this.#sessions.get(sessionId)?.pending.slice() ?? [];
  }
}
