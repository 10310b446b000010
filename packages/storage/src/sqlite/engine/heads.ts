// What the owner knows of a session without asking the file: its row, its claim, and which signals are pending.
//
// Because one process owns the file, this cannot go stale behind our back, and a step need not read what it is about to
// add to. It knows nothing of transactions: whoever changes heads in one that fails gives them to `forget`.
//
//   sqlite-heads-1. A head is derived from the file: forgetting one is always right, and costs a read.
//   sqlite-heads-2. When a claim ends is not in the file, and of one without an end nothing is, so heads with a claim
//       are kept, whatever the cache's size. What survives the owner of claims that end by themselves is in
//       `leases.ts`. The token of a claim that is over is kept as well, for the last `TOKENS_MAX` sessions; a holder
//       that asks after that is fenced, where before it would have been told what became of its batch. Of a session
//       that has ended only that is kept: it is seldom asked for again.
//   sqlite-heads-3. What a session was made with and no rule looks at (input, shared context) is kept if it is small:
//       who starts a session, is given it or waits for its end asks for it as a whole. A few small signals are, until
//       they are consumed: who is told that one arrived asks for it at once.

import { invariant, isEnded, type Session, type StoredSignal, type Wait } from "@holdfast/core";
import { ChurnMap, NO_CLAIM, PendingNames, releasedClaim, type Claim } from "@holdfast/core/internal";
import type { Reads } from "./reads.ts";
import type { SessionHolds } from "../tables/session-holds.ts";

const TOKENS_MAX = 65_536;

/**
 * How many pending signals of a session are kept whole, and how long their payloads, and its input, may be: 20 MB over all heads at
 * hand.
 */
const AT_HAND_MAX = 4;
const AT_HAND_CHARS = 1_024;

export interface Head {
  /** The session's number in this file. */
  readonly number: number;
  session: Session;
  /** Whether that is all of it (sqlite-heads-3). */
  readonly isWhole: boolean;
  claim: Claim;
  readonly pending: PendingSignals;
  /** Whether a pending signal is one it waits for. */
  answered: boolean;
  /** `inbox` as the session's row in the file has it; pending signals account for the rest. */
  writtenInbox: number;
  /** Whether any session names it as its parent; most have none, and it is not asked for them. */
  hasChildren: boolean;
  /** What is held for its tasks; few sessions are paid for. */
  holds: SessionHolds | undefined;
}

interface PendingSignal {
  readonly order: number;
  readonly name: string;
  /** Itself, if it is one of those kept whole (sqlite-heads-3). */
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

  /** Those after this place in the inbox, when all of them are kept whole; otherwise the file has them. */
  atHand(after: number): StoredSignal[] | undefined {
    if (this.#byId.size > AT_HAND_MAX) return undefined;
    const signals: StoredSignal[] = [];
    for (const { order, signal } of this.#byId.values()) {
      if (order <= after) continue;
      if (signal === undefined) return undefined;
      signals.push(signal);
    }
    return signals;
  }

  add(signalId: string, order: number, name: string, signal?: StoredSignal): void {
    const isKept = this.#byId.size < AT_HAND_MAX && (signal?.payload?.length ?? 0) <= AT_HAND_CHARS;
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

  /** Whether one of them is what these waits stand for. */
  answers(waits: readonly Wait[]): boolean {
    return this.#names.answers(waits);
  }
}

export class Heads {
  /** Called before the file is asked for a session: what of this transaction is not written yet is written by it. */
  beforeRead: () => void = () => undefined;
  readonly #reads: Reads;
  readonly #claimed = new ChurnMap<string, Head>();
  /** Unclaimed ones, the least recently used first. */
  readonly #recent = new ChurnMap<string, Head>();
  readonly #recentMax: number;
  /** Claims that are held or have losses, of sessions that were forgotten, or not read yet. */
  readonly #forgotten = new Map<string, Claim>();
  /** The last tokens of sessions that are not at hand, the oldest first: their holders may still ask (ST3). */
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

  /** Whether somebody holds a claim of it, without reading. */
  isClaimed(sessionId: string): boolean {
    return this.#claimed.has(sessionId) || this.#forgotten.get(sessionId)?.owner !== undefined;
  }

  /** The head if it is at hand, without reading. */
  peek(sessionId: string): Head | undefined {
    return this.#claimed.get(sessionId) ?? this.#recent.get(sessionId);
  }

  /** The head if all of the session is at hand, without reading. */
  whole(sessionId: string): Head | undefined {
    const head = this.peek(sessionId);
    return head?.isWhole === true ? head : undefined;
  }

  /** Keep a head where its claim says (sqlite-heads-2). To be called after every change of the claim, and for new ones. */
  place(head: Head): void {
    const { sessionId, status } = head.session;
    const [from, to] =
      isClaimed(head.claim) && !isEnded(status)
        ? [this.#recent, this.#claimed]
        : [this.#claimed, this.#recent];
    from.delete(sessionId);
    to.set(sessionId, head);
    shed(this.#recent, this.#recentMax, (oldest) => this.letGo(oldest));
  }

  /** Drop a head that nobody holds, but for what is still needed of its claim (sqlite-heads-2). */
  letGo({ session, claim }: Head): void {
    const left = isEnded(session.status) ? { ...NO_CLAIM, token: claim.token } : releasedClaim(claim);
    this.forget(session.sessionId, left);
  }

  /** Drop what is known of a session, but not its claim (sqlite-heads-2), which is given as it stands. Reads nothing. */
  forget(sessionId: string, claim: Claim): void {
    this.#claimed.delete(sessionId);
    this.#recent.delete(sessionId);
    if (isClaimed(claim) || claim.losses > 0) this.#forgotten.set(sessionId, claim);
    else if (claim.token !== NO_CLAIM.token) this.#keepToken(sessionId, claim.token);
  }

  /** Change a claim that is held, reading nothing. Answers the head, if it is at hand. */
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

  /** It is no session any more. */
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

/** Drop the oldest of a map once it has an eighth too many: dropping one at a time, each would be looked for past all before it. */
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
  const isWhole = session.shared === undefined && (session.input?.length ?? 0) <= AT_HAND_CHARS;
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
