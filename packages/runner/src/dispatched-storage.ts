// `DispatchedStorage` is the storage of a runner: a coordinator's storage whose claims are given instead of
// asked for.
//
//   claim given by a poll ─► announced as an arrival ─► the runtime asks for session, claim and snapshot: all three came along
//
//   dispatched-storage-1. A session can be claimed only if the coordinator gave it. Any other session is
//       reported as busy.
//   dispatched-storage-2. An arrival makes an older snapshot stale. The session is then loaded from the
//       coordinator, so that no arrival is missed.
//   dispatched-storage-3. A given claim that the runtime does not take is released.
//   dispatched-storage-4. A given claim that is older than `CLAIM_AGE_MS` when the runtime asks for it is
//       released. Its answer was delayed or this process was suspended, and another runner may hold the
//       session by now.
//   dispatched-storage-5. Arrivals that were sent with a notice answer only the request that this notice
//       causes. Later, they may be outdated.
//
// A segment costs one request, its commit. This storage knows no polls; the runner passes it their answers.

import type {
  AgentStorage,
  Arrival,
  Arrivals,
  Change,
  ChangeResult,
  ClaimResult,
  Clock,
  ReleaseClaim,
  SessionSnapshot,
  StorageReader,
} from "@holdfast/core";
import type { ArrivalNotice, Claim } from "@holdfast/proto";
import type { CoordinatorTime, RemoteStorage } from "@holdfast/storage/remote";

const NOT_TO_BE_HAD: ClaimResult = { status: "busy", owner: "another runner" };
/**
 * How long a runtime may take to claim a given session. It claims at once, unless it cannot run the session.
 */
const TAKE_MS = 5_000;
/** The coordinator takes back a claim that is not acknowledged within this time. */
export const CLAIM_AGE_MS = 2_000;

export interface GivenClaim {
  readonly sessionId: string;
  readonly token: number;
  readonly snapshot: SessionSnapshot;
  /** When the claim was made, by the clock's monotonic time. */
  readonly madeAt: number;
}

/** The claim of an answer, with its time converted to this process's monotonic clock. */
export function givenBy(
  { sessionId, token, snapshot, claimedAt }: Claim,
  time: Pick<CoordinatorTime, "monotonic" | "since">,
): GivenClaim {
  return {
    sessionId,
    token: Number(token),
    snapshot: JSON.parse(new TextDecoder().decode(snapshot)) as SessionSnapshot,
    madeAt: time.monotonic() - time.since(Number(claimedAt)),
  };
}

/** A session's arrivals after a place of its inbox, as the notice brought them. */
export interface SentArrivals {
  readonly after: number;
  readonly arrivals: Arrivals;
}

/** The arrivals that a notice brought, if any. */
export function sentWith({ arrivals, after }: ArrivalNotice): SentArrivals | undefined {
  if (arrivals === undefined || after === undefined) return undefined;
  return { after: Number(after), arrivals: JSON.parse(new TextDecoder().decode(arrivals)) as Arrivals };
}

interface Given extends GivenClaim {
  isClaimed: boolean;
  isStale: boolean;
  cancelExpiry: () => void;
}

export class DispatchedStorage implements AgentStorage {
  readonly name = "coordinator";
  readonly durable = true;
  readonly reader: StorageReader;
  readonly #remote: RemoteStorage;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #given = new Map<string, Given>();
  /** dispatched-storage-5. */
  readonly #sent = new Map<string, SentArrivals>();
  readonly #listeners = new Set<(arrival: Arrival) => void>();

  /** @param onChange called whenever the number of held sessions may have fallen. Must not throw. */
  constructor(remote: RemoteStorage, clock: Clock, onChange: () => void) {
    this.#remote = remote;
    this.#clock = clock;
    this.#onChange = onChange;
    const { reader } = remote;
    this.reader = {
      session: async (sessionId) =>
        this.#freshOf(sessionId)?.snapshot.session ?? (await reader.session(sessionId)),
      sessions: (query) => reader.sessions(query),
      journal: (sessionId, fromSeq, limit) => reader.journal(sessionId, fromSeq, limit),
      entries: (sessionId, from, limit) => reader.entries(sessionId, from, limit),
      pendingSignals: (sessionId) => reader.pendingSignals(sessionId),
      seenSignals: (sessionId) => reader.seenSignals(sessionId),
      schedules: () => reader.schedules(),
      document: (collection, id) => reader.document(collection, id),
      documents: (query) => reader.documents(query),
      audit: (query) => reader.audit(query),
    };
  }

