// Heads: a cache of sessions' rows, claims and pending signals, which may be out of date.
//
//   - A head is of one version of its session. The transaction that writes a decision also checks the version
//     of each head behind it (`write-statement.ts`). A head that is out of date thus costs a second try,
//     never a wrong answer.
//   - Content that no rule looks at (input, shared context) is not kept, as it may be large.
//   - The head of a session that has ended is dropped, as such a session is seldom read again. A child's stays,
//     because the end of its parent looks at all children.
//   postgres-heads-3. While a transaction that changes or checks a head is under way, `flight` is set; nobody
//       else may use it.
//   postgres-heads-4. No two changes make the same version of a session, unless clocks are far apart. A
//       server that was restored, or lost its last commits in a failover, is thus not taken for having what a
//       cache has.

import {
  type Amount,
  ChurnMap,
  type Claim,
  isEnded,
  PendingNames,
  type Session,
  type Wait,
} from "@holdfast/core";

export interface Head {
  readonly sessionId: string;
  readonly lane: number;
  version: number;
  session: Session;
  claim: Claim;
  /**
   * The end of the claim as the row had it when it was read: claims are only decided by what was just read.
   */
  readonly until: number;
  /** Whether the session waits for one of its pending signals. */
  answered: boolean;
  readonly pending: Pending;
  /** Ids of the session's children, in the order of creation; `undefined` if they were not read. */
  childIds: string[] | undefined;
  /** The holds of its tasks; few sessions have payers. */
  readonly holds: Map<number, Amount>;
  /** Where its output is, when it is kept apart. */
  outputBlob: string | undefined;
  flight: Promise<unknown> | undefined;
}

/** The head that was read, unless its row is damaged or absent. */
export function asHead(found: Head | Error | undefined): Head | undefined {
  return found instanceof Error ? undefined : found;
}

/** Which signals of a session are pending. A backlog of many thousand makes no single step slower. */
export class Pending {
  readonly #byId = new Map<string, { readonly order: number; readonly name: string }>();
  readonly #names = new PendingNames();

  get size(): number {
    return this.#byId.size;
  }

  has(signalId: string): boolean {
    return this.#byId.has(signalId);
  }

  get orders(): number[] {
    return [...this.#byId.values()].map(({ order }) => order);
  }

  add(signalId: string, order: number, name: string): void {
    this.#byId.set(signalId, { order, name });
    this.#names.add(name);
  }

  remove(signalId: string): { readonly order: number; readonly name: string } | undefined {
    const signal = this.#byId.get(signalId);
    if (signal === undefined) return undefined;
    this.#byId.delete(signalId);
    this.#names.remove(signal.name);
    return signal;
  }

  get entries(): (readonly [signalId: string, order: number, name: string])[] {
    return [...this.#byId].map(([signalId, { order, name }]) => [signalId, order, name]);
  }

  /** Whether one of the signals answers one of these waits. */
  answers(waits: readonly Wait[]): boolean {
    return this.#names.answers(waits);
  }
}

export class Heads {
  /** Heads that were used since the last turnover. */
  #recent = new ChurnMap<string, Head>();
  /** All others. The next turnover drops them. */
  #older = new ChurnMap<string, Head>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(sessionId: string): Head | undefined {
    const recent = this.#recent.get(sessionId);
    if (recent !== undefined) return recent;
    const older = this.#older.get(sessionId);
    if (older !== undefined) this.#keep(older);
    return older;
  }

  /** Keep a head that was read or made, unless the cached head is newer or in use (postgres-heads-3). */
  put(head: Head): void {
    const known = this.get(head.sessionId);
    if (known !== undefined && (known.flight !== undefined || known.version > head.version)) return;
    this.#keep(head);
  }

  /** The head is that of the database again. */
  settled(head: Head): void {
    if (isEnded(head.session.status) && head.session.parent === undefined) this.forget(head);
  }

  /** It is not what the database has. */
  forget(head: Head): void {
    const { sessionId } = head;
    if ((this.#recent.get(sessionId) ?? this.#older.get(sessionId)) !== head) return;
    this.#recent.delete(sessionId);
    this.#older.delete(sessionId);
  }

  #keep(head: Head): void {
    this.#older.delete(head.sessionId);
    this.#recent.set(head.sessionId, head);
    if (this.#recent.size <= this.#max / 2) return;
    const dropped = this.#older;
    this.#older = this.#recent;
    this.#recent = new ChurnMap();
    for (const [sessionId, unused] of dropped)
      if (unused.flight !== undefined) this.#recent.set(sessionId, unused);
  }
}

/** A prime, so that stamps of whole milliseconds make all steps. */
const STEPS = 65_521;

/**
 * The version of a row after a change: the number of the process for its next change (`stamp`), and above the
 * version before. A version that the clocks have not reached grows by a step that depends on the stamp. Two
 * processes that go on from the same version, of which one change was lost, do not make the same one.
 */
export function nextVersion({ version }: Pick<Head, "version">, stamp: number): number {
  return version < stamp ? stamp : version + 1 + (stamp % STEPS);
}

export function withoutContent(session: Session): Session {
  if (session.shared === undefined)
    return session.input === undefined ? session : { ...session, input: undefined };
  const { shared: _shared, ...kept } = session;
  return { ...kept, input: undefined };
}
