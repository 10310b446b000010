// `Combinators`: all, allSettled, any, race and select over durable futures and ordinary promises.
//
// They differ from the functions of `Promise` in one thing. When the answer is known, open waits and timers
// are withdrawn in the same batch, so that a loser cannot consume the next signal (K2a). Running tasks
// continue: a turn is steered by racing a model call against a signal, again and again. `future.cancel()`
// stops a task.

import { DurableFuture, type FutureOwner } from "../replay/future.ts";

type Awaited_<T extends readonly unknown[]> = { -readonly [K in keyof T]: Awaited<T[K]> };

export class Combinators {
  readonly #owner: FutureOwner;
  /**
   * The items of each promise that a combinator returned. If that promise loses a race, its own waits are
   * withdrawn too.
   */
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
    // mutant: losers-stay-open
    if (losers.length > 0) this.#owner.withdraw(losers);
  }

  #openWaits(items: readonly unknown[]): DurableFuture<unknown>[] {
    return items.flatMap((item) => {
      if (item instanceof DurableFuture) return item.type === "task" || item.settled ? [] : [item];
      return typeof item === "object" && item !== null ? this.#openWaits(this.#parts.get(item) ?? []) : [];
    });
  }
}

/**
 * A plain promise for `Promise.race`, because the guard against racing consuming waits examines futures only.
 */
function asPromise(item: unknown): Promise<unknown> {
  return item instanceof DurableFuture ? item.then() : Promise.resolve(item);
}
