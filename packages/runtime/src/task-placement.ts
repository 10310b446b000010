// Where a task is done (K10b): in this process if it has the task's handler, otherwise by the queue.
//
// Closures of `ctx.run` are always done here: nobody else has them.

import type {
  AttemptOutcome,
  LostAttempt,
  RunningAttempt,
  TaskAttempt,
  TaskExecutor,
  TaskTraits,
} from "@holdfast/core";

export class TaskPlacement implements TaskExecutor {
  readonly #here: TaskExecutor;
  readonly #queue: TaskExecutor;

  constructor(here: TaskExecutor, queue: TaskExecutor) {
    this.#here = here;
    this.#queue = queue;
  }

  describe(kind: string): TaskTraits | undefined {
    return this.#here.describe(kind) ?? this.#queue.describe(kind);
  }

  kinds(): readonly string[] {
    return [...new Set([...this.#here.kinds(), ...this.#queue.kinds()])];
  }

  start(attempt: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt {
    const placed = attempt.closure === undefined ? this.#of(attempt.kind) : this.#here;
    return placed.start(attempt, onEnd);
  }

  endLost(attempt: LostAttempt): Promise<void> | undefined {
    return this.#of(attempt.kind).endLost?.(attempt);
  }

  /** Where it is done now; one that was begun at the other place is lost. */
  goesOn(attempt: Parameters<NonNullable<TaskExecutor["goesOn"]>>[0]): Promise<boolean> | undefined {
    return this.#of(attempt.kind).goesOn?.(attempt);
  }

  async close(): Promise<void> {
    await Promise.all([this.#here.close(), this.#queue.close()]);
  }

  #of(kind: string): TaskExecutor {
    return this.#here.describe(kind) === undefined ? this.#queue : this.#here;
  }
}
