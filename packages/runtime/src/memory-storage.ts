// Sessions in the memory of this process: the storage of ephemeral mode.
//
// It decides nothing: what a change does is `storage-rules.ts`, shared with every other adapter. It knows how to find
// things quickly, and relies on one fact: no method awaits, so every call is one transaction by being one slice.
//
//   M1. Rows, records, entries and signals are never changed in place, so they are handed out without copying.
//   M2. `ready` holds the sessions that can be due without a clock, by agent, `timeline` those that a clock makes due. Both are
//       kept by `#index` alone, from `dueAt` and `lookAt`; a parked session without a time is in neither and costs nothing.
//   M3. Pending signals are a list in the order of arrival. `seen` knows the `order` of each, 0 once it is consumed, so a
//       backlog of many thousand signals makes neither the next one nor taking one out slower.
//   M4. What few sessions have (children, holds) is made when the first of it comes.

import {
  CorruptRecordError,
  encodeRecords,
  invariant,
  isEnded,
  NotFoundError,
  overdueAt,
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type Amount,
  type CommitBatch,
  type CreateSession,
  type Due,
  type Entry,
  type Hold,
  type ImportSession,
  type JournalRecord,
  type JsonText,
  type ReleaseClaim,
  type Schedule,
  type SendSignal,
  type Session,
  type SessionSnapshot,
  type StorageReader,
  type StoredSignal,
} from "@holdfast/core";
import {
  applyBatch,
  applyChange,
  applyOverdue,
  createSession,
  decideRelease,
  decideSignal,
  dueAt,
  findImportProblem,
  firstBatch,
  isAnsweredBy,
  lookAt,
  NO_CLAIM,
  refuseBatch,
  refuseClaim,
  refuseCreation,
  remainingFor,
  type Applied,
  type BatchLookups,
  type CascadeDoor,
  type ChildRow,
  type Claim,
} from "@holdfast/core/internal";
import { WakeQueue, type Queued } from "./wake-queue.ts";

export class MemoryStorage implements AgentStorage {
  readonly name = "memory";
  readonly durable = false;
  readonly reader: StorageReader;

  readonly #rows = new Rows();
  readonly #ready = new Map<string, Set<Stored>>();
  readonly #timeline = new WakeQueue<Stored>();
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #door: CascadeDoor;
  /** What listeners hear of when the call is over. */
  #arrived: Arrival[] = [];