  /** The number of sessions that are held or about to be claimed. */
  get held(): number {
    const given = [...this.#given.keys()].filter((sessionId) => !this.#remote.held.has(sessionId));
    return this.#remote.held.size + given.length;
  }

  /** Accepts a claim that the coordinator gave. */
  give(claim: GivenClaim): void {
    const { sessionId } = claim;
    this.#given.get(sessionId)?.cancelExpiry();
    const cancelExpiry = this.#clock.setTimer(() => this.#giveBack(claim), TAKE_MS);
    this.#given.set(sessionId, { ...claim, isClaimed: false, isStale: false, cancelExpiry });
    this.#tell({ sessionId, awaited: true });
  }

  /**
   * Announces an arrival for a session that is held here. @param sent its content, when the notice brought
   * it.
   */
  arrived(arrival: Arrival, sent?: SentArrivals): void {
    const { sessionId } = arrival;
    const given = this.#given.get(sessionId);
    // mutant: stale-snapshot-used
    if (given !== undefined) given.isStale = true; // dispatched-storage-2.
    if (sent !== undefined) this.#sent.set(sessionId, sent);
    this.#tell(arrival);
    this.#sent.delete(sessionId); // dispatched-storage-5.
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const released = changes.filter((change) => change.type === "release_claim");
    for (const change of released) this.#dropReleased(change);
    let results: readonly ChangeResult[];
    try {
      results = await this.#remote.commit(changes, now);
    } catch (error) {
      if (released.length > 0) this.#onChange(); // The claims are released here even if the coordinator did not hear of it.
      throw error;
    }
    this.#onChange();
    for (const { sessionId, token } of released) {
      // The session was given again while it was driven under an older claim, which is released now.
      const given = this.#given.get(sessionId);
      if (given === undefined || given.token === token) continue;
      queueMicrotask(() => this.#tell({ sessionId, awaited: true }));
    }
    return results;
  }

  /** dispatched-storage-1. */
  async claim({ sessionId }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const given = this.#given.get(sessionId);
    if (given === undefined || given.isClaimed) return NOT_TO_BE_HAD;
    // mutant: old-claim-used
    if (this.#clock.monotonic() - given.madeAt > CLAIM_AGE_MS) {
      this.#giveBack(given); // dispatched-storage-4.
      return NOT_TO_BE_HAD;
    }
    given.isClaimed = true;
    given.cancelExpiry();
    this.#remote.hold(sessionId, given.token);
    return { status: "claimed", token: given.token, losses: 0 };
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const given = this.#freshOf(sessionId);
    this.#given.delete(sessionId);
    return given?.snapshot ?? this.#remote.load(sessionId);
  }

  renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#remote.renew(renewal);
  }

  heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): ReturnType<AgentStorage["heldClaims"]> {
    return this.#remote.heldClaims(query);
  }

  async arrivals(sessionId: string, after: number): ReturnType<AgentStorage["arrivals"]> {
    const sent = this.#sent.get(sessionId);
    this.#sent.delete(sessionId);
    const arrivals = isEnough(sent, after)
      ? this.#remote.heard(sessionId, sentAfter(sent.arrivals, after))
      : await this.#remote.arrivals(sessionId, after);
    this.#onChange();
    return arrivals;
  }

  conversation(sessionId: string, leaf: number): ReturnType<AgentStorage["conversation"]> {
    return this.#remote.conversation(sessionId, leaf);
  }

  /** The coordinator alone looks for due sessions and schedules. */
  async due(): ReturnType<AgentStorage["due"]> {
    return { sessionIds: [], schedules: [] };
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    const told = (arrival: Arrival): void => listener(arrival);
    this.#listeners.add(told);
    return () => void this.#listeners.delete(told);
  }

  async close(): Promise<void> {
    for (const given of this.#given.values()) given.cancelExpiry();
    this.#listeners.clear();
    await this.#remote.close();
  }

  /** dispatched-storage-3. */
  #giveBack({ sessionId, token }: GivenClaim): void {
    if (this.#given.get(sessionId)?.token !== token) return;
    this.#given.get(sessionId)?.cancelExpiry();
    this.#given.delete(sessionId);
    // If the release does not reach storage, the claim ends with its lease.
    this.commit([{ type: "release_claim", sessionId, token }], this.#clock.now()).catch(() => {});
  }

  /**
   * Forgets a claim that is released before its session was loaded. The runtime does so when it parks a
   * session instead of driving it.
   */
  #dropReleased({ sessionId, token }: ReleaseClaim): void {
    const given = this.#given.get(sessionId);
    if (given?.isClaimed === true && given.token === token) this.#given.delete(sessionId);
  }

  #freshOf(sessionId: string): Given | undefined {
    const given = this.#given.get(sessionId);
    return given?.isStale === true ? undefined : given;
  }

  #tell(arrival: Arrival): void {
    for (const listener of this.#listeners) listener(arrival);
  }
}

/** Whether the sent arrivals include every arrival after a place, and at least one. */
function isEnough(sent: SentArrivals | undefined, after: number): sent is SentArrivals {
  return sent !== undefined && sent.after <= after && sent.arrivals.inbox > after;
}

function sentAfter(arrivals: Arrivals, after: number): Arrivals {
  return { ...arrivals, signals: arrivals.signals.filter(({ order }) => order > after) };
}
