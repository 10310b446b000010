// Heads: the cached row, claim and pending signals of each session.
//
// Because one process owns the file, the cache cannot become stale, and a step need not read the rows that it
// adds to. Heads know nothing of transactions: after a failed one, its changed heads are passed to `forget`.
//
//   sqlite-heads-1. A head is derived from the file: forgetting a head is always right, and costs a read.
//   sqlite-heads-2. Heads with a claim are kept, whatever the cache's size. The file does not hold when such
//       a claim expires, and holds nothing of a claim without an expiry. `leases.ts` stores the part of
//       expiring claims that outlives the owner. The token of a past claim is kept as well, for the last
//       `TOKENS_MAX` sessions. After that its holder is fenced, instead of learning what became of its batch.
//       For a session that has ended only the token is kept, as such a session is seldom read again.
//   sqlite-heads-3. Content that no rule looks at (input, shared context) is kept if it is small. Callers
//       that start a session, claim it or wait for its end read the session whole. A few small signals are
//       kept until they are consumed, because a notified runtime reads them at once.

import {
  ChurnMap,
  type Claim,
  invariant,
  isEnded,
  NO_CLAIM,
  PendingNames,
  releasedClaim,
  type Session,
  type StoredSignal,
  type Wait,
} from "@holdfast/core";
import type { Reads } from "./reads.ts";
import type { SessionReservations } from "../tables/session-reservations.ts";

const TOKENS_MAX = 65_536;

/** How many pending signals of a session are kept whole. */
const KEPT_SIGNALS_MAX = 4;
/** How long a kept signal's payload, and a kept session's input, may be: 20 MB over all cached heads. */
const KEPT_CHARS_MAX = 1_024;

export interface Head {
  /** The session's number in this file. */
  readonly number: number;
  session: Session;
  /** Whether `session` has its content (sqlite-heads-3). */
  readonly isWhole: boolean;
  claim: Claim;
  readonly pending: PendingSignals;
  /** Whether the session waits for one of its pending signals. */
  answered: boolean;
  /** `inbox` as the session's row in the file has it; pending signals account for the rest. */
  writtenInbox: number;
  /** Whether the session has children. Most have none, and need no statement for them. */
  hasChildren: boolean;
  /** The holds of its tasks; few sessions have payers. */
  holds: SessionReservations | undefined;
}

interface PendingSignal {
  readonly order: number;
  readonly name: string;
  /** The signal, if it is one of those kept whole (sqlite-heads-3). */
  readonly signal: StoredSignal | undefined;
}

/** Never added to. */
const NO_SIGNALS = new Map<string, PendingSignal>();
const NO_NAMES = new PendingNames();

/** Which signals of a session are pending. A backlog of many thousand makes no single step slower. */
export class PendingSignals {
  /** Most sessions never have one: both maps are made when the first signal comes. */
  #byId: Map<string, PendingSignal> = NO_SIGNALS;
  #names = NO_NAMES;

  get size(): number {
    return this.#byId.size;
  }

  has(signalId: string): boolean {
    return this.#byId.has(signalId);
  }

