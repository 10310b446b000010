// `SteadyClock`: a wall clock made steady. A process that serves a storage decides about leases and timers by
// this time.
//
//   - The clock never goes back.
//   - The clock advances as the monotonic clock does, and moves towards the wall clock by at most one part in
//     `DRAW`. A lease therefore lasts as long as it should, however the wall clock is set. A wall clock that
//     was set back by an hour is met again after a hundred hours.
//   - A wall clock that is more than `SET_MS` ahead was set forward, or its machine slept. Timers should
//     follow it at once, but leases should not pass because of it. Only `step` follows such a clock, for a
//     caller that extends the leases first.
//
// This file knows neither leases nor storage.

import type { Clock } from "../ports/clock.ts";

const DRAW = 100;
const SET_MS = 1_000;

export class SteadyClock implements Clock {
  readonly #wall: Clock;
  #time: number;
  #at: number;
  #steps = 0;
  #comingMs = 0;

  constructor(wall: Clock) {
    this.#wall = wall;
    this.#time = wall.now();
    this.#at = wall.monotonic();
  }

  now(): number {
    const at = this.#wall.monotonic();
    const passedMs = Math.max(0, at - this.#at);
    this.#at = at;
    this.#time += passedMs;
    const offMs = this.#wall.now() - this.#time;
    // mutant: clock-set-back-followed
    // At most one part in `DRAW` towards the wall clock, so that a lease lasts as long as it should.
    if (offMs <= SET_MS) this.#time += Math.max(-passedMs / DRAW, Math.min(offMs, passedMs / DRAW));
    return Math.floor(this.#time);
  }

  /** How far the wall clock was set forward since it was last followed; 0 when it was not. */
  get setForwardMs(): number {
    const offMs = this.#wall.now() - this.now();
    return offMs > SET_MS ? offMs : 0;
  }

  /**
   * Prepare a step of this length. From now on, leases that are to survive the step are given as of the time
   * after it.
   */
  prepare(ms: number): void {
    this.#comingMs = ms;
  }

  /** The length of the prepared step; 0 when none is prepared. */
  get comingMs(): number {
    return this.#comingMs;
  }

  /** Go forward by this length, or not at all. */
  step(ms: number): void {
    this.#comingMs = 0;
    if (ms <= 0) return;
    this.#time += ms;
    this.#steps++;
  }

  /** The number of steps so far. */
  get steps(): number {
    return this.#steps;
  }

  monotonic(): number {
    return this.#wall.monotonic();
  }

  setTimer(callback: () => void, ms: number, isIdle?: boolean): () => void {
    return this.#wall.setTimer(callback, ms, isIdle);
  }
}
