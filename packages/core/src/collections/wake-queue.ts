// Things to look at later, in the order of their times: a binary heap in which every item knows its place, so that
// moving or removing one costs O(log n) and nothing stale stays behind, however often a session changes its mind.

/** What can be queued. Both fields are the queue's: `wakeAt` is changed by `set` only. */
export interface Queued {
  /** `Infinity` when it is not queued. */
  queuedFor: number;
  /** Position in the heap, -1 when it is not queued. */
  queueIndex: number;
  /** Which of two of the same time is first: the lower one. Without it either may be. */
  readonly queueOrder?: number;
}

export class WakeQueue<T extends Queued> {
  readonly #heap: T[] = [];

  /** The item with the earliest time. */
  first(): T | undefined {
    return this.#heap[0];
  }

  /** The items up to a time, in no order, and the time of the earliest of the others: it costs as much as there are such items. */
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

  /** Queue an item for a time, move it there, or with `Infinity` take it out. */
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
