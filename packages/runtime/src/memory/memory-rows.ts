// `Rows`: the rows of sessions in memory, and how they are found. The rows know no clock.
//
//   - Rows, records, entries and signals are never changed in place, so they are handed out without copying.
//   - A backlog of many thousand signals makes neither the next signal nor taking one out slower
//     (`memory-pending.ts`).
//   memory-rows-6. Every session is in a list of its agent and a list of its status. It is also in lists of
//       its owner and its parent, if it has them. A page by one filter reads as many sessions as it answers;
//       several filters walk the shortest of their lists.
//   - Collections that few sessions need (children, holds) are made with their first item.

import {
  type Amount,
  type ChildRow,
  type Claim,
  dedupMark,
  type Entry,
  invariant,
  type JournalRecord,
  type JsonText,
  NO_CLAIM,
  NotFoundError,
  type Queued,
  type SeenSignals,
  type Session,
  SESSION_STATUSES,
  type SessionCounts,
  type SessionStatus,
  type StorageReader,
} from "@holdfast/core";
import { PendingList } from "./memory-pending.ts";
import { ListsByKey, lowest, PositionList } from "./position-list.ts";

type SessionFilters = Omit<Parameters<StorageReader["sessions"]>[0], "limit" | "before" | "oldestFirst">;

/** The stored rows of sessions, and the lists to find them. */
export class Rows {
  readonly sessions = new Map<string, Stored>();
  /**
   * All sessions in the order of their creation, for paging. The lists below are for filters (memory-rows-6).
   */
  readonly created = new PositionList<Stored>();
  readonly #byAgent = new ListsByKey<Stored>();
  readonly #byOwner = new ListsByKey<Stored>();
  readonly #byStatus = new ListsByKey<Stored>();
  /** The sessions by the id of their parent, which may not be here. */
  readonly #byParent = new ListsByKey<Stored>();
  #nextPosition = 0;

  add(session: Session): Stored {
    const position = this.#nextPosition++;
    const stored: Stored = {
      session,
      listedStatus: session.status,
      claim: NO_CLAIM,
      leaseMs: 0,
      answered: false,
      position,
      queueOrder: position, // Sessions of one deadline are cancelled in the order of their creation.
      records: [],
      entries: [],
      pending: new PendingList(),
      seen: undefined,
      holds: undefined,
      dueAt: Infinity,
      queuedFor: Infinity,
      queueIndex: -1,
    };
    this.sessions.set(session.sessionId, stored);
    this.created.add(stored);
    for (const [lists, key] of this.#fixedLists(session)) lists.add(key, stored);
    this.#byStatus.add(session.status, stored);
    return stored;
  }

  remove(stored: Stored): void {
    const { session, listedStatus } = stored;
    this.sessions.delete(session.sessionId);
    this.created.remove(stored);
    for (const [lists, key] of this.#fixedLists(session)) lists.remove(key, stored);
    this.#byStatus.remove(listedStatus, stored);
  }

  /** memory-rows-6. To be called after every change of a session's status. */
  listStatus(stored: Stored): void {
    const { status } = stored.session;
    if (status === stored.listedStatus) return;
    this.#byStatus.remove(stored.listedStatus, stored);
    this.#byStatus.add(status, stored);
    stored.listedStatus = status;
  }

  /** The shortest of the lists that hold all sessions which a query asks for. */
  shortestFor({ agent, owner, parent, status }: SessionFilters): PositionList<Stored> {
    let shortest = this.created;
    const consider = (list: PositionList<Stored>) => {
      if (list.size < shortest.size) shortest = list;
    };
    if (agent !== undefined) consider(this.#byAgent.get(agent));
    if (owner !== undefined) consider(this.#byOwner.get(owner));
    if (parent !== undefined) consider(this.#byParent.get(parent));
    if (status !== undefined) consider(this.#byStatus.get(status));
    return shortest;
  }

  /** The number of sessions of each status, at most `limit` of each. */
  counts(limit: number): SessionCounts {
    const sizes = SESSION_STATUSES.map((status) => [status, this.#byStatus.get(status).size] as const);
    return Object.fromEntries(
      sizes
        .filter(([, size]) => size > 0 && limit > 0)
        .map(([status, size]) => [status, Math.min(size, limit)]),
    );
  }

  /** The lists by members that never change. */
  *#fixedLists({ agent, placement, parent }: Session): Generator<readonly [ListsByKey<Stored>, string]> {
    yield [this.#byAgent, agent.name];
    if (placement?.owner !== undefined) yield [this.#byOwner, placement.owner];
    if (parent !== undefined) yield [this.#byParent, parent.sessionId];
  }

  find(sessionId: string): Stored {
    const stored = this.sessions.get(sessionId);
    if (stored === undefined) {
      throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
    }
    return stored;
  }

  childrenOf(sessionId: string): readonly Stored[] {
    return [...this.#byParent.get(sessionId)];
  }

  /** Walks over all paused sessions, which is seldom: only people raise budgets. */
  exhaustedBy(payer: string): string[] {
    const paused = [...this.#byStatus.get("paused" satisfies SessionStatus)];
    return paused
      .filter(({ session }) => session.exhausted?.payer === payer)
      .map(({ session }) => session.sessionId);
  }
}

/** One session. `session` and the items of the lists are never changed, only replaced. */
export interface Stored extends Queued {
  session: Session;
  /** Its status as the lists know it (memory-rows-6). */
  listedStatus: SessionStatus;
  claim: Claim;
  /** The length of its claim's lease, as the last claim or renewal gave it. */
  leaseMs: number;
  /** Whether a pending signal is one it waits for. */
  answered: boolean;
  /** The place in the order of creation. */
  readonly position: number;
  readonly records: JournalRecord[];
  readonly entries: Entry[];
  readonly pending: PendingList;
  /** The marks of all its signals; most sessions never get one. */
  seen: Seen | undefined;
  /** The holds by task. */
  holds: Map<number, Amount> | undefined;
  /** As the index knows it (memory-index-1). */
  dueAt: number;
}

export interface Seen {
  /** The ids of signals, consumed or not. */
  readonly ids: Set<string>;
  /** `dedupMark` of each key. */
  readonly dedupMarks: Set<string>;
}

export function hasSeen({ seen }: Stored, { ids, dedupKeys }: SeenSignals): boolean {
  if (seen === undefined) return false;
  return (
    ids.some((id) => seen.ids.has(id)) ||
    dedupKeys.some(([name, dedupKey]) => seen.dedupMarks.has(dedupMark(name, dedupKey)))
  );
}

export function addSeen(stored: Stored, { ids, dedupKeys }: SeenSignals): void {
  const seen = (stored.seen ??= { ids: new Set(), dedupMarks: new Set() });
  for (const id of ids) seen.ids.add(id);
  for (const [name, dedupKey] of dedupKeys) seen.dedupMarks.add(dedupMark(name, dedupKey));
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

/** ST33. */
export function statesOf({ session: { checkpointSeq }, records }: Stored): JsonText[] {
  const last = checkpointSeq === undefined ? undefined : records[checkpointSeq];
  if (last?.type !== "checkpoint" || last.base === undefined) return [];
  const before = records.slice(last.base, checkpointSeq);
  return before.filter(({ type }) => type === "checkpoint").map(({ payload }) => payload ?? "null");
}

/** Entries are in the order of their `id`. */
export function findEntry(entries: readonly Entry[], id: number): Entry | undefined {
  const entry = entries[lowest(entries.length, (i) => entries[i]!.id >= id)];
  return entry?.id === id ? entry : undefined;
}
