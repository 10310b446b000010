// `TaskTimes`: the times of a session's open tasks, at most one for each task, for retries or for deadlines.

import { type OpenTask, type Queued, WakeQueue } from "@holdfast/core";

interface Moment extends Queued {
  readonly task: OpenTask;
}

export class TaskTimes {
  readonly #moments = new Map<number, Moment>();
  readonly #queue = new WakeQueue<Moment>();

  /** Epoch milliseconds of the earliest moment. */
  get first(): number | undefined {
    return this.#queue.first()?.queuedFor;
  }

  /** Set the moment of a task, in place of an earlier one. */
  set(task: OpenTask, at: number): void {
    this.forget(task.id);
    const moment = { task, queuedFor: Infinity, queueIndex: -1, queueOrder: task.id };
    this.#moments.set(task.id, moment);
    this.#queue.set(moment, at);
  }

  forget(id: number): void {
    const moment = this.#moments.get(id);
    if (moment === undefined) return;
    this.#moments.delete(id);
    this.#queue.set(moment, Infinity);
  }

  clear(): void {
    for (const id of this.#moments.keys()) this.forget(id);
  }

  /** Take out the earliest task whose moment has come by `now`. */
  takeDue(now: number): OpenTask | undefined {
    const next = this.#queue.first();
    if (next === undefined || next.queuedFor > now) return undefined;
    this.forget(next.task.id);
    return next.task;
  }
}
