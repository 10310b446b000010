// `Waiters`: promises of how sessions end in this process. Each settles once, when its session has ended or
// nothing more happens to it here.
//
//   - A waiter is registered before its session is read, so an end in between is not missed.
//   - The driver of a session that is driven here reports its end. Another process may end any other session,
//     and a storage with `follow` gives notice of that.
//
// It knows no drivers: `LiveSessions` passes on their departures.

import {
  resumesAt,
  toHoldfastError,
  type AgentStorage,
  type HoldfastError,
  type Session,
} from "@holdfast/core";
import { sessionNotFound } from "../session/session-errors.ts";
import { leftAs, type Settled } from "../session/session-outcome.ts";

export interface WaitersHost {
  readonly storage: Pick<AgentStorage, "follow" | "reader">;
  /** Whether a session is driven here, or about to be. */
  isHere(sessionId: string): boolean;
  isClosed(): boolean;
  /** Why it was abandoned here last. */
  whyAbandoned(sessionId: string): HoldfastError | undefined;
  /** Its end or pause was read: `Waiters.settle` follows. */
  found(sessionId: string, settled: Settled): void;
  /** A session is paused until this time, and then resumes without a person. */
  resumes(at: number): void;
  /** It could not be read. Must not throw. */
  failed(sessionId: string, error: HoldfastError): void;
}

interface Waiter extends PromiseWithResolvers<Settled> {
  leave: (() => void) | undefined;
}

export class Waiters {
  readonly #host: WaitersHost;
  readonly #waiters = new Map<string, Waiter>();

  constructor(host: WaitersHost) {
    this.#host = host;
  }

  /** Whether storage gives notice of the commits of other processes. */
  get areNotified(): boolean {
    return this.#host.storage.follow !== undefined;
  }

  has(sessionId: string): boolean {
    return this.#waiters.has(sessionId);
  }

  /** How it ends here, or that nothing more happens to it here. @throws NotFoundError */
  async wait(sessionId: string): Promise<Settled> {
    const known = this.#waiters.get(sessionId);
    if (known !== undefined) return known.promise;
    const waiter: Waiter = { ...Promise.withResolvers<Settled>(), leave: undefined };
    // Before the session is read, so that an end in between is not missed.
    this.#waiters.set(sessionId, waiter);
    const { isHere, isClosed, storage } = this.#host;
    if (isHere(sessionId) && !isClosed()) return waiter.promise;
    this.follow(sessionId);
    try {
      const session = await storage.reader.session(sessionId);
      if (session === undefined) throw sessionNotFound(sessionId);
      const isAtWork = session.status === "working" || session.status === "submitted";
      const left = leftAs(sessionId, session);
      this.#expect(session);
      if (left !== undefined && !isHere(sessionId)) this.#host.found(sessionId, left);
      else if (isClosed() || (isAtWork && !isHere(sessionId)))
        this.settle(sessionId, this.#released(sessionId));
    } catch (error) {
      this.#take(sessionId)?.reject(error);
    }
    return waiter.promise;
  }

  /** Read a session, and notify its waiters when nothing more happens to it here. @returns its row. */
  async look(sessionId: string): Promise<Session | undefined> {
    const { storage, isHere, found } = this.#host;
    const session = await storage.reader.session(sessionId);
    const left = isHere(sessionId) ? undefined : leftAs(sessionId, session);
    if (left !== undefined) found(sessionId, left);
    this.#expect(session);
    return session;
  }

  #expect(session: Session | undefined): void {
    const at = session && resumesAt(session);
    if (at !== undefined) this.#host.resumes(at);
  }

  /** It is not driven here any more. */
  follow(sessionId: string): void {
    const waiter = this.#waiters.get(sessionId);
    if (waiter === undefined) return;
    const { storage, failed } = this.#host;
    waiter.leave ??= storage.follow?.(sessionId, (isActive) => {
      if (isActive) return;
      this.look(sessionId).catch((error: unknown) => failed(sessionId, toHoldfastError(error)));
    });
  }

  settle(sessionId: string, settled: Settled): void {
    this.#take(sessionId)?.resolve(settled);
  }

  /** Nothing more happens here. */
  close(): void {
    for (const sessionId of this.#waiters.keys()) this.settle(sessionId, this.#released(sessionId));
  }

  /** Nothing more can happen to any session, for this reason. */
  release(error: HoldfastError): void {
    for (const sessionId of this.#waiters.keys()) this.settle(sessionId, { status: "released", error });
  }

  /** As `close`, but without notifying the waiters. */
  vanish(): void {
    for (const sessionId of this.#waiters.keys()) this.#take(sessionId);
  }

  #take(sessionId: string): Waiter | undefined {
    const waiter = this.#waiters.get(sessionId);
    this.#waiters.delete(sessionId);
    waiter?.leave?.();
    return waiter;
  }

  #released(sessionId: string): Settled {
    return { status: "released", error: this.#host.whyAbandoned(sessionId) };
  }
}
