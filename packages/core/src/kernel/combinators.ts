// all, allSettled, any, race and select over durable futures and ordinary promises.
//
// They differ from the ones of `Promise` in one thing: when the answer is known, waits and timers that are still open are
// withdrawn in the same batch, so that a loser cannot eat the next signal (K2a). Running tasks go on: racing a model call
// against a signal, again and again, is how a turn is steered. `future.cancel()` stops one.

import { DurableFuture, type FutureOwner } from "./future.ts";

type Awaited_<T extends readonly unknown[]> = { -readonly [K in keyof T]: Awaited<T[K]> };

export class Combinators {
  readonly #owner: FutureOwner;

  constructor(owner: FutureOwner) {
    this.#owner = owner;
  }

  async all<const T extends readonly unknown[]>(items: T): Promise<Awaited_<T>> {
    try {
      return (await Promise.all(items.map(asPromise))) as Awaited_<T>;
    } catch (error) {
      this.#withdrawLosers(items);
      throw error;
    }
  }

  allSettled<const T extends readonly unknown[]>(
    items: T,
  ): Promise<{ -readonly [K in keyof T]: PromiseSettledResult<Awaited<T[K]>> }> {
    return Promise.allSettled(items.map(asPromise)) as Promise<never>;
  }

  async any<const T extends readonly unknown[]>(items: T): Promise<Awaited<T[number]>> {
    const value = await Promise.any(items.map(asPromise));
    this.#withdrawLosers(items);
    return value as Awaited<T[number]>;
  }

  async race<const T extends readonly unknown[]>(items: T): Promise<Awaited<T[number]>> {
    try {
      return (await Promise.race(items.map(asPromise))) as Awaited<T[number]>;
    } finally {
      this.#withdrawLosers(items);
    }
  }

  async select<T extends { readonly [key: string]: unknown }>(
    items: T,
  ): Promise<{ [K in keyof T & string]: { readonly key: K; readonly value: Awaited<T[K]> } }[keyof T & string]> {
    const keyed = Object.entries(items).map(([key, item]) => asPromise(item).then((value) => ({ key, value })));
    try {
      return (await Promise.race(keyed)) as never;
    } finally {
      this.#withdrawLosers(Object.values(items));
    }
  }

  #withdrawLosers(items: readonly unknown[]): void {
    const losers = items.filter(
      (item): item is DurableFuture<unknown> => item instanceof DurableFuture && item.type !== "task" && !item.settled,
    );
    if (losers.length > 0) this.#owner.withdraw(losers);
  }
}

/** A promise of it that `Promise.race` may be given: the guard against racing consuming waits looks at futures only. */
function asPromise(item: unknown): Promise<unknown> {
  return item instanceof DurableFuture ? item.then() : Promise.resolve(item);
}
