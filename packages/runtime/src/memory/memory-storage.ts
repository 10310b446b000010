// Sessions in the memory of this process: the storage of ephemeral mode.
//
// It decides nothing: what a change does is `storage-rules.ts`, shared with every other adapter. It knows how to find
// things quickly, and relies on one fact: no method awaits, so every call is one transaction by being one slice.
//
//   memory-storage-2. `ready` holds the sessions that can be due without a clock, by agent, `timeline` those that a
//       clock makes due. Both are kept by `#index` alone, from `dueAt` and `lookAt`; a parked session without a time is
//       in neither and costs nothing.
//   memory-storage-5. Claims whose lease ends are kept by owner as well, so that renewing costs what that owner holds;
//       others cost nothing.

import { hash } from "node:crypto";
import {
  CorruptRecordError,
  isEnded,
  overdueAt,
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
  type HeldClaim,
  type ImportSession,
  type ReleaseClaim,
  type SendSignal,
  type Session,
  type SessionSnapshot,
  type StorageReader,
} from "@holdfast/core";
import {
  applyBatch,
  applyChange,
  applyOverdue,
  createSession,
  decideRelease,
  decideSignal,
  dedupMark,
  dueAt,
  findImportProblem,
  firstBatch,
  Followers,
  isAnsweredBy,
  lookAt,
  NO_CLAIM,
  goesOn,
  newsOf,
  nextClaim,
  provenClaim,
  refuseBatch,
  refuseClaim,
  refuseCreation,
  releasedClaim,
  remainingFor,
  pageOfClaims,
  renewedClaim,
  type Applied,
  type CascadeDoor,
  type Claim,
  WakeQueue,
} from "@holdfast/core/internal";
import { Ledger } from "./memory-ledger.ts";
import { MemoryReader } from "./memory-reader.ts";
import {
  addSeen,
  append,
  childRow,
  findEntry,
  hasSeen,
  holdsOf,
  Lookups,
  Rows,
  setHold,
  statesOf,
  type Stored,
} from "./memory-rows.ts";

export class MemoryStorage implements AgentStorage {
  readonly name = "memory";
  readonly durable = false;
  readonly reader: StorageReader;

  readonly #rows = new Rows();
  readonly #ledger = new Ledger();
  /** Over all sessions: one that is made again after its deletion must not honour a token of the first. */
  #lastToken = NO_CLAIM.token;
  /** memory-storage-5. */
  readonly #leased = new Map<string, Set<Stored>>();
  readonly #ready = new Map<string, Set<Stored>>();
  readonly #timeline = new WakeQueue<Stored>();
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  readonly #followers = new Followers();
  /** Whose followers hear of it when the call is over. */
  #changed = new Set<Stored>();
  readonly #door: CascadeDoor;
  /** What listeners hear of when the call is over. */
  #arrived: Arrival[] = [];

