// `NameLines`: a FIFO queue for each name. An item waits until every earlier item with a common name has
// left.
//
//   - A waiting item is *clear* of a name when it is the first in the queue of that name and no running item
//     has it. An item is free when it is clear of all its names. Therefore items with a common name run in
//     the order in which they came.
//   - The cost of an item depends on how many names it has, never on how many items wait.
//
// It knows neither changes nor groups.

import { ChurnMap } from "@holdfast/core";

/** An item with its names, each of them once. */
export interface Naming {
  readonly names: readonly string[];
}

interface Waiting<T> {
  readonly item: T;
  /** The number of names that it is not clear of. */
  blocked: number;
}

interface Place<T> {
  readonly waiting: Waiting<T>;
  next: Place<T> | undefined;
}

/** The queue of one name, which exists while a running or a waiting item has the name. */
interface Line<T> {
  isTaken: boolean;
  first: Place<T> | undefined;
  last: Place<T> | undefined;
}

export class NameLines<T extends Naming> {
  readonly #lines = new ChurnMap<string, Line<T>>();

  /** Add an item and answer whether it is free. If not, it waits until `leave` returns it. */
  enter(item: T): boolean {
    const blocked = item.names.filter((name) => this.#lines.has(name)).length;
    if (blocked === 0) return true;
    const waiting = { item, blocked };
    for (const name of item.names) {
      const line = this.#line(name);
      const place = { waiting, next: undefined };
      if (line.last === undefined) line.first = place;
      else line.last.next = place;
      line.last = place;
    }
    return false;
  }

  /** The items that are not free. */
  waiting(): ReadonlySet<T> {
    const waiting = new Set<T>();
    for (const [, { first }] of this.#lines)
      for (let place = first; place !== undefined; place = place.next) waiting.add(place.waiting.item);
    return waiting;
  }

  /** Start these items. They must be all free items, so that no item overtakes an earlier one. */
  take(items: readonly T[]): void {
    for (const { names } of items) {
      for (const name of names) {
        const line = this.#line(name);
        if (line.isTaken) continue;
        line.isTaken = true;
        if (line.first !== undefined) line.first.waiting.blocked++;
      }
    }
  }

  /** These items have ended. @returns the items that are free now, for each name in order. */
  leave(items: readonly T[]): T[] {
    const free: T[] = [];
    const open: string[] = [];
    for (const { names } of items) {
      for (const name of names) {
        const line = this.#line(name);
        if (line.isTaken) open.push(name);
        line.isTaken = false;
      }
    }
    // The first item in the queue of each of these names is now clear of it.
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      const first = this.#line(name).first?.waiting;
      if (first === undefined) this.#lines.delete(name);
      else if (--first.blocked === 0) {
        free.push(first.item);
        for (const each of first.item.names) this.#advance(each);
        open.push(...first.item.names);
      }
    }
    return free;
  }

  #advance(name: string): void {
    const line = this.#line(name);
    line.first = line.first?.next;
    if (line.first === undefined) line.last = undefined;
  }

  #line(name: string): Line<T> {
    let line = this.#lines.get(name);
    if (line === undefined)
      this.#lines.set(name, (line = { isTaken: false, first: undefined, last: undefined }));
    return line;
  }
}
