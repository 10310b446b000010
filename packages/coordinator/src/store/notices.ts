// News of sessions, told to who waits for it: long polls and streams.
//
//   V4. A notice is only a reason to look. Who waits looks when there is one, and not otherwise: the storage tells what others
//       committed as well. One that cannot is helped out: then what is followed is looked at every `LOOK_MS`.
//   notices-5. Who waits for the end alone does not look at a session that goes on: most commits are that.

import type { AgentStorage, Change, ChangeResult, Clock } from "@holdfast/core";
import { Followers, storageWith, type SteadyClock } from "@holdfast/core/internal";
import { claimTimely, renewTimely } from "./store-time.ts";

/** Where nobody tells what others commit, who waits looks so often. */
const LOOK_MS = 250;

/** A storage of which every session can be followed. */
export type FollowedStorage = AgentStorage & Required<Pick<AgentStorage, "follow">>;

/** One who waits, again and again, for news of a session; from its making on nothing is missed. */
export class News {
  readonly #leave: () => void;
  #isThere = false;
  #wake = (): void => {};

  /** @param wants what it waits for (notices-5). */
  constructor(storage: FollowedStorage, sessionId: string, signal: AbortSignal, wants: "news" | "end") {
    const unfollow = storage.follow(sessionId, (goesOn) => {
      if (wants === "news" || !goesOn) this.come();
    });
    signal.addEventListener("abort", this.come, { once: true });
    this.#leave = () => {
      unfollow();
      signal.removeEventListener("abort", this.come);
    };
  }

  /** There is a reason to look. */
  readonly come = (): void => {
    this.#isThere = true;
    this.#wake();
  };

  /** Until there was one since the last time. */
  async next(): Promise<void> {
    if (!this.#isThere) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#isThere = false;
  }

  end(): void {
    this.#leave();
  }
}

/**
 * The storage, every session of which can be followed. `onCommit` is told what becomes of each change that is asked for here, and
 * `onFailure` of what could not be asked.
 */
export function noticing(
  storage: AgentStorage,
  clock: SteadyClock,
  onCommit: (results: readonly ChangeResult[]) => void,
  onFailure: (error: unknown) => void = () => {},
): FollowedStorage {
  const looks = new Looks(clock);
  const { follow } = storage;
  if (follow === undefined) storage.subscribe(({ sessionId }) => looks.followers.tell(sessionId));
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

/** Notices of a storage that gives none. */
class Looks {
  readonly followers = new Followers();
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  follow(sessionId: string, onNotice: (goesOn: boolean) => void): () => void {
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
    for (const change of changes) for (const sessionId of sessionsOf(change)) this.followers.tell(sessionId);
  }

  #look(): void {
    this.#cancel = this.#clock.setTimer(() => this.#look(), LOOK_MS);
    for (const sessionId of this.followers.sessionIds) this.followers.tell(sessionId);
  }
}

function sessionsOf(change: Change): readonly string[] {
  if (change.type === "audited") return change.change === undefined ? [] : sessionsOf(change.change);
  return "sessionId" in change ? [change.sessionId] : [];
}