  /**
   * The signals after this place in the inbox, if all of them are kept whole; otherwise the file has them.
   */
  keptAfter(after: number): StoredSignal[] | undefined {
    if (this.#byId.size > KEPT_SIGNALS_MAX) return undefined;
    const signals: StoredSignal[] = [];
    for (const { order, signal } of this.#byId.values()) {
      if (order <= after) continue;
      if (signal === undefined) return undefined;
      signals.push(signal);
    }
    return signals;
  }

  add(signalId: string, order: number, name: string, signal?: StoredSignal): void {
    const isKept = this.#byId.size < KEPT_SIGNALS_MAX && (signal?.payload?.length ?? 0) <= KEPT_CHARS_MAX;
    if (this.#byId === NO_SIGNALS) [this.#byId, this.#names] = [new Map(), new PendingNames()];
    this.#byId.set(signalId, { order, name, signal: isKept ? signal : undefined });
    this.#names.add(name);
  }

  /** Answers its order. */
  remove(signalId: string): number {
    const signal = this.#byId.get(signalId);
    invariant(signal !== undefined, `signal ${signalId} is not pending`);
    this.#byId.delete(signalId);
    this.#names.remove(signal.name);
    return signal.order;
  }

  clear(): void {
    [this.#byId, this.#names] = [NO_SIGNALS, NO_NAMES];
  }

  /** Whether one of the signals answers one of these waits. */
  answers(waits: readonly Wait[]): boolean {
    return this.#names.answers(waits);
  }
}

export class Heads {
  /**
   * Called before the file is asked for a session, so that unwritten changes of this transaction get written.
   */
  beforeRead: () => void = () => undefined;
  readonly #reads: Reads;
  readonly #claimed = new ChurnMap<string, Head>();
  /** Unclaimed ones, the least recently used first. */
  readonly #recent = new ChurnMap<string, Head>();
  readonly #recentMax: number;
  /** Claims that are held or have losses, of sessions that were forgotten, or not read yet. */
  readonly #forgotten = new Map<string, Claim>();
  /** The last tokens of sessions without a head, the oldest first: their holders may still ask (ST3). */
  readonly #tokens = new Map<string, number>();

  constructor(reads: Reads, recentMax: number) {
    this.#reads = reads;
    this.#recentMax = recentMax;
  }

  /** @throws CorruptRecordError when the session's rows are damaged. */
  get(sessionId: string): Head | undefined {
    const claimed = this.#claimed.get(sessionId);
    if (claimed !== undefined) return claimed;
    const head = this.#recent.get(sessionId) ?? this.#read(sessionId);
    if (head !== undefined) this.place(head);
    return head;
  }

  /** Whether a claim of the session is held, without reading. */
  isClaimed(sessionId: string): boolean {
    return this.#claimed.has(sessionId) || this.#forgotten.get(sessionId)?.owner !== undefined;
  }

  /** The cached head, without reading. */
  peek(sessionId: string): Head | undefined {
    return this.#claimed.get(sessionId) ?? this.#recent.get(sessionId);
  }

  /** The cached head, if the whole session is cached, without reading. */
  whole(sessionId: string): Head | undefined {
    const head = this.peek(sessionId);
    return head?.isWhole === true ? head : undefined;
  }

  /**
   * Keep a head where its claim says (sqlite-heads-2). To be called after every change of the claim, and
   * for new ones.
   */
  place(head: Head): void {
    const { sessionId, status } = head.session;
    const [from, to] =
      isClaimed(head.claim) && !isEnded(status)
        ? [this.#recent, this.#claimed]
        : [this.#claimed, this.#recent];
    from.delete(sessionId);
    to.set(sessionId, head);
    shed(this.#recent, this.#recentMax, (oldest) => this.evict(oldest));
  }

  /**
   * Drop the head of a session that nobody has claimed, except what is needed of its past claim
   * (sqlite-heads-2).
   */
  evict({ session, claim }: Head): void {
    const left = isEnded(session.status) ? { ...NO_CLAIM, token: claim.token } : releasedClaim(claim);
    this.forget(session.sessionId, left);
  }

  /** Drop a session's head, but keep its claim as given (sqlite-heads-2). Reads nothing. */
  forget(sessionId: string, claim: Claim): void {
    this.#claimed.delete(sessionId);
    this.#recent.delete(sessionId);
    if (isClaimed(claim) || claim.losses > 0) this.#forgotten.set(sessionId, claim);
    else if (claim.token !== NO_CLAIM.token) this.#keepToken(sessionId, claim.token);
  }

  /** Change a claim that is held, without reading. Answers the head, if it is cached. */
  amend(sessionId: string, change: (claim: Claim) => Claim): Head | undefined {
    const head = this.peek(sessionId);
    if (head !== undefined) {
      head.claim = change(head.claim);
      return head;
    }
    const claim = this.#forgotten.get(sessionId);
    if (claim !== undefined) this.#forgotten.set(sessionId, change(claim));
    return undefined;
  }

  /** The session was deleted. */
  remove(sessionId: string): void {
    for (const known of [this.#claimed, this.#recent, this.#forgotten, this.#tokens]) known.delete(sessionId);
  }

  #keepToken(sessionId: string, token: number): void {
    this.#tokens.delete(sessionId);
    this.#tokens.set(sessionId, token);
    shed(this.#tokens, TOKENS_MAX, (_, oldest) => this.#tokens.delete(oldest));
  }

  #takeClaim(sessionId: string): Claim {
    const claim = this.#forgotten.get(sessionId);
    this.#forgotten.delete(sessionId);
    const token = this.#tokens.get(sessionId);
    return claim ?? (token === undefined ? NO_CLAIM : { ...NO_CLAIM, token });
  }

  #read(sessionId: string): Head | undefined {
    this.beforeRead();
    const row = this.#reads.session(sessionId);
    if (row === undefined) return undefined;
    const head = newHead(row.number, row.session);
    head.writtenInbox = row.writtenInbox;
    head.hasChildren = row.hasChildren;
    if (row.session.payers.length > 0) head.holds = this.#reads.holdsOf(row);
    if (row.session.inbox > 0 && !isEnded(row.session.status)) {
      this.#reads.pending(row.number, (signalId, order, name) => head.pending.add(signalId, order, name));
    }
    head.answered = head.pending.answers(head.session.waits);
    head.claim = this.#takeClaim(sessionId);
    return head;
  }
}

/**
 * Drop the oldest of a map once it has an eighth too many. Dropping one at a time would walk past all deleted
 * keys each time.
 */
function shed<V>(
  map: Iterable<readonly [string, V]> & { readonly size: number },
  max: number,
  drop: (oldest: V, key: string) => void,
): void {
  if (map.size <= max + (max >> 3)) return;
  let surplus = map.size - max;
  for (const [key, oldest] of map) {
    drop(oldest, key);
    if (--surplus === 0) return;
  }
}

export function newHead(number: number, session: Session): Head {
  const isWhole = session.shared === undefined && (session.input?.length ?? 0) <= KEPT_CHARS_MAX;
  return {
    number,
    session: isWhole ? session : withoutContent(session),
    isWhole,
    claim: NO_CLAIM,
    pending: new PendingSignals(),
    answered: false,
    writtenInbox: 0,
    hasChildren: false,
    holds: undefined,
  };
}

/** sqlite-heads-3. */
function withoutContent(session: Session): Session {
  const { shared: _shared, ...kept } = session;
  return { ...kept, input: undefined };
}

export function isClaimed(claim: Claim): boolean {
  return claim.owner !== undefined;
}
