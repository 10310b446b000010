// Turns: calls about the same thing, mostly a session, run one after the other, in the order in which they
// came.
//
// The database would put them in some order as well. But a caller that calls twice without waiting expects
// its own order.

import { ChurnMap } from "@holdfast/core";

export class Turns {
  /** The last call about each. */
  readonly #last = new ChurnMap<string, Promise<unknown>>();

  /** Run `work` once all earlier calls about any of these are over. */
  async take<T>(names: Iterable<string>, work: () => Promise<T>): Promise<T> {
    const before = new Set<Promise<unknown>>();
    const ids = [...names];
    for (const id of ids) {
      const last = this.#last.get(id);
      if (last !== undefined) before.add(last);
    }
    const call = before.size === 0 ? work() : Promise.allSettled(before).then(work);
    for (const id of ids) this.#last.set(id, call);
    try {
      return await call;
    } finally {
      for (const id of ids) if (this.#last.get(id) === call) this.#last.delete(id);
    }
  }
}
