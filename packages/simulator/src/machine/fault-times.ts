// `Nemesis` of a simulation: until it is stopped, processes die, close and pause, storage is away, and the
// clock jumps.

import { HOUR_MS } from "@holdfast/core";
import type { Dice } from "../world/dice.ts";
import type { EventLog } from "../world/event-log.ts";
import type { Scheduler } from "../world/scheduler.ts";
import type { Swarm } from "../world/swarm.ts";

/** The processes that faults happen to, by number. */
export interface Victims {
  readonly count: number;
  /** The time after which a silent process loses its claims. */
  readonly leaseMs: number;
  kill(index: number, why: string): void;
  close(index: number): void;
  pause(index: number, ms: number): void;
  /** A person has due sessions run. */
  recover(): void;
}

export interface NemesisOptions {
  readonly victims: Victims;
  readonly scheduler: Scheduler;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly swarm: Swarm;
  /** Set the wall clock's offset from its original time. */
  jumpTo(offsetMs: number): void;
}

export class Nemesis {
  readonly #options: NemesisOptions;
  #isOver = false;
  readonly #states = { away: 0, full: 0 };

  constructor(options: NemesisOptions) {
    this.#options = options;
    const { victims, dice, swarm } = options;
    const { leaseMs } = victims;
    const some = (): number => dice.between(0, victims.count - 1);
    this.#every(swarm.killEveryMs, () => victims.kill(some(), "is killed"));
    this.#every(swarm.closeEveryMs, () => victims.close(some()));
    this.#every(swarm.pauseEveryMs, () =>
      victims.pause(some(), dice.pick([50, leaseMs + 1, leaseMs + dice.between(0, 100), 5 * leaseMs])),
    );
    this.#every(swarm.recoverEveryMs, () => victims.recover());
    this.#every(swarm.outageEveryMs, () => this.#storageIs("away", dice.pick([20, 500, 5_000, 40_000])));
    this.#every(swarm.fullEveryMs, () => this.#storageIs("full", dice.pick([20, 500, 5_000])));
    this.#every(swarm.clockJumpEveryMs, () =>
      options.jumpTo(dice.pick([0, dice.between(-HOUR_MS, HOUR_MS), dice.between(-2_000, 2_000)])),
    );
  }

  get isStorageAway(): boolean {
    return this.#states.away > 0 && !this.#isOver;
  }

  get isStorageFull(): boolean {
    return this.#states.full > 0 && !this.#isOver;
  }

  stop(): void {
    this.#isOver = true;
  }

  #storageIs(state: "away" | "full", ms: number): void {
    const { scheduler, log } = this.#options;
    log.add("storage", `is ${state} for ${ms} ms`);
    this.#states[state]++;
    scheduler.after(ms, undefined, () => void this.#states[state]--);
  }

  #every(meanMs: number, strike: () => void): void {
    if (meanMs === 0) return;
    this.#options.scheduler.after(this.#options.dice.between(1, 2 * meanMs), undefined, () => {
      if (this.#isOver) return;
      strike();
      this.#every(meanMs, strike);
    });
  }
}