  constructor() {
    this.reader = new MemoryReader(this.#rows);
    this.#door = this.#openDoor();
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const results = changes.map((change) => applyChange(this.#door, change, now));
    this.#tell();
    return results;
  }

  async claim({
    sessionId,
    owner,
    now,
    leaseMs,
  }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
    const refusal = refuseClaim(stored.session, stored.claim, { owner, now });
    if (refusal !== undefined) return refusal;
    this.#setClaim(stored, { token: stored.claim.token + 1, owner, until: now + leaseMs });
    return { status: "claimed", token: stored.claim.token };
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return undefined;
    const { session, records, pending } = stored;
    const remaining = remainingFor(this.#door, session);
    return {
      session,
      records: records.slice(session.checkpointSeq ?? 0),
      signals: pending.slice(),
      states: statesOf(stored),
      holds: holdsOf(stored),
      ...(remaining === undefined ? {} : { remaining }),
    };
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    const { session, pending } = this.#rows.find(sessionId);
    const { inbox, status, cancel } = session;
    const signals = pending.slice(firstAbove(pending, after));
    return { inbox, signals, session: cancel === undefined ? { status } : { status, cancel } };
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
    // What the clock has reached leaves the timeline: it is acted on here, or it is ready.
    for (
      let stored = this.#timeline.first();
      stored !== undefined && stored.queuedFor <= now;
      stored = this.#timeline.first()
    ) {
      const overdue = overdueAt(stored.session);
      if (overdue <= now) {
        applyOverdue(this.#door, stored.session.sessionId, now);
      } else {
        this.#timeline.set(stored, overdue);
        this.#setReady(stored);
      }
    }
    this.#tell();
    return this.#listDue(now, limit, agents);
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

  #openDoor(): CascadeDoor {
    const rows = this.#rows;
    return {
      session: (sessionId) => rows.sessions.get(sessionId)?.session,
      children: (sessionId) => rows.childrenOf(sessionId).map(childRow),
      exhaustedBy: (payer) => rows.exhaustedBy(payer),
      holds: (sessionId) => holdsOf(rows.find(sessionId)),
      schedule: (scheduleId) => rows.schedules.get(scheduleId),
      create: (change, now) => this.#create(change, now),
      import: (change) => this.#import(change),
      send: (change, now) => this.#sendSignal(change, now),
      commitBatch: (change, now) => this.#commitBatch(change, now),
      release: (change) => this.#release(change),
      replace: (session) => this.#replace(rows.find(session.sessionId), session),
      setAccount: (sessionId, account) => {
        const stored = rows.find(sessionId);
        stored.session = { ...stored.session, account };
      },
      setHold: (sessionId, task, amount) => setHold(rows.find(sessionId), task, amount),
      putSchedule: (schedule) => {
        rows.schedules.set(schedule.scheduleId, schedule);
        return { status: "done" };
      },
      removeSchedule: (scheduleId) => void rows.schedules.delete(scheduleId),
      announce: (sessionId, awaited) => void this.#arrived.push({ sessionId, awaited }),
    };
  }

  #create(change: CreateSession, now: number): Applied {
    const { sessionId, claimFor, parent } = change;
    if (this.#rows.sessions.has(sessionId)) return { result: { status: "exists" } };
    const refusal = refuseCreation(change, now);
    if (refusal !== undefined) return { result: refusal };
    const above = parent === undefined ? undefined : this.#rows.sessions.get(parent.sessionId)?.session;
    const before = createSession(change, now, above);
    const stored = this.#rows.add(before);
    if (claimFor !== undefined)
      stored.claim = { token: 1, owner: claimFor.owner, until: now + claimFor.leaseMs };
    this.#index(stored);
    const first = firstBatch(change, stored.claim.token);
    if (first !== undefined) this.#applyBatch(stored, first, now);
    const created = { status: "created" } as const;
    return {
      result: claimFor === undefined ? created : { ...created, token: stored.claim.token },
      rows: { before, after: stored.session },
    };
  }

  #import(change: ImportSession): ChangeResult {
    const { sessionId, session, records, entries } = change;
    if (this.#rows.sessions.has(sessionId)) return { status: "exists" };
    const problem = findImportProblem(change);
    if (problem !== undefined) return { status: "invalid", reason: `session ${sessionId} ${problem}` };
    const stored = this.#rows.add(session);
    stored.records.push(...records);
    stored.entries.push(...entries);
    this.#index(stored);
    return { status: "created" };
  }

  #commitBatch(batch: CommitBatch, now: number): Applied {
    const stored = this.#rows.sessions.get(batch.sessionId);
    if (stored === undefined) return { result: { status: "not_found" } };
    const refusal = refuseBatch(stored.session, stored.claim, batch, new Lookups(stored));
    if (refusal !== undefined) return { result: refusal };
    const before = stored.session;
    const after = this.#applyBatch(stored, batch, now);
    return { result: { status: "committed", inbox: after.inbox }, rows: { before, after } };
  }

  #applyBatch(stored: Stored, batch: CommitBatch, now: number): Session {
    const session = applyBatch(stored.session, batch, now);
    append(stored, batch, now);
    if (isEnded(session.status)) {
      this.#end(stored, session);
      return session;
    }
    const waitsChanged = session.waits !== stored.session.waits;
    for (const signalId of batch.consumed) consume(stored, signalId);
    stored.session = session;
    if (waitsChanged || batch.consumed.length > 0) stored.answered = isAnswered(stored);
    this.#index(stored);
    return session;
  }

  #sendSignal(signal: SendSignal, now: number): ChangeResult {
    const { sessionId, signalId, name, payload, dedupKey } = signal;
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
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
    this.#arrived.push({ sessionId, awaited });
    return decision.result;
  }

  #release({ sessionId, token }: ReleaseClaim): ChangeResult {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
    const status = decideRelease(stored.claim, token);
    if (status === "released") this.#setClaim(stored, { token, until: -Infinity });
    return { status };
  }

  #setClaim(stored: Stored, claim: Claim): void {
    stored.claim = claim;
    this.#index(stored);
  }

  #replace(stored: Stored, session: Session): void {
    if (isEnded(session.status)) return this.#end(stored, session);
    stored.session = session;
    stored.answered = isAnswered(stored);
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
      if (at === -Infinity) this.#setReady(stored);
      else this.#ready.get(session.agent.name)?.delete(stored);
    }
    // A ready session needs the clock only for the end of its time.
    const look = at === -Infinity ? overdueAt(session) : lookAt(session, claim, answered);
    if (look !== stored.queuedFor) this.#timeline.set(stored, look);
  }

  #setReady(stored: Stored): void {
    const { name } = stored.session.agent;
    const ready = this.#ready.get(name);
    if (ready === undefined) this.#ready.set(name, new Set([stored]));
    else ready.add(stored);
  }

  #listDue(now: number, limit: number, agents: readonly string[] | undefined): Due {
    const sessionIds: string[] = [];
    let nextAt = this.#timeline.first()?.queuedFor ?? Infinity;
    for (const agent of agents === undefined ? this.#ready.keys() : new Set(agents)) {
      for (const stored of this.#ready.get(agent) ?? []) {
        if (stored.dueAt > now) {
          // An earlier call was told a later time: clocks of several machines differ.
          nextAt = Math.min(nextAt, stored.dueAt);
        } else if (sessionIds.length < limit) {
          sessionIds.push(stored.session.sessionId);
        } else {
          break;
        }
      }
    }
    const schedules: Schedule[] = [];
    for (const schedule of this.#rows.schedules.values()) {
      if (schedule.nextAt <= now) schedules.push(schedule);
      else nextAt = Math.min(nextAt, schedule.nextAt);
    }
    schedules.sort(byNextAt);
    return nextAt === Infinity ? { sessionIds, schedules } : { sessionIds, schedules, nextAt };
  }

  #tell(): void {
    if (this.#arrived.length === 0) return;
    const arrived = this.#arrived;
    this.#arrived = [];
    for (const arrival of arrived) {
      for (const listener of this.#listeners) listener(arrival);
    }
  }
}

