// `RestartPolicy`: whether and when a process of the stack is started again.
//
//   - The first restart is immediate, because most ends are single. Each further one waits twice as long.
//   - A process that was ready for `STABLE_MS` resets the count.
//   - After `RESTARTS_MAX` restarts without such a time there is no further one. The end is then visible, and
//     no loop hides it.

export const STABLE_MS = 5_000;
export const RESTARTS_MAX = 12;
const PAUSE_MIN_MS = 250;
const PAUSE_MAX_MS = 10_000;

export class RestartPolicy {
  #count = 0;

  /**
   * Decide after an end. @param readyMs how long the process had been ready.
   *
   * @returns milliseconds to wait before the restart, or `undefined` when there is none.
   */
  next(readyMs: number): number | undefined {
    if (readyMs >= STABLE_MS) this.#count = 0;
    if (this.#count >= RESTARTS_MAX) return undefined;
    const pauseMs = this.#count === 0 ? 0 : Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** (this.#count - 1));
    this.#count++;
    return pauseMs;
  }
}
