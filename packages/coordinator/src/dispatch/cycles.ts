// `Cycles` runs dispatch cycles one after another: it decides when the next one begins, and holds the timer
// for it.
//
//   - There is one cycle at a time. Events during a cycle belong to the next one.
//   - `wake(0)` begins a cycle at once. `wake(JOIN_MS)` begins it at the earliest that long after the
//     previous one, so that events which come close together share one cycle.
//   - A cycle that failed in storage is repeated after `AGAIN_MS`.
//   - After `close`, no cycle begins and no timer is left.

import type { Clock } from "@holdfast/core";

export const JOIN_MS = 50;
/** The pause after a failure of storage, before the same is tried again. */
export const AGAIN_MS = 500;

export class Cycles {
  readonly #clock: Clock;
  readonly #run: () => Promise<void>;
  readonly #warn: (message: string, error: unknown) => void;
  #current: Promise<void> | undefined;
  #isAgain = false;
  #endedAt = -Infinity;
  #cancelTimer: (() => void) | undefined;
  #timerAt = Infinity;
  #isClosed = false;

  /** @param run one cycle. @param warn called with the failure of a cycle. Must not throw. */
  constructor(clock: Clock, run: () => Promise<void>, warn: (message: string, error: unknown) => void) {
    this.#clock = clock;
    this.#run = run;
    this.#warn = warn;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  wake(joinMs: number): void {
    const wait = Math.max(0, this.#endedAt + joinMs - this.#clock.monotonic());
    if (this.#current === undefined && joinMs > 0 && wait > 0) this.wakeAfter(wait);
    else this.#begin();
  }

  /** Begins a cycle after `ms`, unless one is due earlier. */
  wakeAfter(ms: number): void {
    if (this.#isClosed) return; // A cycle that was under way leaves no timer behind.
    const at = this.#clock.monotonic() + ms;
    if (at >= this.#timerAt) return;
    this.#cancelTimer?.();
    this.#timerAt = at;
    this.#cancelTimer = this.#clock.setTimer(() => {
      this.#timerAt = Infinity;
      this.#begin();
    }, ms);
  }

  /** Begins another cycle as soon as the current one has ended. */
  repeat(): void {
    this.#isAgain = true;
  }

  /** Waits until no cycle is under way. */
  async quiet(): Promise<void> {
    while (this.#current !== undefined) await this.#current;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer?.();
  }

  #begin(): void {
    if (this.#isClosed) return;
    if (this.#current !== undefined) return this.repeat();
    this.#isAgain = false;
    this.#current = this.#run()
      .catch((error: unknown) => {
        this.#warn("dispatch could not read storage", error);
        this.wakeAfter(AGAIN_MS);
      })
      .finally(() => {
        this.#current = undefined;
        this.#endedAt = this.#clock.monotonic();
        if (this.#isAgain) this.wake(0);
      });
  }
}
