// The storage of a runner: a coordinator's, with claims that are given instead of asked for.
//
//   claim given by a poll ─► announced as an arrival ─► the runtime asks for session, claim and snapshot: all three came along
//
//   dispatched-storage-1. A session is claimed here only if the coordinator gave it; whoever asks for another is told
//       that it is not to be had.
//   dispatched-storage-2. What arrives after a snapshot was taken makes it stale: then it is loaded anew, so that
//       nothing that arrived is missed.
//   dispatched-storage-3. A claim that nobody takes is given back.
//   dispatched-storage-4. So is one that is older than `CLAIM_AGE_MS` when it is to be used, because its way was long
//       or this process stood still: by then it may be another's.
//   dispatched-storage-5. What came with a notice answers the question that the notice leads to, and no later one: by
//       then it may be old.
//
// A segment costs one request, its commit. It knows no polls: it is told what they said.

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

const NOT_TO_BE_HAD: ClaimResult = { status: "busy", owner: "whom the coordinator gave it to" };
/** How long a runtime may take to ask for what it was told of: it is asked for at once, unless it cannot be run here. */
const TAKE_MS = 5_000;
/** One that is not acknowledged by then is taken back. */
export const CLAIM_AGE_MS = 2_000;

export interface GivenClaim {
  readonly sessionId: string;
  readonly token: number;
  readonly snapshot: SessionSnapshot;
  /** By the clock's monotonic time. */
  readonly madeAt: number;
}

/** A claim as the coordinator told it, told of now. */
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

/** What arrived for a session after a place of its inbox, as it came with the notice. */
export interface SentArrivals {
  readonly after: number;
  readonly arrivals: Arrivals;
}

/** What a notice brought along, if it did. */
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

  /** @param onChange told whenever sessions may have become fewer. Must not throw. */
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

  /** How many sessions are held, or about to be. */
  get held(): number {
    const given = [...this.#given.keys()].filter((sessionId) => !this.#remote.held.has(sessionId));
    return this.#remote.held.size + given.length;
  }

  /** The coordinator gave this one to us. */
  give(claim: GivenClaim): void {
    const { sessionId } = claim;
    this.#given.get(sessionId)?.cancelExpiry();
    const cancelExpiry = this.#clock.setTimer(() => this.#giveBack(claim), TAKE_MS);
    this.#given.set(sessionId, { ...claim, isClaimed: false, isStale: false, cancelExpiry });
    this.#tell({ sessionId, awaited: true });
  }

  /** Something arrived for a session that is held here. @param sent what it is, where that is known. */
  arrived(arrival: Arrival, sent?: SentArrivals): void {
    const { sessionId } = arrival;
    const given = this.#given.get(sessionId);
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
      if (released.length > 0) this.#onChange(); // They are not held any more, whether or not anybody has heard that.
      throw error;
    }
    this.#onChange();
    for (const { sessionId, token } of released) {
      // It was given anew while it was still driven under an older claim, which is over now.
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

  /** What is due is the coordinator's affair. */
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
    // What storage does not hear runs out by its lease.
    this.commit([{ type: "release_claim", sessionId, token }], this.#clock.now()).catch(() => {});
  }

  /** One that was claimed and is let go of before anybody loaded it: it is parked instead of driven. */
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

/** Whether what was sent has everything after a place, and something. */
function isEnough(sent: SentArrivals | undefined, after: number): sent is SentArrivals {
  return sent !== undefined && sent.after <= after && sent.arrivals.inbox > after;
}

function sentAfter(arrivals: Arrivals, after: number): Arrivals {
  return { ...arrivals, signals: arrivals.signals.filter(({ order }) => order > after) };
}
