// SharedStorage: the storage of a process that found a database owned by another process.
//
//   - Its callers do not notice that the owner changes (`shared-line.ts`).
//   shared-storage-2. Arrivals may be missed while nobody owns the database. The listeners then get one for
//       each session that is held here, and for each that is due.

import type {
  AgentStorage,
  Arrival,
  Arrivals,
  Change,
  ChangeResult,
  ClaimResult,
  Due,
  Entry,
  HeldClaim,
  HoldfastError,
  SessionSnapshot,
  SharedDrafts,
  StorageReader,
} from "@holdfast/core";
import type { OwnerInfo } from "./file/ownership.ts";
import { SharedLine, type Line, type SharedLineOptions } from "./shared-line.ts";
import { makesClaim } from "./socket/unending-claims.ts";

const DUE_MAX = 1_000;

export class SharedStorage implements AgentStorage {
  readonly name = "sqlite";
  readonly durable = true;
  readonly path: string;
  readonly reader: StorageReader;
  readonly drafts: SharedDrafts = {
    show: (drafts) => this.#line.call((storage) => storage.drafts.show(drafts)),
    watch: (...asked) => this.#line.call((storage) => storage.drafts.watch(...asked)),
  };

  readonly #line: SharedLine;
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  #subscribedTo: Line["storage"] | undefined;
  #latestNow = 0;

  /** @internal */
  constructor(options: SharedLineOptions) {
    this.path = options.path;
    this.#line = new SharedLine(options);
    this.#line.onNext = (line) => void this.#catchUp(line);
    this.reader = {
      sessions: (query) => this.#line.call(({ reader }) => reader.sessions(query)),
      counts: (query) => this.#line.call(({ reader }) => reader.counts(query)),
      session: (sessionId) => this.#line.call(({ reader }) => reader.session(sessionId)),
      journal: (...asked) => this.#line.call(({ reader }) => reader.journal(...asked)),
      entries: (...asked) => this.#line.call(({ reader }) => reader.entries(...asked)),
      pendingSignals: (sessionId) => this.#line.call(({ reader }) => reader.pendingSignals(sessionId)),
      seenSignals: (sessionId) => this.#line.call(({ reader }) => reader.seenSignals(sessionId)),
      schedules: () => this.#line.call(({ reader }) => reader.schedules()),
      document: (...asked) => this.#line.call(({ reader }) => reader.document(...asked)),
      documents: (query) => this.#line.call(({ reader }) => reader.documents(query)),
      audit: (query) => this.#line.call(({ reader }) => reader.audit(query)),
    };
  }

  /** The process that owns the database, as last known. */
  get owner(): OwnerInfo {
    return this.#line.owner;
  }

  get lost(): Promise<HoldfastError> {
    return this.#line.lost;
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    this.#latestNow = Math.max(this.#latestNow, now);
    if (changes.some(makesClaim)) this.#line.beginHolding();
    const results = await this.#line.call((storage) => storage.commit(changes, now));
    this.#line.claims.answered(changes, results);
    return results;
  }

  async claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    this.#latestNow = Math.max(this.#latestNow, claim.now);
    if (claim.leaseMs === Infinity) this.#line.beginHolding();
    const result = await this.#line.call((storage) => storage.claim(claim));
    if (result.status === "claimed" && claim.leaseMs === Infinity)
      this.#line.claims.claimed(claim.sessionId, result.token);
    return result;
  }

  renew(renewal: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    return this.#line.call((storage) => storage.renew(renewal));
  }

  heldClaims(query: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    return this.#line.call((storage) => storage.heldClaims(query));
  }

  load(sessionId: string): Promise<SessionSnapshot | undefined> {
    return this.#line.call((storage) => storage.load(sessionId));
  }

  arrivals(sessionId: string, after: number): Promise<Arrivals> {
    return this.#line.call((storage) => storage.arrivals(sessionId, after));
  }

  conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    return this.#line.call((storage) => storage.conversation(sessionId, leaf));
  }

  due(query: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    this.#latestNow = Math.max(this.#latestNow, query.now);
    return this.#line.call((storage) => storage.due(query));
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    // Wrapped, so that a function subscribed twice is called twice and unsubscribed once.
    const notify = (arrival: Arrival): void => listener(arrival);
    this.#listeners.add(notify);
    this.#line.isListening = true;
    // If there is no line, its owner is asked for what was missed.
    this.#line.call(async (storage) => this.#subscribeTo(storage)).catch(() => {});
    return () => void this.#listeners.delete(notify);
  }

  close(): Promise<void> {
    this.#listeners.clear();
    return this.#line.close();
  }

  /** shared-storage-2. */
  async #catchUp({ storage }: Line): Promise<void> {
    if (!this.#line.isListening) return;
    this.#subscribeTo(storage);
    for (const { sessionId } of this.#line.claims.all()) this.#announce({ sessionId, awaited: false });
    try {
      const { sessionIds } = await storage.due({ now: this.#latestNow, limit: DUE_MAX });
      for (const sessionId of sessionIds) this.#announce({ sessionId, awaited: true });
    } catch {
      // The next owner is asked again.
    }
  }

  #subscribeTo(storage: Line["storage"]): void {
    if (this.#subscribedTo === storage) return;
    this.#subscribedTo = storage;
    storage.subscribe(this.#announce);
  }

  readonly #announce = (arrival: Arrival): void => {
    for (const listener of this.#listeners) listener(arrival);
  };
}
