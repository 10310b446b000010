// `AnsweredWaits`: which of the open waits has its answer here, the one that was asked first.
//
//   answered-waits-1. A wait is looked at when it is asked, and whenever a signal of its name becomes the first of that name. In between
//               nothing can answer it, so a wait that has no answer is passed over once and not again: each of many waits costs
//               O(log n), however many names there are.
//
// It does not know which signals are pending: whoever asks for the first says whether a wait is answered.

import { WakeQueue, type Queued } from "../collections/wake-queue.ts";

interface Asked {
  readonly future: { readonly id: number };
  /** The signal that answers it; a timer has none. */
  readonly name?: string;
}

/** Where an open item stands in a queue. */
export interface Place<Item> extends Queued {
  readonly item: Item;
}

/** Of items that are due at the same time, the one that was asked first is first. */
export function placeOf<Item extends Asked>(item: Item): Place<Item> {
  return { item, queuedFor: Infinity, queueIndex: -1, queueOrder: item.future.id };
}

export class AnsweredWaits<Item extends Asked> {
  /** Items that may be answered, in the order they were asked. */
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

  /** A signal of this name is pending, and none was. */
  arrived(name: string): void {
    for (const place of this.#byName.get(name) ?? []) this.#maybe.set(place, place.item.future.id);
  }

  *named(name: string): Generator<Item> {
    for (const { item } of this.#byName.get(name) ?? []) yield item;
  }

  first(isAnswered: (item: Item) => boolean): Item | undefined {
    for (let place = this.#maybe.first(); place !== undefined; place = this.#maybe.first()) {
      if (isAnswered(place.item)) return place.item;
      this.#maybe.set(place, Infinity); // answered-waits-1.
    }
    return undefined;
  }
}
