// `StoppingHandlers`: handlers that were told to stop and have not settled. The next attempt of such a task
// waits for its handler, but no longer than a grace. Then it begins beside it, and is told so
// (local-task-executor-3).

import type { Clock } from "@holdfast/core";

/** An attempt that may have to wait for an earlier one of its task. */
interface NextAttempt {
  readonly taskId: string;
  readonly isOver: boolean;
  overlaps: boolean;
}

interface StoppingHandler {
  readonly settled: Promise<void>;
  /** Until when the next attempt waits for it, by the monotonic clock. */
  readonly until: number;
}

interface StoppingOptions<A> {
  readonly clock: Clock;
  readonly overlapMs: number;
  readonly begin: (attempt: A) => void;
}

export class StoppingHandlers<A extends NextAttempt> {
  readonly #options: StoppingOptions<A>;
  /** By their tasks. */
  readonly #handlers = new Map<string, StoppingHandler>();
  readonly #behind = new Set<A>();

  constructor(options: StoppingOptions<A>) {
    this.#options = options;
  }

  /** The attempts that wait for a handler. */
  get behind(): Iterable<A> {
    return this.#behind;
  }

  /** @param settled absent when no handler was called. */
  note(taskId: string, settled: Promise<void> | undefined): void {
    if (settled === undefined) return;
    const earlier = this.#handlers.get(taskId)?.settled;
    const all = earlier === undefined ? settled : Promise.all([earlier, settled]).then(() => {});
    const { clock, overlapMs } = this.#options;
    const handler = { settled: all, until: clock.monotonic() + overlapMs };
    this.#handlers.set(taskId, handler);
    void all.then(() => {
      if (this.#handlers.get(taskId) === handler) this.#handlers.delete(taskId);
    });
  }

  /** Whether the attempt waits for a handler. It then begins later. */
  holdBack(attempt: A): boolean {
    const handler = this.#handlers.size === 0 ? undefined : this.#handlers.get(attempt.taskId);
    if (handler === undefined) return false;
    const { clock, begin } = this.#options;
    this.#behind.add(attempt);
    const go = (overlaps: boolean): void => {
      if (!this.#behind.delete(attempt)) return;
      cancel();
      attempt.overlaps = overlaps;
      if (!attempt.isOver) begin(attempt);
    };
    const cancel = clock.setTimer(() => go(true), Math.max(0, handler.until - clock.monotonic()));
    void handler.settled.then(() => go(false));
    return true;
  }
}