  constructor() {
    this.reader = new MemoryReader(this.#rows, this.#ledger);
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
    unlessHeld,
  }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
    const refusal = refuseClaim(stored.session, stored.claim, { owner, now, unlessHeld });
    if (refusal !== undefined) return refusal;
    const claim = nextClaim(stored.claim, { owner, now, leaseMs }, ++this.#lastToken);
    this.#setClaim(stored, claim, leaseMs);
    return { status: "claimed", token: claim.token, losses: claim.losses };
  }

  async renew({
    owner,
    sessionIds,
    now,
    leaseMs,
  }: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    const wanted = sessionIds && new Set(sessionIds);
    let sessions = 0;
    for (const stored of this.#leased.get(owner) ?? []) {
      const { sessionId, status } = stored.session;
      if (isEnded(status) || wanted?.has(sessionId) === false) continue;
      stored.claim = renewedClaim(stored.claim, now + leaseMs);
      stored.leaseMs = leaseMs;
      this.#index(stored);
      sessions++;
    }
    return { sessions };
  }

  async heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    const one = query.sessionId === undefined ? undefined : this.#rows.sessions.get(query.sessionId);
    const held = one === undefined ? [...this.#leased.values()].flatMap((all) => [...all]) : [one];
    return pageOfClaims(held, query);
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return undefined;
    const { session, records, pending } = stored;
    const remaining = remainingFor(this.#door, session);
    return {
      session,
      records: records.slice(session.checkpointSeq ?? 0),
      signals: pending.after(0),
      states: statesOf(stored),
      holds: holdsOf(stored),
      ...(remaining === undefined ? {} : { remaining }),
    };
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    const { session, pending } = this.#rows.find(sessionId);
    const signals = pending.after(after);
    const remaining = remainingFor(this.#door, session);
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

  follow(sessionId: string, onNotice: (goesOn: boolean) => void): () => void {
    return this.#followers.follow(sessionId, onNotice);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
  }

  #openDoor(): CascadeDoor {
    const rows = this.#rows;
    return {
      session: (sessionId) => rows.sessions.get(sessionId)?.session,
      claimOf: (sessionId) => rows.find(sessionId).claim,
      children: (sessionId) => rows.childrenOf(sessionId).map(childRow),
      exhaustedBy: (payer) => rows.exhaustedBy(payer),
      holds: (sessionId) => holdsOf(rows.find(sessionId)),
      held: (sessionId, task) => rows.find(sessionId).holds?.get(task),
      schedule: (scheduleId) => rows.schedules.get(scheduleId),
      isPending: (sessionId, id) => rows.find(sessionId).pending.has(id),
      document: (collection, id) => this.#ledger.document(collection, id),
      lastAudit: () => this.#ledger.audit.at(-1),
      hash: (text) => hash("sha256", text, "base64url"),
      create: (change, now, forerunner) => this.#create(change, now, forerunner),
      import: (change) => this.#import(change),
      send: (change, now) => this.#sendSignal(change, now),
      commitBatch: (change, now) => this.#commitBatch(change, now),
      release: (change) => this.#release(change),
      replace: (session) => this.#replace(rows.find(session.sessionId), session),
      setAccount: (sessionId, account) => {
        const stored = rows.find(sessionId);
        stored.session = { ...stored.session, account };
        this.#noteChange(stored);
      },
      setHold: (sessionId, task, amount) => setHold(rows.find(sessionId), task, amount),
      putSchedule: (schedule) => {
        rows.schedules.put(schedule);
        return { status: "done", schedule };
      },
      addSeen: (sessionId, seen) => addSeen(rows.find(sessionId), seen),
      removeSchedule: (scheduleId) => rows.schedules.remove(scheduleId),
      remove: (sessionId) => this.#remove(rows.find(sessionId)),
      putDocument: (collection, document) => {
        this.#ledger.put(collection, document);
        return undefined;
      },
      removeDocument: (collection, id) => this.#ledger.remove(collection, id),
      appendAudit: (row) => void this.#ledger.audit.push(row),
      announce: (sessionId, awaited) => void this.#arrived.push({ sessionId, awaited }),
    };
  }

  #create(change: CreateSession, now: number, forerunner?: Session): Applied {
    const { sessionId, claimFor, parent } = change;
    if (this.#rows.sessions.has(sessionId)) return { result: { status: "exists" } };
    const refusal = refuseCreation(change, now, {
      asker: (id) => this.#rows.sessions.get(id),
      hasSeen: (id, signalId) => hasSeen(this.#rows.find(id).seen, signalId, undefined),
    });
    if (refusal !== undefined) return { result: refusal };
    const above = parent === undefined ? undefined : this.#rows.sessions.get(parent.sessionId)?.session;
    const before = createSession(change, now, above, forerunner);
    const stored = this.#rows.add(before);
    if (claimFor === undefined) this.#index(stored);
    else
      this.#setClaim(stored, nextClaim(NO_CLAIM, { ...claimFor, now }, ++this.#lastToken), claimFor.leaseMs);
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
    stored.claim = provenClaim(stored.claim, batch);
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
    for (const signalId of batch.consumed) stored.pending.remove(signalId);
    stored.session = session;
    if (waitsChanged || batch.consumed.length > 0)
      stored.answered = stored.pending.answers(stored.session.waits);
    this.#index(stored);
    return session;
  }

  #sendSignal(signal: SendSignal, now: number): ChangeResult {
    const { sessionId, signalId, name, payload, dedupKey } = signal;
    const stored = this.#rows.sessions.get(sessionId);
    if (stored === undefined) return { status: "not_found" };
    const mark = dedupKey === undefined ? undefined : dedupMark(name, dedupKey);
    const seen = hasSeen(stored.seen, signalId, mark);
    const decision = decideSignal(stored.session, signal, { seen, pending: stored.pending.size }, now);
    if (!("session" in decision)) return decision.result;
    const { order, awaited } = decision.result;
    stored.session = decision.session;
    stored.seen ??= { ids: new Set(), dedupMarks: new Set() };
    stored.seen.ids.add(signalId);
    if (mark !== undefined) stored.seen.dedupMarks.add(mark);
    stored.pending.add({ signalId, name, payload, order, sentAt: now });
    stored.answered ||= isAnsweredBy(stored.session.waits, name);
    this.#index(stored);
    this.#arrived.push({ sessionId, awaited });
    return decision.result;
  }

  #release(change: ReleaseClaim): ChangeResult {
    const stored = this.#rows.sessions.get(change.sessionId);
    if (stored === undefined) return { status: "not_found" };
    const status = decideRelease(stored.session, stored.claim, change);
    if (status === "released") this.#setClaim(stored, releasedClaim(stored.claim));
    return { status };
  }

  #setClaim(stored: Stored, claim: Claim, leaseMs = 0): void {
    this.#letGo(stored);
    stored.claim = claim;
    stored.leaseMs = leaseMs;
    if (claim.owner !== undefined && claim.until !== Infinity) {
      const held = this.#leased.get(claim.owner);
      if (held === undefined) this.#leased.set(claim.owner, new Set([stored]));
      else held.add(stored);
    }
    this.#index(stored);
  }

  /** memory-storage-5. */
  #letGo(stored: Stored): void {
    const { owner } = stored.claim;
    const held = owner === undefined ? undefined : this.#leased.get(owner);
    if (owner === undefined || held === undefined) return;
    held.delete(stored);
    if (held.size === 0) this.#leased.delete(owner);
  }

