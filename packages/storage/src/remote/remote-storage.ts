// RemoteStorage: the storage port over a coordinator's StorageService.
//
//   - Every request is answered or rejected. A request whose answer was lost rejects as unavailable: it may
//     or may not have been done. Sending it again is safe (the port says why).
//   - A group goes in as few requests as fit. Each is a transaction of its own: every change is still whole
//     or not there, in order.
//   - A change that is larger than the coordinator takes is invalid, and leaves its neighbours as they are
//     (ST4).
//   remote-storage-4. With `patience` a read waits for a coordinator that is away, such as one that is just
//       started again. Other requests do not wait: what sends them decides.
//
// Fields of bytes in the contract hold the port's JSON.

import { clearTimeout, setTimeout } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";
import { StorageService } from "@holdfast/proto";
import type { Client } from "@connectrpc/connect";
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
  SessionSnapshot,
  StorageReader,
  ThreadRenewal,
} from "@holdfast/core";
import { HoldfastError, isEnded, MIB } from "@holdfast/core";
import { setNodeTimer } from "../node-timers.ts";
import { ArrivalStream } from "./arrival-stream.ts";
import { CoordinatorConnection, type ConnectionOptions } from "./coordinator-connection.ts";
import type { ThreadCoordinator } from "./renew-in-thread.ts";

/** Well below a coordinator's limit for a request (32 MiB), as a single change may be large. */
const REQUEST_BYTES = 4 * MIB;
const REQUEST_CHANGES = 10_000;
const LIMIT_MAX = 100_000;
/**
 * How long `close` waits for open calls, so that a coordinator that does not answer does not delay it for
 * long.
 */
const CLOSE_MS = 2_000;

/** How often a coordinator that is away is asked again (remote-storage-4). */
const READ_AGAIN_MS = 200;

/** How a read waits for a coordinator that is away. */
export interface ReadPatience {
  readonly waitMs: number;
  /** Called once, when the first read begins to wait. Must not throw. */
  readonly onWait: () => void;
}

/** Options of `openRemoteStorage`. */
export interface RemoteStorageOptions extends ConnectionOptions {
  /** Without it a read rejects at once. */
  readonly patience?: ReadPatience;
}

/**
 * The storage of a coordinator. Nothing is sent before the first call; it keeps its process alive until it
 * is closed.
 */
export function openRemoteStorage({ patience, ...options }: RemoteStorageOptions): AgentStorage {
  return new RemoteStorage(new CoordinatorConnection(options), patience);
}

export class RemoteStorage implements AgentStorage {
  readonly name = "remote";
  readonly durable = true;
  readonly reader: StorageReader;
  readonly #connection: CoordinatorConnection;
  readonly #client: Client<typeof StorageService>;
  readonly #stream: ArrivalStream;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #held = new Map<string, number>();
  readonly #patience: ReadPatience | undefined;
  #isClosing = false;
  #isWaitSaid = false;

