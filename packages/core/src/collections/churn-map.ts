// A map for what comes and goes all the time, whose values are garbage as soon as they are taken out.
//
// Those of V8's own Map are not. It keeps entries in tables: one that is used up is left for a new one, with what was in it, and
// refers to it. Once one of them has grown old, all that were left after it are kept with it until the old generation is collected.
// So whatever passes through such a map survives every collection of the young generation: with drivers of sessions in it that
// was a third of the time of a process. Here the tables hold boxes, and a box is emptied when its entry is taken out.
//
//   churn-map-1. Otherwise it is a Map: in the order of insertion, and setting what is there leaves it at its place.

interface Box<V> {
  value: V | undefined;
}

/** Keys are primitives: an object as a key would be kept as values are elsewhere. */
export class ChurnMap<K extends string | number, V extends object> {
  readonly #boxes = new Map<K, Box<V>>();

  get size(): number {
    return this.#boxes.size;
  }

  has(key: K): boolean {
    return this.#boxes.has(key);
  }

  get(key: K): V | undefined {
    return this.#boxes.get(key)?.value;
  }

  set(key: K, value: V): void {
    const box = this.#boxes.get(key);
    if (box === undefined) this.#boxes.set(key, { value });
    else box.value = value;
  }

  /** Answers whether it was there. */
  delete(key: K): boolean {
    const box = this.#boxes.get(key);
    if (box === undefined) return false;
    box.value = undefined;
    return this.#boxes.delete(key);
  }

  *[Symbol.iterator](): Generator<[K, V]> {
    for (const [key, { value }] of this.#boxes) if (value !== undefined) yield [key, value];
  }
}
