// `MemorySchedules`: the schedules in memory, by id and by when they fire next. The cost of a search depends
// only on how many are due.

import { type Queued, type Schedule, WakeQueue } from "@holdfast/core";

interface Placed extends Queued {
  readonly schedule: Schedule;
}

export class MemorySchedules {
  readonly #byId = new Map<string, Placed>();
  readonly #byTime = new WakeQueue<Placed>();

  get(scheduleId: string): Schedule | undefined {
    return this.#byId.get(scheduleId)?.schedule;
  }

  put(schedule: Schedule): void {
    this.remove(schedule.scheduleId);
    const placed: Placed = { schedule, queuedFor: Infinity, queueIndex: -1 };
    this.#byId.set(schedule.scheduleId, placed);
    this.#byTime.set(placed, schedule.nextAt);
  }

  remove(scheduleId: string): void {
    const placed = this.#byId.get(scheduleId);
    if (placed === undefined) return;
    this.#byId.delete(scheduleId);
    this.#byTime.set(placed, Infinity);
  }

  /** All schedules, in the order in which they fire next. */
  all(): Schedule[] {
    return Array.from(this.#byId.values(), ({ schedule }) => schedule).sort(byNextAt);
  }

  /**
   * The schedules to fire by `now`, the earliest first, and the next time after that; `Infinity` when there is
   * none.
   */
  due(now: number): { readonly schedules: readonly Schedule[]; readonly nextAt: number } {
    const { items, nextAt } = this.#byTime.upTo(now);
    return { schedules: items.map(({ schedule }) => schedule).sort(byNextAt), nextAt };
  }
}

function byNextAt(a: Schedule, b: Schedule): number {
  return a.nextAt - b.nextAt || (a.scheduleId < b.scheduleId ? -1 : 1);
}
