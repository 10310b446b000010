// Who names something waits for those before him that name the same. Of each name there is a line of those who wait.
//
//   key-queues-1. One that waits is *clear* of a name when he is the first of its line and nobody who is under way has
//       it. He is free when he is clear of all he names; so of one name all go in the order in which they came.
//   key-queues-2. What one costs depends on how much he names, never on how many wait.
//
// It knows neither changes nor groups.

/** Its names are each there once. */
export interface Naming {
  readonly names: readonly string[];
}

interface Waiting<T> {
  readonly item: T;
  /** Of how many names it is not clear. */
  blocked: number;
}

interface Place<T> {
  readonly waiting: Waiting<T>;
  next: Place<T> | undefined;
}

/** There is one for each name that somebody under way has, or that somebody waits for. */
interface Line<T> {
  isTaken: boolean;
  first: Place<T> | undefined;
  last: Place<T> | undefined;
}

export class NameLines<T extends Naming> {
  readonly #lines = new Map<string, Line<T>>();

  /** Whether it is free. If not it waits, until `leave` says that it is. */
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

  /** These are under way: all that are free, so that nobody is passed by those who came after him. */
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

  /** These are over. @returns who is free now, of each name in order. */
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
    // Of each of these names whoever is first is clear now.
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
