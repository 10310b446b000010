// `SettlementQueue`: the drivers whose tasks wait for room in a budget, woken a few at a time, in the order
// they came.
//
//   - A settlement wakes `WOKEN` drivers of each payer that it concerns. A driver whose tasks are admitted
//     wakes as many others. The wakes are in proportion to what is admitted, not to what waits.
//   - All drivers are woken after `RETRY_MS`. Another process may have settled, and a driver that still waits
//     for much may stand before drivers that wait for little.
//
// It knows no amounts: storage decides what is admitted.

import type { Driven } from "../session/driver-environment.ts";
import { alarm, type Timers } from "../loop/timers.ts";

const WOKEN = 2;
const RETRY_MS = 500;

export class SettlementQueue {
  readonly #timers: () => Timers;
  readonly #alarm = alarm(() => this.#wakeAll());
  /** Drivers that wait, with the sessions whose budgets pay for them. */
  readonly #waiting = new Map<Driven, readonly string[]>();
  /** The same drivers by each of their payers. */
  readonly #byPayer = new Map<string, Set<Driven>>();
  /** Drivers that were woken and have not asked since. */
  readonly #woken = new Map<Driven, readonly string[]>();

  constructor(timers: () => Timers) {
    this.#timers = timers;
  }

  /** A driver has asked for its tasks. @param waits whether some of them still wait for room. */
  asked(driver: Driven, payers: readonly string[], waits: boolean): void {
    const wasWoken = this.#woken.delete(driver);
    if (waits) this.#add(driver, payers);
    else if (wasWoken) this.settled(payers);
  }

  /** There may be room in the budgets of these sessions. */
  settled(payers: readonly string[]): void {
    if (this.#waiting.size === 0) return;
    for (const payer of payers) {
      const drivers = this.#byPayer.get(payer) ?? [];
      for (const driver of take(drivers, WOKEN)) this.#wake(driver);
    }
  }

  /** A driver is over. Room that it was woken for may be for another driver. */
  delete(driver: Driven): void {
    this.#remove(driver);
    const payers = this.#woken.get(driver);
    this.#woken.delete(driver);
    if (payers !== undefined) this.settled(payers);
  }

  #add(driver: Driven, payers: readonly string[]): void {
    this.#remove(driver);
    this.#waiting.set(driver, payers);
    for (const payer of payers) {
      const drivers = this.#byPayer.get(payer) ?? new Set();
      this.#byPayer.set(payer, drivers.add(driver));
    }
    if (this.#alarm.queuedFor === Infinity) this.#timers().after(this.#alarm, RETRY_MS);
  }

  #remove(driver: Driven): void {
    for (const payer of this.#waiting.get(driver) ?? []) {
      const drivers = this.#byPayer.get(payer);
      drivers?.delete(driver);
      if (drivers?.size === 0) this.#byPayer.delete(payer);
    }
    this.#waiting.delete(driver);
  }

  #wake(driver: Driven): void {
    this.#woken.set(driver, this.#waiting.get(driver) ?? []);
    this.#remove(driver);
    driver.retryQueued();
  }

  #wakeAll(): void {
    for (const driver of this.#waiting.keys()) this.#wake(driver);
  }
}

function* take<T>(items: Iterable<T>, count: number): Iterable<T> {
  let taken = 0;
  for (const item of items) {
    if (taken++ === count) return;
    yield item;
  }
}
