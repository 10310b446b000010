// What changes in this process, told to who waits for it: long polls and streams.
//
//   V4. A notice is only a reason to look. Whoever waits looks anew after `LOOK_MS` without one, so that what another coordinator
//       of the same storage committed is seen as well.
//   V5. Who waits for the end alone is not woken by a batch after which the session goes on: most are that.

import { isEnded, type AgentStorage, type Change, type ChangeResult, type Clock } from "@holdfast/core";
import type { SteadyClock } from "@holdfast/core/internal";
import { claimTimely, renewTimely } from "./store-time.ts";

/** Heads of watched sessions are looked at so often when nothing is heard of them. */
const LOOK_MS = 250;

export class Notices {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiting>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Something was committed to a session. @param goesOn whether it is known not to have ended by it (V5). */
  tell(sessionId: string, goesOn = false): void {
    for (const { wake, wants } of this.#waiting.get(sessionId) ?? []) if (wants === "news" || !goesOn) wake();
  }

  /** Until something that is wanted is told of the session, it is time to look, or the caller has gone. */
  next(sessionId: string, signal: AbortSignal, wants: "news" | "end", atMostMs = LOOK_MS): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        signal.removeEventListener("abort", wake);
        const waiting = this.#waiting.get(sessionId);
        waiting?.delete(entry);
        if (waiting?.size === 0) this.#waiting.delete(sessionId);
        resolve();
      };
      const entry: Waiting = { wake, wants };
      const cancel = this.#clock.setTimer(wake, Math.min(LOOK_MS, atMostMs));
      signal.addEventListener("abort", wake, { once: true });
      const waiting = this.#waiting.get(sessionId);
      if (waiting === undefined) this.#waiting.set(sessionId, new Set([entry]));
      else waiting.add(entry);
    });
  }
}

interface Waiting {
  readonly wake: () => void;
  readonly wants: "news" | "end";
}

/** The storage, telling of what is committed through it. `subscribe` is how it tells of what follows for others. */
export function noticing(
  storage: AgentStorage,
  notices: Notices,
  clock: SteadyClock,
  onCommit: (results: readonly ChangeResult[]) => void,
): AgentStorage {
  storage.subscribe(({ sessionId }) => notices.tell(sessionId));
  return {
    name: storage.name,
    durable: storage.durable,
    async commit(changes, now) {
      const results = await storage.commit(changes, now);
      for (const change of changes) tellOf(change, notices);
      onCommit(results);
      return results;
    },
    claim: (claim) => claimTimely(storage, clock, claim),
    renew: (renewal) => renewTimely(storage, clock, renewal),
    heldClaims: (query) => storage.heldClaims(query),
    load: (sessionId) => storage.load(sessionId),
    arrivals: (sessionId, after) => storage.arrivals(sessionId, after),
    conversation: (sessionId, leaf) => storage.conversation(sessionId, leaf),
    due: (query) => storage.due(query),
    subscribe: (listener) => storage.subscribe(listener),
    reader: storage.reader,
    close: () => storage.close(),
  };
}

function tellOf(change: Change, notices: Notices): void {
  if (change.type === "audited") {
    if (change.change !== undefined) tellOf(change.change, notices);
  } else if ("sessionId" in change) {
    const goesOn = change.type === "commit_batch" && !isEnded(change.session?.status ?? "working");
    notices.tell(change.sessionId, goesOn);
  }
}
