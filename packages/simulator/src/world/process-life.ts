// `ProcessLife`: one life of a simulated process, with its time, its turns of the event loop, and its end.
//
//   - All events of a process belong to its life: timers, turns, answers of storage, ends of tasks. They
//     happen neither after its death nor during a pause.
//   - Turns of the event loop run in the order of the requests for them. As in Node, no other event of the
//     process happens between two turns of one round.

import type { Clock } from "@holdfast/core";
import { settle, type Life, type Scheduler } from "./scheduler.ts";

/** The time that lives share: that of the simulation, and the wall clock of their machine. */
export interface SimulatedTime {
  readonly scheduler: Scheduler;
  /** The rate of the machine's clocks; 1 is correct. */
  readonly rate?: number;
  /** Epoch milliseconds by the wall clock, which may jump. */
  wall(): number;
  /** How late a timer is. */
  drawLateness(): number;
}

export class ProcessLife implements Life {
  readonly name: string;
  readonly clock: Clock;
  readonly #time: SimulatedTime;
  #turns: (() => void)[] = [];
  #held: (() => void | Promise<void>)[] = [];
  #onEnd = new Set<() => void>();
  #isTurning = false;
  #isAlive = true;
  #isPaused = false;

  constructor(name: string, time: SimulatedTime) {
    this.name = name;
    this.#time = time;
    const { rate = 1 } = time;
    this.clock = {
      now: () => time.wall(),
      monotonic: () => time.scheduler.now * rate,
      setTimer: (callback, ms) =>
        time.scheduler.after(Math.max(0, ms) / rate + time.drawLateness(), this, callback),
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** A turn of the event loop. */
  readonly immediate = (callback: () => void): void => {
    this.#turns.push(callback);
    this.#queueRound();
  };

  /** Schedule an event of this life. */
  after(ms: number, happen: () => void): () => void {
    return this.#time.scheduler.after(ms, this, happen);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  hold(happen: () => void | Promise<void>): void {
    this.#held.push(happen);
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** End the pause: the held events happen now, in their order. */
  unpause(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const held = this.#held;
    this.#held = [];
    if (held.length > 0) this.#time.scheduler.after(0, this, () => this.#inOrder(held));
  }

  end(): void {
    this.#isAlive = false;
    this.#turns = [];
    this.#held = [];
    const ended = this.#onEnd;
    this.#onEnd = new Set();
    for (const each of ended) each();
  }

  /** Call `ended` when this life ends. @returns a function that removes the callback. */
  onEnd(ended: () => void): () => void {
    this.#onEnd.add(ended);
    return () => void this.#onEnd.delete(ended);
  }

  #queueRound(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#time.scheduler.after(0, this, async () => {
      const round = this.#turns;
      this.#turns = [];
      await this.#inOrder(round);
      this.#isTurning = false;
      if (this.#turns.length > 0) this.#queueRound();
    });
  }

  async #inOrder(steps: readonly (() => void | Promise<void>)[]): Promise<void> {
    for (const step of steps) {
      if (!this.#isAlive) return;
      const more = step();
      if (more !== undefined) await more;
      await settle();
    }
  }
}