  constructor(connection: CoordinatorConnection, patience?: ReadPatience) {
    this.#connection = connection;
    this.#patience = patience;
    this.#client = connection.client(StorageService);
    this.#stream = new ArrivalStream({
      openMs: connection.timeoutMs,
      open: (signal, onReceived) => this.#openStream(signal, onReceived),
      held: () => this.#held.keys(),
      setTimer: setNodeTimer,
    });
    this.reader = {
      sessions: async (query) =>
        (await this.#read("sessions", { ...query, limit: finite(query.limit) })) ?? [],
      counts: async (query) => (await this.#read("counts", { ...query, limit: finite(query.limit) })) ?? {},
      session: (sessionId) => this.#read("session", { sessionId }),
      journal: async (sessionId, fromSeq, limit) =>
        (await this.#read("journal", { sessionId, fromSeq, limit: finite(limit) })) ?? [],
      entries: async (sessionId, from, limit) =>
        (await this.#read("entries", { sessionId, from, limit: finite(limit) })) ?? [],
      pendingSignals: async (sessionId) => (await this.#read("pendingSignals", { sessionId })) ?? [],
      seenSignals: async (sessionId) =>
        (await this.#read("seenSignals", { sessionId })) ?? { ids: [], dedupKeys: [] },
      schedules: async () => (await this.#read("schedules", {})) ?? [],
      document: (collection, id) => this.#read("document", { collection, id }),
      documents: async (query) =>
        (await this.#read("documents", { ...query, limit: finite(query.limit) })) ?? [],
      audit: async (query) => (await this.#read("audit", { ...query, limit: finite(query.limit) })) ?? [],
    };
  }

  /**
   * The coordinator's time. Runtimes that drive sessions over this storage use it instead of their machine's
   * clock.
   */
  now(): number {
    return this.#connection.time.now();
  }

  /** Sessions that are claimed, as far as is known here. */
  get held(): ReadonlyMap<string, number> {
    return this.#held;
  }

  /** Record a claim that another part of this process made or was given. */
  hold(sessionId: string, token: number): void {
    this.#held.set(sessionId, token);
  }

  async commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    // A released claim is not held here any more, even if storage never receives the release.
    for (const change of changes) if (change.type === "release_claim") this.#release(change);
    const results: ChangeResult[] = [];
    for (const part of parts(changes.map(encode))) results.push(...(await this.#commitPart(part, now)));
    changes.forEach((change, i) => this.#noteHeld(change, results[i]));
    return results;
  }

  async claim({
    sessionId,
    owner,
    now,
    leaseMs,
    unlessHeld,
  }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const lease = leaseMs === Infinity ? {} : { leaseMs: BigInt(leaseMs) };
    const held = unlessHeld === undefined ? {} : { unlessHeld };
    const request = { sessionId, owner, now: BigInt(now), ...lease, ...held };
    const { result } = await this.#ask(() => this.#client.claim(request));
    const claim = decode<ClaimResult>(result);
    if (claim.status === "claimed") this.#held.set(sessionId, claim.token);
    return claim;
  }

  async renew({
    owner,
    sessionIds = [...this.#held.keys()],
    now,
    leaseMs,
  }: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    const request = { owner, now: BigInt(now), leaseMs: BigInt(leaseMs), sessionIds: [...sessionIds] };
    const { time } = this.#connection;
    const { sessions } = await this.#ask(() => time.asking(() => this.#client.renew(request)));
    return { sessions };
  }

  renewal(): ThreadRenewal {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const data: ThreadCoordinator = this.#connection.forThread;
    return { module: new URL(`./renew-in-thread.${extension}`, import.meta.url).href, data };
  }

  async heldClaims({
    now,
    limit,
    ...filter
  }: Parameters<AgentStorage["heldClaims"]>[0]): Promise<readonly HeldClaim[]> {
    const request = { ...filter, now: BigInt(now), limit: Math.min(limit, LIMIT_MAX) };
    const { claims } = await this.#ask(() => this.#client.heldClaims(request));
    return claims.map((bytes) => decode<HeldClaim>(bytes));
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const { snapshot } = await this.#ask(() => this.#client.load({ sessionId }));
    return snapshot === undefined ? undefined : decode<SessionSnapshot>(snapshot);
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    const { arrivals } = await this.#ask(() => this.#client.arrivals({ sessionId, after: BigInt(after) }));
    return this.received(sessionId, decode<Arrivals>(arrivals));
  }

  /** Take note of a session's arrivals, however they became known here. */
  received(sessionId: string, arrivals: Arrivals): Arrivals {
    if (isEnded(arrivals.session.status)) this.#held.delete(sessionId);
    return arrivals;
  }

  async conversation(sessionId: string, leaf: number): Promise<readonly Entry[]> {
    const { entries } = await this.#ask(() => this.#client.conversation({ sessionId, leaf: BigInt(leaf) }));
    return entries.map((bytes) => decode<Entry>(bytes));
  }

  async due({ now, limit, agents }: Parameters<AgentStorage["due"]>[0]): Promise<Due> {
    const names = agents === undefined ? {} : { agents: { names: [...agents] } };
    const request = { now: BigInt(now), limit: Math.min(limit, LIMIT_MAX), ...names };
    const { due } = await this.#ask(() => this.#client.due(request));
    return decode<Due>(due);
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    return this.#stream.subscribe(listener);
  }

  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    await this.#stream.close();
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, CLOSE_MS);
    await Promise.race([Promise.allSettled(this.#underWay), late.promise]);
    clearTimeout(timer);
    this.#connection.close();
  }

  /** arrival-stream-1: a listener receives the arrivals of every call after its subscription. */
  async #ask<T>(call: () => Promise<T>): Promise<T> {
    const asked = this.#connection.ask(async () => {
      await this.#stream.ready;
      return call();
    });
    this.#underWay.add(asked);
    try {
      return await asked;
    } finally {
      this.#underWay.delete(asked);
    }
  }

  async #commitPart(part: Uint8Array<ArrayBuffer>[], now: number): Promise<readonly ChangeResult[]> {
    try {
      const { results } = await this.#ask(() => this.#client.commit({ changes: part, now: BigInt(now) }));
      return results.map((bytes) => decode<ChangeResult>(bytes));
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "too_large") throw error;
      const half = Math.ceil(part.length / 2);
      // mutant: too-large-move-thrown
      if (part.length === 1) return [{ status: "invalid", reason: error.message, isTooLarge: true }];
      const first = await this.#commitPart(part.slice(0, half), now);
      return [...first, ...(await this.#commitPart(part.slice(half), now))];
    }
  }

  async #read<T>(query: string, params: object): Promise<T | undefined> {
    const { result } = await this.#patiently(() =>
      this.#ask(() => this.#client.read({ query, params: encode(params) })),
    );
    return result === undefined ? undefined : decode<T>(result);
  }

  /** remote-storage-4. */
  async #patiently<T>(read: () => Promise<T>): Promise<T> {
    const { time } = this.#connection;
    const until = time.monotonic() + (this.#patience?.waitMs ?? 0);
    for (;;) {
      try {
        return await read();
      } catch (error) {
        const isAway = HoldfastError.is(error) && error.code === "storage_unavailable";
        if (!isAway || this.#isClosing || time.monotonic() >= until) throw error;
      }
      if (!this.#isWaitSaid) this.#patience?.onWait();
      this.#isWaitSaid = true;
      await delay(READ_AGAIN_MS);
    }
  }

  async *#openStream(signal: AbortSignal, onReceived: () => void): AsyncIterable<Arrival> {
    const { time } = this.#connection;
    const askedAt = time.monotonic();
    for await (const message of this.#client.subscribe({}, { signal, timeoutMs: 0 })) {
      const { sessionId, awaited, now } = message;
      if (now !== undefined) time.received(Number(now), askedAt);
      onReceived();
      if (sessionId !== "") yield { sessionId, awaited }; // Messages without a session tell the time, as the first one does.
    }
  }

  #noteHeld(change: Change, result: ChangeResult | undefined): void {
    if (result === undefined) return;
    if (change.type === "create_session") {
      const isOver = isEnded(change.first?.session?.status ?? "working");
      if (result.status === "created" && result.token !== undefined && !isOver)
        this.#held.set(change.sessionId, result.token);
    } else if (change.type === "commit_batch") {
      const isEnd = result.status === "committed" && isEnded(change.session?.status ?? "working");
      if (isEnd || result.status === "fenced") this.#release(change);
    }
  }

  /** Forget a claim, unless the session is held under a newer one. */
  #release({ sessionId, token }: { readonly sessionId: string; readonly token: number }): void {
    if (this.#held.get(sessionId) === token) this.#held.delete(sessionId);
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** JSON writes an Infinity as null, which is what the port's JSON has for a lease without end. */
function encode(value: object): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify(value));
}

function decode<T>(bytes: Uint8Array): T {
  return JSON.parse(decoder.decode(bytes)) as T;
}

function* parts<Part extends Uint8Array>(changes: readonly Part[]): Iterable<Part[]> {
  let part: Part[] = [];
  let bytes = 0;
  for (const change of changes) {
    const isFull = part.length >= REQUEST_CHANGES || bytes + change.byteLength > REQUEST_BYTES;
    if (isFull && part.length > 0) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(change);
    bytes += change.byteLength;
  }
  if (part.length > 0) yield part;
}

/** JSON has no Infinity. */
function finite(limit: number): number {
  return Math.min(limit, Number.MAX_SAFE_INTEGER);
}
