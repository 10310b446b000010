// Shared parts of tests of the runtime: a clock that a test moves, waits without sleeping, and storages with
// one property changed.

/** For tests of packages that may not know the runtime. */
export { MemoryStorage, systemClock } from "@holdfast/runtime";
export { failingCalls } from "./failing-calls.ts";

import { setImmediate } from "node:timers";
import {
  type AgentStorage,
  type AgentTracer,
  type Clock,
  HoldfastError,
  type JournalRecord,
  type Random,
  type StorageReader,
  storageWith,
  type TraceEvent,
} from "@holdfast/core";

/** Time that stands still until `advance`. Timers fire in the order of their times, each at its own moment. */
export class TestClock implements Clock {
  #now: number;
  #monotonic = 0;
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimer(callback: () => void, ms: number): () => void {
    const timer = { at: this.#monotonic + Math.max(0, ms), callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** How many timers are armed: none when everything is closed. */
  get armed(): number {
    return this.#timers.length;
  }

  /** Move on, firing what falls due; between two timers everything gets to run. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    for (;;) {
      await turns(20);
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.#move(next.at - this.#monotonic);
      next.callback();
    }
    this.#move(end - this.#monotonic);
    await turns(20);
  }

  /** The wall clock jumps; monotonic time does not. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Time passes in which nothing of the process runs: what falls due meanwhile fires late, at the next `advance`. */
  stall(ms: number): void {
    this.#move(ms);
  }

  #move(ms: number): void {
    if (ms <= 0) return;
    this.#monotonic += ms;
    this.#now += ms;
  }
}

/** Timers of the globals, which a test may fake. Our sources import real ones. */
export const fakeableTimers: Pick<Clock, "setTimer"> = {
  setTimer(callback, ms) {
    const timer = globalThis.setTimeout(callback, ms);
    return () => globalThis.clearTimeout(timer);
  },
};

/** Let the event loop turn. */
export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Wait until something is so, by turns of the event loop and not by time. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  maxTurns = 20_000,
): Promise<void> {
  for (let i = 0; i < maxTurns; i++) {
    if (await isSo()) return;
    await turns(1);
  }
  throw new Error(`waited ${maxTurns} turns in vain: ${what}`);
}

/** Accepts that the session has ended, for a request that repeats the request of an earlier incarnation. */
export async function unlessEnded(asked: Promise<unknown>): Promise<void> {
  await asked.catch((error: unknown) => {
    if (!HoldfastError.is(error) || error.code !== "session_ended") throw error;
  });
}

/** A gate that tasks wait at until a test opens it. */
export function gate<T = void>(): {
  readonly opened: Promise<T>;
  readonly open: (value: T) => void;
  readonly fail: (error: Error) => void;
} {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  return { opened: promise, open: resolve, fail: reject };
}

/** Random numbers that are the same in every run. */
export function countingRandom(start = 1): Random {
  let next = start;
  return {
    u32() {
      next = (Math.imul(next, 1_664_525) + 1_013_904_223) >>> 0;
      return next;
    },
  };
}

export function recordingTracer(): AgentTracer & { readonly events: TraceEvent[] } {
  const events: TraceEvent[] = [];
  return { events, trace: (event) => void events.push(event) };
}

/** All of a session's journal. */
export async function journalOf(storage: AgentStorage, sessionId: string): Promise<readonly JournalRecord[]> {
  return storage.reader.journal(sessionId, 0, 1_000_000);
}

/** Release the claim that a process which is gone had of a session in memory, if it had one. */
export async function releaseClaim(storage: AgentStorage, sessionId: string): Promise<void> {
  const releases = Array.from({ length: 20 }, (_, i) => {
    return { type: "release_claim", sessionId, token: i + 1 } as const;
  });
  await storage.commit(releases, 0);
}

export { storageWith };

/** A reader with some of its methods replaced. */
export function readerWith(reader: StorageReader, changes: Partial<StorageReader>): StorageReader {
  return {
    sessions: (query) => reader.sessions(query),
    counts: (query) => reader.counts(query),
    session: (sessionId) => reader.session(sessionId),
    journal: (sessionId, fromSeq, limit) => reader.journal(sessionId, fromSeq, limit),
    entries: (sessionId, from, limit) => reader.entries(sessionId, from, limit),
    pendingSignals: (sessionId) => reader.pendingSignals(sessionId),
    seenSignals: (sessionId) => reader.seenSignals(sessionId),
    schedules: () => reader.schedules(),
    document: (collection, id) => reader.document(collection, id),
    documents: (query) => reader.documents(query),
    audit: (query) => reader.audit(query),
    ...changes,
  };
}

export interface MortalStorage {
  readonly storage: AgentStorage;
  /** From now on nothing is answered and nothing is applied: what the process still wants is its own affair. */
  die(): void;
  /** Die once so many commits of session batches were applied; the last is applied and not answered. */
  dieAfter(batches: number): void;
  readonly dead: boolean;
  /** Session batches applied. */
  readonly batches: number;
}

/** A storage as a process sees it that can die at any commit, over one that survives it. */
export function mortal(storage: AgentStorage): MortalStorage {
  let limit = Infinity;
  let batches = 0;
  let dead = false;
  const never = (): Promise<never> => new Promise(() => {});
  return {
    storage: storageWith(storage, {
      async commit(group, now) {
        if (dead) return never();
        const results = await storage.commit(group, now);
        batches += group.filter(
          (change) =>
            change.type === "commit_batch" ||
            (change.type === "create_session" && change.first !== undefined),
        ).length;
        if (batches >= limit) dead = true;
        return dead ? never() : results;
      },
      load: (sessionId) => (dead ? never() : storage.load(sessionId)),
      arrivals: (sessionId, after) => (dead ? never() : storage.arrivals(sessionId, after)),
    }),
    die() {
      dead = true;
    },
    dieAfter(count) {
      limit = count;
    },
    get dead() {
      return dead;
    },
    get batches() {
      return batches;
    },
  };
}
