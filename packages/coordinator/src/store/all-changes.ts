// `AllChanges`: one follower of all sessions of a storage, for any number of readers.
//
//   - The first change after a quiet time wakes the readers at once. Changes that come soon after it wake
//     them together. The more readers there are, the longer the changes are gathered. Without changes nothing
//     runs.
//   - A reader for one owner is woken only by sessions of that owner, and by changes whose session the
//     storage does not know. Nobody learns that another user's session has changed.
//   - A reader gets the newest state of a few sessions, and learns only that there are others. A burst of
//     changes and a reader that stalls cost no more than that.

import type { Clock, Session } from "@holdfast/core";
import type { FollowedStorage } from "./notices.ts";

const TOGETHER_MS = 16;
const TOGETHER_MS_EACH = 1;
const SESSIONS_MAX = 4;

/** The changes since the last call. */
export interface Changed {
  readonly sessions: readonly Session[];
  /** Whether there may be changes of other sessions. */
  readonly hasOthers: boolean;
}

/** Repeated waits for changes. The first one is over at once. */
export interface ChangeReader {
  /** Waits until there was a change since the last call. */
  next(): Promise<Changed>;
  /** Ends a wait, as a change does. */
  readonly wake: () => void;
  readonly end: () => void;
}

export class AllChanges {
  readonly #storage: Pick<FollowedStorage, "follow">;
  readonly #clock: Clock;
  readonly #readers = new Set<Reader>();
  #leave: (() => void) | undefined;
  #isResting = false;

  constructor(storage: Pick<FollowedStorage, "follow">, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
  }

  /** @param owner the only owner whose sessions the reader may see; `undefined` for all. */
  read(owner: string | undefined): ChangeReader {
    const reader = new Reader(owner, () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) return;
      this.#leave?.();
      this.#leave = undefined;
    });
    this.#readers.add(reader);
    this.#leave ??= this.#storage.follow(undefined, (_, session) => this.#changed(session));
    return reader;
  }

  #changed(session: Session | undefined): void {
    for (const reader of this.#readers) reader.note(session);
    if (!this.#isResting) this.#wakeAll();
  }

  #wakeAll(): void {
    const behind = [...this.#readers].filter(({ isBehind }) => isBehind);
    for (const reader of behind) reader.wake();
    this.#isResting = behind.length > 0;
    const restMs = TOGETHER_MS + TOGETHER_MS_EACH * this.#readers.size;
    if (this.#isResting) this.#clock.setTimer(() => this.#wakeAll(), restMs);
  }
}

class Reader implements ChangeReader {
  readonly end: () => void;
  readonly #owner: string | undefined;
  #sessions = new Map<string, Session>();
  /** At first everything may be new. */
  #hasOthers = true;
  /** Whether there was a change of which the reader was not told. */
  isBehind = false;
  #isThere = true;
  #resolve = (): void => {};

  constructor(owner: string | undefined, end: () => void) {
    this.#owner = owner;
    this.end = end;
  }

  note(session: Session | undefined): void {
    if (this.#owner !== undefined && session !== undefined && session.placement?.owner !== this.#owner)
      return;
    this.isBehind = true;
    if (session === undefined) this.#hasOthers = true;
    else if (this.#sessions.size < SESSIONS_MAX || this.#sessions.has(session.sessionId))
      this.#sessions.set(session.sessionId, session);
    else this.#hasOthers = true;
  }

  readonly wake = (): void => {
    this.isBehind = false;
    this.#isThere = true;
    this.#resolve();
  };

  async next(): Promise<Changed> {
    if (!this.#isThere) await new Promise<void>((resolve) => (this.#resolve = resolve));
    this.#isThere = false;
    const changed = { sessions: [...this.#sessions.values()], hasOthers: this.#hasOthers };
    this.#sessions = new Map();
    this.#hasOthers = false;
    return changed;
  }
}
