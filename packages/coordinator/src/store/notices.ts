// `noticing` lets long polls and streams follow every session of a storage, and `News` waits for changes of
// one session.
//
//   V4. A notice is only a reason to look. A wait looks at its session only after a notice, because storage
//       also announces commits of other processes. For a storage that cannot do so, followed sessions are
//       looked at every `LOOK_MS`.
//   notices-5. A wait for the end of a session ignores notices while the session continues, as most commits
//       are such.

import {
  type AgentStorage,
  type Change,
  type ChangeResult,
  type Clock,
  Followers,
  type Notice,
  type SteadyClock,
  storageWith,
} from "@holdfast/core";
import { claimTimely, renewTimely } from "./store-time.ts";

/** The interval of looks at followed sessions if storage does not announce commits of other processes. */
const LOOK_MS = 250;

/** A storage whose sessions can all be followed. */
export type FollowedStorage = AgentStorage & Required<Pick<AgentStorage, "follow">>;

/** A repeated wait for news of a session. No news is missed after its creation. */
export class News {
  readonly #leave: () => void;
  #isThere = false;
  #wake = (): void => {};

  /** @param wants the kind of news that ends the wait (notices-5). */
  constructor(storage: FollowedStorage, sessionId: string, signal: AbortSignal, wants: "news" | "end") {
    const unfollow = storage.follow(sessionId, (isActive) => {
      if (wants === "news" || !isActive) this.come();
    });
    signal.addEventListener("abort", this.come, { once: true });
    this.#leave = () => {
      unfollow();
      signal.removeEventListener("abort", this.come);
    };
  }

  /** Notes a reason to look. */
  readonly come = (): void => {
    this.#isThere = true;
    this.#wake();
  };

  /** Waits for a reason to look since the last call. */
  async next(): Promise<void> {
    if (!this.#isThere) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#isThere = false;
  }

  end(): void {
    this.#leave();
  }
}

/**
 * The storage, with all its sessions followable. `onCommit` is called with the result of each change that is
 * committed here, and `onFailure` with errors of commits.
 */
export function noticing(
  storage: AgentStorage,
  clock: SteadyClock,
  onCommit: (results: readonly ChangeResult[]) => void,
  onFailure: (error: unknown) => void = () => {},
): FollowedStorage {
  const looks = new Looks(clock);
  const { follow } = storage;
  if (follow === undefined) storage.subscribe(({ sessionId }) => looks.followers.notify(sessionId));
  return {
    ...storageWith(storage, {
      async commit(changes, now) {
        const results = await storage.commit(changes, now).catch((error: unknown) => {
          onFailure(error);
          throw error;
        });
        if (follow === undefined) looks.committed(changes);
        onCommit(results);
        return results;
      },
      claim: (claim) => claimTimely(storage, clock, claim),
      renew: (renewal) => renewTimely(storage, clock, renewal),
    }),
    follow: (sessionId, onNotice) =>
      follow === undefined ? looks.follow(sessionId, onNotice) : follow.call(storage, sessionId, onNotice),
  };
}

/** Notices for a storage that gives none. */
class Looks {
  readonly followers = new Followers();
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  follow(sessionId: string | undefined, onNotice: Notice): () => void {
    const leave = this.followers.follow(sessionId, onNotice);
    this.#cancel ??= this.#clock.setTimer(() => this.#look(), LOOK_MS);
    return () => {
      leave();
      if (this.followers.size > 0) return;
      this.#cancel?.();
      this.#cancel = undefined;
    };
  }

  committed(changes: readonly Change[]): void {
    for (const change of changes)
      for (const sessionId of sessionsOf(change)) this.followers.notify(sessionId);
    this.followers.notifyOfAll();
  }

  #look(): void {
    this.#cancel = this.#clock.setTimer(() => this.#look(), LOOK_MS);
    for (const sessionId of this.followers.sessionIds) this.followers.notify(sessionId);
    this.followers.notifyOfAll();
  }
}

function sessionsOf(change: Change): readonly string[] {
  if (change.type === "audited") return change.change === undefined ? [] : sessionsOf(change.change);
  if (change.type === "remove_ended") return change.sessionIds;
  return "sessionId" in change ? [change.sessionId] : [];
}
