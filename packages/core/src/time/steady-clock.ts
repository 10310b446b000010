// A wall clock made steady: the time by which whoever serves a storage decides about leases and timers.
//
//   steady-clock-1. It never goes back.
//   steady-clock-2. It goes as the monotonic clock does, drawn towards the wall clock by at most one part in `DRAW`: a
//       lease lasts what it should, however the wall clock is set. One that was set back by an hour is met again after
//       a hundred hours.
//   steady-clock-3. A wall clock that is more than `SET_MS` ahead was set forward, or its machine slept: timers are to
//       follow it at once, and leases are not to pass by it. So it is followed by `step` alone, for whoever carries the
//       leases over.
//
// It knows neither leases nor storage.

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
    if (offMs <= SET_MS) this.#time += Math.max(-passedMs / DRAW, Math.min(offMs, passedMs / DRAW)); // steady-clock-2.
    return Math.floor(this.#time);
  }

  /** steady-clock-3. How far the wall clock was set forward since it was last followed; 0 when it was not. */
  get setForwardMs(): number {
    const offMs = this.#wall.now() - this.now();
    return offMs > SET_MS ? offMs : 0;
  }

  /** It is going to step by so much: what is to hold then is as of then from now on. */
  prepare(ms: number): void {
    this.#comingMs = ms;
  }

  /** How far the step goes that is prepared; 0 when none is. */
  get comingMs(): number {
    return this.#comingMs;
  }

  /** Go forward by so much, or not at all. */
  step(ms: number): void {
    this.#comingMs = 0;
    if (ms <= 0) return;
    this.#time += ms;
    this.#steps++;
  }

  /** How often it has gone forward by a step. */
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