/** What is stored, and how it is found. */
class Rows {
  readonly sessions = new Map<string, Stored>();
  /** In the order they were created, for paging. */
  readonly created: Stored[] = [];
  readonly schedules = new Map<string, Schedule>();
  /** By the id of their parent, which may not be here. */
  readonly #children = new Map<string, Stored[]>();

  add(session: Session): Stored {
    const stored: Stored = {
      session,
      claim: NO_CLAIM,
      answered: false,
      position: this.created.length,
      records: [],
      entries: [],
      pending: [],
      seen: undefined,
      holds: undefined,
      dueAt: Infinity,
      queuedFor: Infinity,
      queueIndex: -1,
    };
    this.sessions.set(session.sessionId, stored);
    this.created.push(stored);
    const parent = session.parent?.sessionId;
    if (parent === undefined) return stored;
    const siblings = this.#children.get(parent);
    if (siblings === undefined) this.#children.set(parent, [stored]);
    else siblings.push(stored);
    return stored;
  }

  find(sessionId: string): Stored {
    const stored = this.sessions.get(sessionId);
    if (stored === undefined) {
      throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
    }
    return stored;
  }

  childrenOf(sessionId: string): readonly Stored[] {
    return this.#children.get(sessionId) ?? [];
  }

  /** A walk over everything: budgets are raised by people. */
  exhaustedBy(payer: string): string[] {
    const paused = this.created.filter(
      ({ session }) => session.status === "paused" && session.exhausted?.payer === payer,
    );
    return paused.map(({ session }) => session.sessionId);
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
  /** By task (M4). */
  holds: Map<number, Amount> | undefined;
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

function childRow({ session }: Stored): ChildRow {
  invariant(session.parent !== undefined, `session ${session.sessionId} has no parent and is a child`);
  return { sessionId: session.sessionId, status: session.status, onEnd: session.parent.onEnd };
}

function setHold(stored: Stored, task: number, amount: Amount | undefined): void {
  if (amount === undefined) stored.holds?.delete(task);
  else (stored.holds ??= new Map()).set(task, amount);
}

function holdsOf({ holds }: Stored): Hold[] {
  if (holds === undefined) return [];
  return [...holds].map(([task, amount]) => ({ task, amount })).sort((a, b) => a.task - b.task);
}

/** ST33. */
function statesOf({ session: { checkpointSeq }, records }: Stored): JsonText[] {
  const last = checkpointSeq === undefined ? undefined : records[checkpointSeq];
  if (last?.type !== "checkpoint" || last.base === undefined) return [];
  const before = records.slice(last.base, checkpointSeq);
  return before.filter(({ type }) => type === "checkpoint").map(({ payload }) => payload ?? "null");
}

function byNextAt(a: Schedule, b: Schedule): number {
  return a.nextAt - b.nextAt || (a.scheduleId < b.scheduleId ? -1 : 1);
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

class MemoryReader implements StorageReader {
  readonly #rows: Rows;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  async sessions(query: Parameters<StorageReader["sessions"]>[0]): Promise<readonly Session[]> {
    const { limit, before, status, parent } = query;
    const all = parent === undefined ? this.#rows.created : this.#rows.childrenOf(parent);
    const below = before === undefined ? Infinity : this.#rows.find(before).position;
    const page: Session[] = [];
    const end = parent === undefined ? Math.min(below, all.length) : all.length;
    for (let i = end - 1; i >= 0 && page.length < limit; i--) {
      const { session, position } = all[i]!;
      if (position < below && (status === undefined || session.status === status)) page.push(session);
    }
    return page;
  }

  async session(sessionId: string): Promise<Session | undefined> {
    return this.#rows.sessions.get(sessionId)?.session;
  }

  async journal(sessionId: string, fromSeq: number, limit: number): Promise<readonly JournalRecord[]> {
    return this.#rows.sessions.get(sessionId)?.records.slice(fromSeq, fromSeq + limit) ?? [];
  }

  async entries(sessionId: string, from: number, limit: number): Promise<readonly Entry[]> {
    return this.#rows.sessions.get(sessionId)?.entries.slice(from, from + limit) ?? [];
  }

  async pendingSignals(sessionId: string): Promise<readonly StoredSignal[]> {
    return this.#rows.sessions.get(sessionId)?.pending.slice() ?? [];
  }

  async schedules(): Promise<readonly Schedule[]> {
    return [...this.#rows.schedules.values()].sort(byNextAt);
  }
}
