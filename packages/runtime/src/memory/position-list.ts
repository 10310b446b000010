// Lists in the order of creation, with items added and removed anywhere. Each of these costs O(log n), and so
// does the beginning of a page.
//
// A list is cut into chunks. A binary search finds the chunk; an item that is added or removed moves items of
// that chunk only.

/** An item of a list. Its position never changes, and no two items of one list have the same. */
export interface Positioned {
  readonly position: number;
}

/** Items in a chunk. A chunk with twice as many is cut in two. */
const CHUNK_ITEMS = 256;

export class PositionList<T extends Positioned> {
  readonly #chunks: T[][] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(item: T): void {
    this.#size++;
    const last = this.#chunks.at(-1);
    if (last === undefined || last.at(-1)!.position < item.position) {
      if (last !== undefined && last.length < CHUNK_ITEMS) last.push(item);
      else this.#chunks.push([item]);
      return;
    }
    const at = this.#chunkFrom(item.position);
    const chunk = this.#chunks[at]!;
    chunk.splice(firstFrom(chunk, item.position), 0, item);
    if (chunk.length >= 2 * CHUNK_ITEMS) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK_ITEMS));
  }

  remove(item: T): void {
    const at = this.#chunkFrom(item.position);
    const chunk = this.#chunks[at];
    const index = chunk === undefined ? -1 : firstFrom(chunk, item.position);
    if (chunk?.[index] !== item) return;
    this.#size--;
    if (chunk.length > 1) chunk.splice(index, 1);
    else this.#chunks.splice(at, 1);
  }

  /** Items before a position, the last first. */
  *below(position: number): Generator<T> {
    let at = Math.min(this.#chunkFrom(position), this.#chunks.length - 1);
    for (let from = position; at >= 0; at--, from = Infinity) {
      const chunk = this.#chunks[at]!;
      for (let i = firstFrom(chunk, from) - 1; i >= 0; i--) yield chunk[i]!;
    }
  }

  /** Items after a position, the first first. */
  *above(position: number): Generator<T> {
    let at = this.#chunkFrom(position + 1);
    for (let from = position + 1; at < this.#chunks.length; at++, from = -Infinity) {
      const chunk = this.#chunks[at]!;
      for (let i = firstFrom(chunk, from); i < chunk.length; i++) yield chunk[i]!;
    }
  }

  /** All items, the first first. */
  *[Symbol.iterator](): Generator<T> {
    for (const chunk of this.#chunks) yield* chunk;
  }

  /** The first chunk that ends at this position or later. */
  #chunkFrom(position: number): number {
    return lowest(this.#chunks.length, (at) => this.#chunks[at]!.at(-1)!.position >= position);
  }
}

/** A list for each key that has any item. */
export class ListsByKey<T extends Positioned> {
  readonly #lists = new Map<string, PositionList<T>>();

  get(key: string): PositionList<T> {
    return this.#lists.get(key) ?? new PositionList<T>();
  }

  add(key: string, item: T): void {
    const list = this.#lists.get(key) ?? new PositionList<T>();
    if (list.size === 0) this.#lists.set(key, list);
    list.add(item);
  }

  remove(key: string, item: T): void {
    const list = this.#lists.get(key);
    list?.remove(item);
    if (list?.size === 0) this.#lists.delete(key);
  }
}

/** The first index for which the condition holds, as it does for all later ones; `length` if there is none. */
export function lowest(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function firstFrom(items: readonly Positioned[], position: number): number {
  return lowest(items.length, (i) => items[i]!.position >= position);
}
