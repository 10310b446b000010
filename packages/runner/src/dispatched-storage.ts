// `DispatchedStorage` is the storage of a runner: a coordinator's storage whose arrivals come with the
// answers to polls.
//
//   dispatched-storage-1. The coordinator alone decides which sessions run here. A session that is not given
//       is reported as busy, and none is due.
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
  StorageReader,
  ThreadRenewal,
} from "@holdfast/core";
import type { ArrivalNotice } from "@holdfast/proto";
import type { RemoteStorage } from "@holdfast/storage/remote";

/** A session's arrivals after a place of its inbox, as the notice brought them. */
export interface SentArrivals {
  readonly after: number;
  readonly arrivals: Arrivals;
}

/** The arrivals that a notice brought, if any. */
export function sentWith({ arrivals, after }: ArrivalNotice): SentArrivals | undefined {
  if (arrivals === undefined || after === undefined) return undefined;
  return { after: Number(after), arrivals: JSON.parse(UTF8.decode(arrivals)) as Arrivals };
}

const UTF8 = new TextDecoder();

export class DispatchedStorage implements AgentStorage {
  readonly name = "coordinator";
  readonly durable = true;
  readonly reader: StorageReader;
  readonly #remote: RemoteStorage;
  readonly #onChange: () => void;
  readonly #onCommitted: (changes: readonly Change[], results: readonly ChangeResult[]) => void;
  /** dispatched-storage-5. */
  readonly #sent = new Map<string, SentArrivals>();
  readonly #listeners = new Set<(arrival: Arrival) => void>();

  /**
   * @param onChange called whenever the number of held sessions may have fallen. Must not throw.
   * @param onCommitted called with each group of changes and its results. Must not throw.
   */
  constructor(
    remote: RemoteStorage,
    onChange: () => void,
    onCommitted: (changes: readonly Change[], results: readonly ChangeResult[]) => void = () => {},
  ) {
    this.#remote = remote;
    this.#onChange = onChange;
    this.#onCommitted = onCommitted;
    this.reader = remote.reader;
  }

  /** The number of sessions that are held. */
  get held(): number {
    return this.#remote.held.size;
  }

  /** The token of the claim by which a session is held. */
  tokenOf(sessionId: string): number | undefined {
    return this.#remote.held.get(sessionId);
  }

  /** Records a claim that the coordinator gave, until the claim is released or its session ends. */
  hold(sessionId: string, token: number): void {
    this.#remote.hold(sessionId, token);
  }

  /**
   * Announces an arrival for a session that is held here. @param sent its content, when the notice brought
   * it.
   */
  arrived(arrival: Arrival, sent?: SentArrivals): void {
    if (sent !== undefined) this.#sent.set(arrival.sessionId, sent);
    for (const listener of this.#listeners) listener(arrival);
    this.#sent.delete(arrival.sessionId); // dispatched-storage-5.
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    try {
      const results = await this.#remote.commit(changes, now);
      this.#onCommitted(changes, results);
      return results;
    } finally {
      this.#onChange(); // Released claims are not held any more, even if the coordinator did not hear of it.
    }
  }

  /** dispatched-storage-1. */
  async claim(): Promise<ClaimResult> {
    return { status: "busy", owner: "another runner" };
  }

  load(sessionId: string): ReturnType<AgentStorage["load"]> {
    return this.#remote.load(sessionId);
  }

  renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#remote.renew(renewal);
  }

  renewal(): ThreadRenewal {
    return this.#remote.renewal();
  }

  heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): ReturnType<AgentStorage["heldClaims"]> {
    return this.#remote.heldClaims(query);
  }

  async arrivals(sessionId: string, after: number): ReturnType<AgentStorage["arrivals"]> {
    const sent = this.#sent.get(sessionId);
    this.#sent.delete(sessionId);
    const arrivals = isEnough(sent, after)
      ? this.#remote.received(sessionId, sentAfter(sent.arrivals, after))
      : await this.#remote.arrivals(sessionId, after);
    this.#onChange();
    return arrivals;
  }

  conversation(sessionId: string, leaf: number): ReturnType<AgentStorage["conversation"]> {
    return this.#remote.conversation(sessionId, leaf);
  }

  /** dispatched-storage-1. */
  async due(): ReturnType<AgentStorage["due"]> {
    return { sessionIds: [], schedules: [] };
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    const notify = (arrival: Arrival): void => listener(arrival);
    this.#listeners.add(notify);
    return () => void this.#listeners.delete(notify);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#remote.close();
  }
}

/** Whether the sent arrivals include every arrival after a place, and at least one. */
function isEnough(sent: SentArrivals | undefined, after: number): sent is SentArrivals {
  return sent !== undefined && sent.after <= after && sent.arrivals.inbox > after;
}

function sentAfter(arrivals: Arrivals, after: number): Arrivals {
  return { ...arrivals, signals: arrivals.signals.filter(({ order }) => order > after) };
}
