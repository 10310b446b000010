// `Fifo`: a queue whose oldest item is taken out in constant time.
//
// `Array.shift` moves all that is left: with 100,000 waiting it took 100 µs an item. Here the place of the
// oldest moves, and what is before it is cut off once it is half of the array.

/** Below this length the cutting off is not worth a call. */
const CUT_MIN = 32;

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  /** Place of the oldest item. */
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  /** The oldest item. */
  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Put an item before all others. */
  unshift(item: T): void {
    if (this.#head === 0) this.#items.unshift(item);
    else this.#items[--this.#head] = item;
  }

  /** Take the oldest item out. */
  shift(): T | undefined {
    if (this.size === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined; // It is garbage from now on.
    if (this.#head >= CUT_MIN && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Take all items out, the oldest first. */
  drain(): T[] {
    const items = this.#items.slice(this.#head) as T[];
    this.#items = [];
    this.#head = 0;
    return items;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T;
  }
}
