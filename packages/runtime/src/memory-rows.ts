// The rows of sessions in memory, and how they are found. It decides nothing, and knows no clock.
//
//   M1. Rows, records, entries and signals are never changed in place, so they are handed out without copying.
//   M3. Pending signals are a list in the order of arrival. `seen` knows the `order` of each, 0 once it is consumed, so a
//       backlog of many thousand signals makes neither the next one nor taking one out slower.
//   M4. What few sessions have (children, holds) is made when the first of it comes.

import {
  invariant,
  NotFoundError,
  type Amount,
  type CommitBatch,
  type Entry,
  type Hold,
  type JournalRecord,
  type JsonText,
  type Schedule,
  type SeenSignals,
  type Session,
  type StoredSignal,
} from "@holdfast/core";
import {
  dedupMark,
  isAnsweredBy,
  isSameRecords,
  NO_CLAIM,
  type BatchLookups,
  type ChildRow,
  type Claim,
} from "@holdfast/core/internal";
import type { Queued } from "./wake-queue.ts";

/** What is stored, and how it is found. */
export class Rows {
  readonly sessions = new Map<string, Stored>();
  /** In the order they were created, for paging. */
  readonly created: Stored[] = [];
  #nextPosition = 0;
  readonly schedules = new Map<string, Schedule>();
  /** By the id of their parent, which may not be here. */
  readonly #children = new Map<string, Stored[]>();

  add(session: Session): Stored {
    const stored: Stored = {
      session,
      claim: NO_CLAIM,
      answered: false,
      position: this.#nextPosition++,
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

  remove(stored: Stored): void {
    const { sessionId, parent } = stored.session;
    this.sessions.delete(sessionId);
    cut(this.created, stored);
    const siblings = parent === undefined ? undefined : this.#children.get(parent.sessionId);
    if (parent === undefined || siblings === undefined) return;
    cut(siblings, stored);
    if (siblings.length === 0) this.#children.delete(parent.sessionId);
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

/** Where those begin that were created at this position or later. */
export function firstFrom(all: readonly Stored[], position: number): number {
  return lowest(all.length, (i) => all[i]!.position >= position);
}

function cut(all: Stored[], { position }: Stored): void {
  all.splice(firstFrom(all, position), 1);
}

/** One session. `session` and what stands in the lists is never changed, only replaced (M1). */
export interface Stored extends Queued {
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
  /** As the index knows it (M2 of `memory-storage.ts`). */
  dueAt: number;
}

export interface Seen {
  /** By signal id (M3). */
  readonly orders: Map<string, number>;
  /** `dedupMark` of each key. */
  readonly dedupMarks: Set<string>;
}

export function hasSeen(seen: Seen | undefined, signalId: string, mark: string | undefined): boolean {
  if (seen === undefined) return false;
  return seen.orders.has(signalId) || (mark !== undefined && seen.dedupMarks.has(mark));
}

export function addSeen(stored: Stored, { ids, dedupKeys }: SeenSignals): void {
  const seen = (stored.seen ??= { orders: new Map(), dedupMarks: new Set() });
  for (const id of ids) if (!seen.orders.has(id)) seen.orders.set(id, CONSUMED);
  for (const [name, dedupKey] of dedupKeys) seen.dedupMarks.add(dedupMark(name, dedupKey));
}

export class Lookups implements BatchLookups {
  readonly #stored: Stored;

  constructor(stored: Stored) {
    this.#stored = stored;
  }

  holdsRecords({ firstSeq, records }: CommitBatch): boolean {
    const held = this.#stored.records.slice(firstSeq, firstSeq + records.length);
    return isSameRecords(held, records);
  }

  isPending(signalId: string): boolean {
    return (this.#stored.seen?.orders.get(signalId) ?? CONSUMED) !== CONSUMED;
  }
}

const CONSUMED = 0;

export function append(stored: Stored, { records, entries }: CommitBatch, now: number): void {
  for (const record of records) stored.records.push(record);
  for (const entry of entries) stored.entries.push({ ...entry, createdAt: now });
}

export function consume({ pending, seen }: Stored, signalId: string): void {
  const order = seen?.orders.get(signalId);
  invariant(order !== undefined, `consuming signal ${signalId}, which was never stored`);
  seen?.orders.set(signalId, CONSUMED);
  pending.splice(firstAbove(pending, order) - 1, 1);
}

export function isAnswered({ session: { waits }, pending }: Stored): boolean {
  return waits.length > 0 && pending.some(({ name }) => isAnsweredBy(waits, name));
}

export function childRow({ session }: Stored): ChildRow {
  const { sessionId, status, parent, placement } = session;
  invariant(parent !== undefined, `session ${sessionId} has no parent and is a child`);
  return { sessionId, status, onEnd: parent.onEnd, owner: placement?.owner };
}

export function setHold(stored: Stored, task: number, amount: Amount | undefined): void {
  if (amount === undefined) stored.holds?.delete(task);
  else (stored.holds ??= new Map()).set(task, amount);
}

export function holdsOf({ holds }: Stored): Hold[] {
  if (holds === undefined) return [];
  return [...holds].map(([task, amount]) => ({ task, amount })).sort((a, b) => a.task - b.task);
}

/** ST33. */
export function statesOf({ session: { checkpointSeq }, records }: Stored): JsonText[] {
  const last = checkpointSeq === undefined ? undefined : records[checkpointSeq];
  if (last?.type !== "checkpoint" || last.base === undefined) return [];
  const before = records.slice(last.base, checkpointSeq);
  return before.filter(({ type }) => type === "checkpoint").map(({ payload }) => payload ?? "null");
}

export function byNextAt(a: Schedule, b: Schedule): number {
  return a.nextAt - b.nextAt || (a.scheduleId < b.scheduleId ? -1 : 1);
}

/** How many pending signals do not come after this one. */
export function firstAbove(pending: readonly StoredSignal[], order: number): number {
  return lowest(pending.length, (i) => pending[i]!.order > order);
}

/** Entries stand in the order of their `id`. */
export function findEntry(entries: readonly Entry[], id: number): Entry | undefined {
  const entry = entries[lowest(entries.length, (i) => entries[i]!.id >= id)];
  return entry?.id === id ? entry : undefined;
}

/** The first index for which it holds, as it does for all after that; `length` when for none. */
function lowest(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
