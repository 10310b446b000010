// `OrderlyStop`: the drivers of a process that stops. Their tasks may end within the grace, and then they
// hand over.

import type { Clock, UnsettledTask } from "@holdfast/core";
import type { Driven } from "../session/driver-environment.ts";
import type { SessionDriver } from "../session/session-driver.ts";

/** Without a limit a storage that does not answer would hold up the stop. */
const LAST_COMMIT_MS = 1_000;

/** Resolves when the handlers of aborted tasks have ended, or with the tasks that still run. */
export type EndTasks = () => Promise<readonly UnsettledTask[] | void>;

export class OrderlyStop {
  readonly #leaving = new Map<Driven, () => void>();

  /** The driver is over. */
  left(driver: Driven): void {
    this.#leaving.get(driver)?.();
  }

  /** All drivers are over when it resolves. */
  async drain(drivers: readonly SessionDriver[], graceOver: Promise<void>, clock: Clock): Promise<void> {
    const gone = Promise.all(
      drivers.map((driver) => new Promise<void>((left) => this.#leaving.set(driver, left))),
    );
    for (const driver of drivers) driver.drain();
    await Promise.race([gone, graceOver]);
    for (const driver of drivers) driver.handOver();
    const late = Promise.withResolvers<void>();
    const cancel = clock.setTimer(late.resolve, LAST_COMMIT_MS);
    await Promise.race([gone, late.promise]);
    cancel();
    for (const driver of drivers) driver.abandon();
  }
}
