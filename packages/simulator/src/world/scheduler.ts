// `Scheduler`: simulated time, and the queue of events.
//
//   - Events happen one at a time, in the order of their times. Events of the same time happen in an order
//     that the seed decides. After each event, all the work that it started runs until it is quiescent.
//   - An event may belong to a life: it happens neither after the life's end nor while the life is paused.

import type { Dice } from "./dice.ts";

/** A life that events can belong to. */
export interface Life {
  readonly isAlive: boolean;
  readonly isPaused: boolean;
  /** While the life is paused: keep the event for later. */
  hold(happen: () => void | Promise<void>): void;
}

interface ScheduledEvent {
  readonly at: number;
  readonly tie: number;
  readonly number: number;
  readonly life: Life | undefined;
  happen: (() => void | Promise<void>) | undefined;
}

/** The number of immediates in one turn of the event loop, which costs as much as ten of them. */
const IMMEDIATES_PER_TURN = 32;
const settling: (() => void)[] = [];
let immediates = 0;

/** Wait for all microtasks and ticks: a single `await` would not run a chain of promises to its end. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    settling.push(resolve);
    if (immediates === 0) queueTurn();
  });
}

function queueTurn(): void {
  immediates = IMMEDIATES_PER_TURN;
  for (let i = 0; i < IMMEDIATES_PER_TURN; i++) setImmediate(settleNext);
}

function settleNext(): void {
  immediates--;
  settling.shift()?.();
  if (immediates === 0 && settling.length > 0) queueTurn();
}

export class Scheduler {
  readonly #dice: Dice;
  readonly #heap: ScheduledEvent[] = [];
  #now = 0;
  #count = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** Milliseconds since the simulation began. */
  get now(): number {
    return this.#now;
  }

  /** How many events there were so far. */
  get steps(): number {
    return this.#count;
  }

  /** When the next event is, if there is one. */
  get nextAt(): number | undefined {
    return this.#heap[0]?.at;
  }

  /** Schedule an event in `ms` milliseconds; its promise is awaited. @returns a function that removes the event. */
  after(ms: number, life: Life | undefined, happen: () => void | Promise<void>): () => void {
    const at = this.#now + Math.max(0, Math.ceil(ms));
    const event: ScheduledEvent = { at, tie: this.#dice.u32(), number: this.#count++, life, happen };
    this.#push(event);
    return () => {
      event.happen = undefined;
    };
  }

  /** The next event. False when there is none. */
  async step(): Promise<boolean> {
    const event = this.#pop();
    if (event === undefined) return false;
    this.#now = event.at;
    const { life, happen } = event;
    if (happen === undefined || life?.isAlive === false) return true;
    if (life?.isPaused === true) life.hold(happen);
    else {
      await (happen() ?? settle());
    }
    return true;
  }

  #push(event: ScheduledEvent): void {
    const heap = this.#heap;
    let index = heap.length;
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (!isBefore(event, heap[above]!)) break;
      heap[index] = heap[above]!;
      index = above;
    }
    heap[index] = event;
  }

  #pop(): ScheduledEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++;
      if (!isBefore(heap[below]!, last)) break;
      heap[index] = heap[below]!;
      index = below;
    }
    heap[index] = last;
    return first;
  }
}

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  if (a.at !== b.at) return a.at < b.at;
  return a.tie === b.tie ? a.number < b.number : a.tie < b.tie;
}
