// What changes in this process, told to who waits for it: long polls and streams.
//
//   V4. A notice is only a reason to look. Whoever waits looks anew after `LOOK_MS` without one, so that what another coordinator
//       of the same storage committed is seen as well.

import type { AgentStorage, Change, ChangeResult, Clock } from "@holdfast/core";

/** Heads of watched sessions are looked at so often when nothing is heard of them. */
const LOOK_MS = 250;

export class Notices {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something was committed to a session. */
  tell(sessionId: string): void {
    const waiting = this.#waiting.get(sessionId);
    this.#waiting.delete(sessionId);
    for (const wake of waiting ?? []) wake();
  }

  /** Until something is told of the session, it is time to look, or the caller has gone. */
  next(sessionId: string, signal: AbortSignal, atMostMs = LOOK_MS): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        signal.removeEventListener("abort", wake);
        this.#waiting.get(sessionId)?.delete(wake);
        resolve();
      };
      const cancel = this.#clock.setTimer(wake, Math.min(LOOK_MS, atMostMs));
      signal.addEventListener("abort", wake, { once: true });
      const waiting = this.#waiting.get(sessionId);
      if (waiting === undefined) this.#waiting.set(sessionId, new Set([wake]));
      else waiting.add(wake);
    });
  }
}

/** Told of what is asked of a storage. Must not throw. */
export interface StorageListener {
  committed(results: readonly ChangeResult[]): void;
  /** Somebody is about to claim or renew for so long. */
  heard(owner: string, leaseMs: number): void;
}

/** The storage, telling of what is committed through it. `subscribe` is how it tells of what follows for others. */
export function noticing(storage: AgentStorage, notices: Notices, listener: StorageListener): AgentStorage {
  storage.subscribe(({ sessionId }) => notices.tell(sessionId));
  return {
    name: storage.name,
    durable: storage.durable,
    async commit(changes, now) {
      for (const claim of changes.flatMap(claimsOf)) listener.heard(claim.owner, claim.leaseMs);
      const results = await storage.commit(changes, now);
      for (const change of changes) for (const sessionId of sessionsOf(change)) notices.tell(sessionId);
      listener.committed(results);
      return results;
    },
    claim(claim) {
      listener.heard(claim.owner, claim.leaseMs);
      return storage.claim(claim);
    },
    renew(renewal) {
      listener.heard(renewal.owner, renewal.leaseMs);
      return storage.renew(renewal);
    },
    load: (sessionId) => storage.load(sessionId),
    arrivals: (sessionId, after) => storage.arrivals(sessionId, after),
    conversation: (sessionId, leaf) => storage.conversation(sessionId, leaf),
    due: (query) => storage.due(query),
    subscribe: (listener) => storage.subscribe(listener),
    reader: storage.reader,
    close: () => storage.close(),
  };
}

/** Of sessions that are claimed as they are made. */
function claimsOf(change: Change): readonly { readonly owner: string; readonly leaseMs: number }[] {
  if (change.type === "audited") return change.change === undefined ? [] : claimsOf(change.change);
  return change.type === "create_session" && change.claimFor !== undefined ? [change.claimFor] : [];
}

function sessionsOf(change: Change): readonly string[] {
  if (change.type === "audited") return change.change === undefined ? [] : sessionsOf(change.change);
  return "sessionId" in change ? [change.sessionId] : [];
}
