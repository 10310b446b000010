// `ChurnMap`: a map for entries that come and go all the time. Its values are garbage as soon as they are
// removed.
//
// The values of V8's own Map are not. It keeps entries in tables, and replaces a used-up table by a new one.
// The old table keeps its entries and refers to the new one. Once a table is in the old generation, all later
// tables stay alive with it until that generation is collected. Every value that passes through such a map
// thus survives all collections of the young generation. With drivers of sessions in the map, this cost a
// third of a process's time. Here the tables hold boxes, and removing an entry empties its box.
//
//   churn-map-1. Otherwise it is a Map. Entries are in the order of insertion, and setting an existing key
//       keeps its place.

interface Box<V> {
  value: V | undefined;
}

/** Keys are primitives: a map would keep a key object alive as V8's does its values. */
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

  /** Returns whether the key was there. */
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
