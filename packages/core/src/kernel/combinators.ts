// all, allSettled, any, race and select over durable futures and ordinary promises.
//
// They differ from the ones of `Promise` in one thing: when the answer is known, waits and timers that are still open are
// withdrawn in the same batch, so that a loser cannot eat the next signal (K2a). Running tasks go on: racing a model call
// against a signal, again and again, is how a turn is steered. `future.cancel()` stops one.

import { DurableFuture, type FutureOwner } from "./future.ts";

type Awaited_<T extends readonly unknown[]> = { -readonly [K in keyof T]: Awaited<T[K]> };

export class Combinators {
  readonly #owner: FutureOwner;
  /** What the promises given out were made of: a combinator that loses a race takes its own waits with it. */
  readonly #parts = new WeakMap<object, readonly unknown[]>();

  constructor(owner: FutureOwner) {
    this.#owner = owner;
  }

  all<const T extends readonly unknown[]>(items: T): Promise<Awaited_<T>> {
    const all = Promise.all(items.map(asPromise)).catch((error: unknown) => {
      this.#withdrawLosers(items);
      throw error;
    });
    return this.#made(all as Promise<never>, items);
  }

  allSettled<const T extends readonly unknown[]>(
    items: T,
  ): Promise<{ -readonly [K in keyof T]: PromiseSettledResult<Awaited<T[K]>> }> {
    return this.#made(Promise.allSettled(items.map(asPromise)) as Promise<never>, items);
  }

  any<const T extends readonly unknown[]>(items: T): Promise<Awaited<T[number]>> {
    const any = Promise.any(items.map(asPromise)).then((value) => {
      this.#withdrawLosers(items);
      return value;
    });
    return this.#made(any as Promise<never>, items);
  }

  race<const T extends readonly unknown[]>(items: T): Promise<Awaited<T[number]>> {
    const race = Promise.race(items.map(asPromise)).finally(() => this.#withdrawLosers(items));
    return this.#made(race as Promise<never>, items);
  }

  select<T extends { readonly [key: string]: unknown }>(
    items: T,
  ): Promise<
    { [K in keyof T & string]: { readonly key: K; readonly value: Awaited<T[K]> } }[keyof T & string]
  > {
    const keyed = Object.entries(items).map(([key, item]) =>
      asPromise(item).then((value) => ({ key, value })),
    );
    const parts = Object.values(items);
    const first = Promise.race(keyed).finally(() => this.#withdrawLosers(parts));
    return this.#made(first as Promise<never>, parts);
  }

  #made<T>(promise: Promise<T>, items: readonly unknown[]): Promise<T> {
    this.#parts.set(promise, items);
    return promise;
  }

  #withdrawLosers(items: readonly unknown[]): void {
    const losers = [...new Set(this.#openWaits(items))];
    if (losers.length > 0) this.#owner.withdraw(losers);
  }

  #openWaits(items: readonly unknown[]): DurableFuture<unknown>[] {
    return items.flatMap((item) => {
      if (item instanceof DurableFuture) return item.type === "task" || item.settled ? [] : [item];
      return typeof item === "object" && item !== null ? this.#openWaits(this.#parts.get(item) ?? []) : [];
    });
  }
}

/** A promise of it that `Promise.race` may be given: the guard against racing consuming waits looks at futures only. */
function asPromise(item: unknown): Promise<unknown> {
  return item instanceof DurableFuture ? item.then() : Promise.resolve(item);
}
