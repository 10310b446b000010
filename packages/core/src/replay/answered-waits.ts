// `AnsweredWaits`: finds the first open wait, in the order of asking, that has its answer here.
//
// A wait is examined when it is asked for, and whenever a signal of its name becomes the first of that name.
// No signal can answer it in between, so a wait without an answer is examined only once. Each of many waits
// costs O(log n), however many names there are.
//
// This file does not know which signals are pending: the caller says whether a wait is answered.

import { WakeQueue, type Queued } from "../collections/wake-queue.ts";

interface Asked {
  readonly future: { readonly id: number };
  /** The signal that answers it; a timer has none. */
  readonly name?: string;
}

/** The place of an open item in a queue. */
export interface Place<Item> extends Queued {
  readonly item: Item;
}

/** Items with the same time are in the order in which they were asked for. */
export function placeOf<Item extends Asked>(item: Item): Place<Item> {
  return { item, queuedFor: Infinity, queueIndex: -1, queueOrder: item.future.id };
}

export class AnsweredWaits<Item extends Asked> {
  /** Items that may be answered, in the order in which they were asked for. */
  readonly #maybe = new WakeQueue<Place<Item>>();
  readonly #byName = new Map<string, Set<Place<Item>>>();

  add(place: Place<Item>): void {
    const { name } = place.item;
    this.#maybe.set(place, place.item.future.id);
    if (name === undefined) return;
    const named = this.#byName.get(name);
    if (named === undefined) this.#byName.set(name, new Set([place]));
    else named.add(place);
  }

  remove(place: Place<Item>): void {
    const { name } = place.item;
    this.#maybe.set(place, Infinity);
    if (name === undefined) return;
    const named = this.#byName.get(name);
    named?.delete(place);
    if (named?.size === 0) this.#byName.delete(name);
  }

  /** A signal of this name is now pending, and none was before. */
  arrived(name: string): void {
    for (const place of this.#byName.get(name) ?? []) this.#maybe.set(place, place.item.future.id);
  }

  *named(name: string): Generator<Item> {
    for (const { item } of this.#byName.get(name) ?? []) yield item;
  }

  first(isAnswered: (item: Item) => boolean): Item | undefined {
    for (let place = this.#maybe.first(); place !== undefined; place = this.#maybe.first()) {
      if (isAnswered(place.item)) return place.item;
      // It is examined again when a signal of its name becomes the first one.
      this.#maybe.set(place, Infinity);
    }
    return undefined;
  }
}
