// `PendingList`: the unconsumed signals of one session in memory, in the order of their arrival.
//
// Adding, finding and removing a signal costs O(log n) for any backlog. Most sessions never get a signal, so
// the lists are made for the first one.

import { invariant, PendingNames, type StoredSignal, type Wait } from "@holdfast/core";
import { PositionList } from "./position-list.ts";

interface Placed {
  /** The signal's order. */
  readonly position: number;
  readonly signal: StoredSignal;
}

interface Lists {
  readonly byId: Map<string, Placed>;
  readonly byOrder: PositionList<Placed>;
  readonly names: PendingNames;
}

export class PendingList {
  #lists: Lists | undefined;

  get size(): number {
    return this.#lists?.byId.size ?? 0;
  }

  has(signalId: string): boolean {
    return this.#lists?.byId.has(signalId) === true;
  }

  add(signal: StoredSignal): void {
    const { byId, byOrder, names } = (this.#lists ??= {
      byId: new Map(),
      byOrder: new PositionList(),
      names: new PendingNames(),
    });
    const placed = { position: signal.order, signal };
    byId.set(signal.signalId, placed);
    byOrder.add(placed);
    names.add(signal.name);
  }

  remove(signalId: string): void {
    const placed = this.#lists?.byId.get(signalId);
    invariant(this.#lists !== undefined && placed !== undefined, `signal ${signalId} is not pending`);
    const { byId, byOrder, names } = this.#lists;
    byId.delete(signalId);
    byOrder.remove(placed);
    names.remove(placed.signal.name);
  }

  clear(): void {
    this.#lists = undefined;
  }

  /** The signals after this position in the inbox, the oldest first. */
  after(order: number): StoredSignal[] {
    if (this.#lists === undefined) return [];
    return Array.from(this.#lists.byOrder.above(order), ({ signal }) => signal);
  }

  /** Whether one of the signals satisfies one of these waits. */
  answers(waits: readonly Wait[]): boolean {
    return this.#lists?.names.answers(waits) === true;
  }
}
