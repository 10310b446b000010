// TaskPlacement decides where a task runs (K10b): in this process if it has the task's handler, otherwise in
// the queue.
//
// Closures of `ctx.run` always run here, because no other process has them.

import {
  type Clock,
  type AttemptOutcome,
  defined,
  type LostAttempt,
  type RunningAttempt,
  type TaskAttempt,
  type TaskExecutor,
  type TaskTraits,
  type UnsettledTask,
} from "@holdfast/core";
import { environmentKeys, environmentSecrets } from "./node/node-ports.ts";
import { LocalTaskExecutor, type LocalTaskExecutorOptions } from "./tasks/local/local-task-executor.ts";
import type { RuntimeOptions } from "./api/runtime-api.ts";

/**
 * The executor of a runtime's tasks. Agents register their tasks with `local`, which is absent when the
 * program passes an executor of its own.
 */
export function executorsOf(
  { tasks, queue, concurrency, secrets = environmentSecrets }: RuntimeOptions,
  clock: Clock,
  payloadChars: number,
  host: Pick<
    LocalTaskExecutorOptions,
    "checkLease" | "steps" | "read" | "signal" | "overlapMs" | "onCrowded"
  >,
): { readonly executor: TaskExecutor; readonly local: LocalTaskExecutor | undefined } {
  const local = isExecutor(tasks)
    ? undefined
    : new LocalTaskExecutor({
        tasks: tasks ?? [],
        clock,
        payloadChars,
        secrets,
        knownKeys: environmentKeys(),
        ...host,
        ...defined({ concurrency }),
      });
  const here = isExecutor(tasks) ? tasks : local!;
  return { executor: queue === undefined ? here : new TaskPlacement(here, queue), local };
}

function isExecutor(tasks: RuntimeOptions["tasks"]): tasks is TaskExecutor {
  return tasks !== undefined && !Array.isArray(tasks);
}

class TaskPlacement implements TaskExecutor {
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

  /**
   * If this process has the handler, an attempt that another process queued counts as lost. Waiting for it
   * could deadlock: the waiting sessions may occupy the slots that would run it.
   */
  isRunning(attempt: Parameters<NonNullable<TaskExecutor["isRunning"]>>[0]): Promise<boolean> | undefined {
    const placed = this.#of(attempt.kind);
    if (placed === this.#queue || this.#queue.describe(attempt.kind) === undefined)
      return placed.isRunning?.(attempt);
    return this.#queue.withdraw?.(attempt)?.then(() => false);
  }

  withdraw(attempt: Parameters<NonNullable<TaskExecutor["withdraw"]>>[0]): Promise<void> | undefined {
    return this.#queue.withdraw?.(attempt);
  }

  async close(graceMs?: number): Promise<readonly UnsettledTask[]> {
    const unsettled = await Promise.all([this.#here.close(graceMs), this.#queue.close(graceMs)]);
    return unsettled.flatMap((tasks) => tasks ?? []);
  }

  #of(kind: string): TaskExecutor {
    return this.#here.describe(kind) === undefined ? this.#queue : this.#here;
  }
}
