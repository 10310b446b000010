// `Timers`: one real timer for all the alarms of a process.
//
// A real timer counts only the time in which the machine is awake. Alarms use the wall clock, which jumps
// forward when a laptop wakes up or the time is set. Therefore the wall clock is read every few seconds while
// any alarm is set (D3).

import { type Clock, invariant, type Queued, WakeQueue } from "@holdfast/core";

/** How late a moment may be noticed after a jump of the clock. One look costs microseconds. */
const LOOK_AGAIN_MS = 10_000;

/** A callback for a time. Re-armed by `Timers.set`; `Infinity` disarms it. */
export interface Alarm extends Queued {
  /** Must not throw. Called once per arming, not before its time by the wall clock. */
  ring(): void;
}

export function alarm(ring: () => void): Alarm {
  return { queuedFor: Infinity, queueIndex: -1, ring };
}

export class Timers {
  readonly #clock: Clock;
  readonly #queue = new WakeQueue<Alarm>();
  readonly #isIdle: boolean;
  /** The timers for alarms with a delay, which use the monotonic clock. Made for the first of them. */
  #delays: Timers | undefined;
  #cancel: (() => void) | undefined;
  #armedFor = Infinity;

  /** @param isIdle whether a process may end although these are armed. */
  constructor(clock: Clock, isIdle = false) {
    this.#clock = clock;
    this.#isIdle = isIdle;
  }

  /** Ring at `at` (epoch milliseconds) instead of the time it was armed for. */
  set(item: Alarm, at: number): void {
    if (item.queuedFor === at) return;
    invariant(
      !Number.isNaN(at),
      "an alarm was set for no time: it would stand before all others, and never ring",
    );
    this.#queue.set(item, at);
    this.#arm();
  }

  /**
   * Ring in `ms` milliseconds, even if the wall clock is set meanwhile. With `set`, an alarm could ring late
   * or never after a wrong clock is corrected. `Infinity` disarms. Use only one of `set` and `after` for an
   * alarm.
   */
  after(item: Alarm, ms: number): void {
    const clock = this.#clock;
    this.#delays ??= new Timers(
      {
        now: () => clock.monotonic(),
        monotonic: () => clock.monotonic(),
        setTimer: (callback, delayMs, isIdle) => clock.setTimer(callback, delayMs, isIdle),
      },
      this.#isIdle,
    );
    this.#delays.set(item, clock.monotonic() + ms);
  }

  close(): void {
    this.#delays?.close();
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedFor = Infinity;
    for (let first = this.#queue.first(); first !== undefined; first = this.#queue.first()) {
      this.#queue.set(first, Infinity);
    }
  }

  #arm(): void {
    const at = this.#queue.first()?.queuedFor ?? Infinity;
    if (at === this.#armedFor) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedFor = at;
    if (at === Infinity) return;
    // mutant: long-timer-sleep
    const ms = Math.min(at - this.#clock.now(), LOOK_AGAIN_MS);
    this.#cancel = this.#clock.setTimer(() => this.#fire(), ms, this.#isIdle);
  }

  #fire(): void {
    this.#cancel = undefined;
    this.#armedFor = Infinity;
    // The wall clock decides, not the timer: it may have been early, or the clock may have jumped (D3).
    const now = this.#clock.now();
    for (
      let first = this.#queue.first();
      first !== undefined && first.queuedFor <= now;
      first = this.#queue.first()
    ) {
      this.#queue.set(first, Infinity);
      first.ring();
    }
    this.#arm();
  }
}
