// `NothingWatch`: reports an agent that awaits nothing durable for `blockedOnNothingMs` (K2).

import type { DriverWorld } from "./driver-environment.ts";
import { alarm, type Alarm } from "../loop/timers.ts";

export class NothingWatch {
  readonly #world: Pick<DriverWorld, "limits" | "timers">;
  readonly #alarm: Alarm;

  constructor(world: Pick<DriverWorld, "limits" | "timers">, report: () => void) {
    this.#world = world;
    this.#alarm = alarm(report);
  }

  /** @param isBlockedOnNothing whether the agent is now blocked on nothing durable. */
  watch(isBlockedOnNothing: boolean): void {
    const { timers, limits } = this.#world;
    timers.after(this.#alarm, isBlockedOnNothing ? limits.blockedOnNothingMs : Infinity);
  }
}