  /** It has ended, so it is neither ready nor on the timeline. */
  #remove(stored: Stored): void {
    this.#letGo(stored);
    this.#rows.remove(stored);
    this.#noteChange(stored);
  }

  #replace(stored: Stored, session: Session): void {
    if (isEnded(session.status)) return this.#end(stored, session);
    stored.session = session;
    stored.answered = stored.pending.answers(stored.session.waits);
    this.#index(stored);
  }

  /** Terminal is final: nothing will ask for its signals again. */
  #end(stored: Stored, session: Session): void {
    stored.session = session;
    stored.pending.clear();
    stored.seen = undefined;
    stored.answered = false;
    this.#index(stored);
  }

  /** memory-storage-2. After every change of row, claim or `answered`. */
  #index(stored: Stored): void {
    this.#noteChange(stored);
    this.#rows.listStatus(stored);
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

  #noteChange(stored: Stored): void {
    if (this.#followers.has(stored.session.sessionId)) this.#changed.add(stored);
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
    const { schedules, nextAt: firesAt } = this.#rows.schedules.due(now);
    nextAt = Math.min(nextAt, firesAt);
    return nextAt === Infinity ? { sessionIds, schedules } : { sessionIds, schedules, nextAt };
  }

  #tell(): void {
    if (this.#arrived.length > 0) {
      const arrived = this.#arrived;
      this.#arrived = [];
      for (const arrival of arrived) {
        for (const listener of this.#listeners) listener(arrival);
      }
    }
    if (this.#changed.size === 0) return;
    const changed = this.#changed;
    this.#changed = new Set();
    for (const { session } of changed) this.#followers.tell(session.sessionId, goesOn(session));
  }
}
