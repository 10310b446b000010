// `WakeQueue`: items in the order of their times. It is a binary heap in which every item knows its place.
// Moving or removing an item costs O(log n) and leaves nothing stale behind, however often a session changes
// its time.

/** An item of a queue. Both fields are the queue's: only `set` changes `wakeAt`. */
export interface Queued {
  /** `Infinity` when it is not queued. */
  queuedFor: number;
  /** Position in the heap, -1 when it is not queued. */
  queueIndex: number;
  /** The order among items with the same time: the lower value is first. Without it either may be first. */
  readonly queueOrder?: number;
}

export class WakeQueue<T extends Queued> {
  readonly #heap: T[] = [];

  /** The item with the earliest time. */
  first(): T | undefined {
    return this.#heap[0];
  }

  /**
   * The items up to a time, in no order, and the earliest time of the others. The cost grows with the number
   * of these items.
   */
  upTo(at: number): { readonly items: readonly T[]; readonly nextAt: number } {
    const items: T[] = [];
    let nextAt = Infinity;
    for (const indices = [0]; indices.length > 0;) {
      const index = indices.pop()!;
      const item = this.#heap[index];
      if (item === undefined) continue;
      if (item.queuedFor > at) {
        nextAt = Math.min(nextAt, item.queuedFor);
        continue;
      }
      items.push(item);
      indices.push(2 * index + 1, 2 * index + 2);
    }
    return { items, nextAt };
  }

  /** Queue an item for a time, move it to that time, or remove it with `Infinity`. */
  set(item: T, at: number): void {
    const heap = this.#heap;
    if (at === Infinity) return this.#remove(item);
    item.queuedFor = at;
    if (item.queueIndex === -1) {
      item.queueIndex = heap.length;
      heap.push(item);
    }
    this.#sink(this.#rise(item.queueIndex));
  }

  #remove(item: T): void {
    const index = item.queueIndex;
    item.queuedFor = Infinity;
    if (index === -1) return;
    item.queueIndex = -1;
    const last = this.#heap.pop()!;
    if (last === item) return;
    this.#put(last, index);
    this.#sink(this.#rise(index));
  }

  #rise(index: number): number {
    const item = this.#heap[index]!;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#heap[parentIndex]!;
      if (!isBefore(item, parent)) break;
      this.#put(parent, index);
      index = parentIndex;
    }
    this.#put(item, index);
    return index;
  }

  #sink(index: number): void {
    const heap = this.#heap;
    const item = heap[index]!;
    for (;;) {
      const left = 2 * index + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const child = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left;
      if (!isBefore(heap[child]!, item)) break;
      this.#put(heap[child]!, index);
      index = child;
    }
    this.#put(item, index);
  }

  #put(item: T, index: number): void {
    this.#heap[index] = item;
    item.queueIndex = index;
  }
}

function isBefore(a: Queued, b: Queued): boolean {
  if (a.queuedFor !== b.queuedFor) return a.queuedFor < b.queuedFor;
  return (a.queueOrder ?? 0) < (b.queueOrder ?? 0);
}
