// `HandOvers`: the tasks of one session at an orderly stop of its process (attempts-8).

import type { OpenTask, RecordedError } from "@holdfast/core";
import { keptOutcome } from "./drafts.ts";
import { unknownEnd } from "./spending.ts";
import type { StartedAttempt } from "./started-attempt.ts";
import type { TaskSession, TaskWorld } from "./task-session.ts";
import type { TaskStarts } from "./task-starts.ts";
import type { TaskTimes } from "./task-times.ts";

/** After so many hand-overs of one task, its session waits for a person. */
const HAND_OVERS_MAX = 10;

/** The error of an attempt that an orderly stop has cut off. */
const STOPPED: RecordedError = {
  name: "AbortError",
  message: "its process was stopped, and the grace was over before the attempt had ended",
};

interface Unbegun {
  readonly unbegun: ReadonlyMap<number, number>;
  readonly starts: Pick<TaskStarts, "wasBegun">;
}

interface HandOverParts {
  readonly world: TaskWorld;
  readonly session: TaskSession;
  readonly running: Map<number, StartedAttempt>;
  readonly retries: TaskTimes;
  readonly deadlines: TaskTimes;
}

export class HandOvers {
  readonly #parts: HandOverParts;
  #isDraining = false;
  /** The attempts that the journal says have not begun, by the number of their task. */
  readonly #left = new Map<number, number>();

  constructor(parts: HandOverParts) {
    this.#parts = parts;
  }

  /** Whether nothing begins any more. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Begin nothing more. Attempts that outlive this process are left to the next driver. */
  drain(): void {
    const { running, retries } = this.#parts;
    this.#isDraining = true;
    for (const [id, started] of running) {
      const { handle, task } = started;
      const isElsewhere = handle?.leave !== undefined;
      if (!isElsewhere && handle?.hasBegun !== false) continue;
      running.delete(id);
      started.traceEnded("cancelled");
      if (isElsewhere) handle?.leave?.();
      else {
        handle?.abort(STOPPED.message);
        this.#leaveWaiting(task);
      }
    }
    retries.clear();
  }

  /** attempts-9. Where a budget or a pause tells that an attempt has not begun, the journal need not. */
  leaveUnbegun({ unbegun, starts }: Unbegun): void {
    for (const [id, first] of unbegun) {
      const task = this.#parts.session.openTask(id);
      if (task === undefined || task.attempt < first || task.kept !== undefined || task.isPaused) continue;
      if (starts.wasBegun(task) === false || this.#left.get(id) === task.attempt) continue;
      this.#left.set(id, task.attempt);
      this.#leaveWaiting(task);
    }
  }

  /** The attempt has not begun. */
  #leaveWaiting({ id, attempt, retryAt }: OpenTask): void {
    const { world, session } = this.#parts;
    const at = world.clock.now();
    const note = { type: "attempt_failed", task: id, attempt, at, retryAt: retryAt ?? at } as const;
    session.note({ ...note, handedOver: "waiting", payload: JSON.stringify(STOPPED) });
  }

  /**
   * Hand over all that runs.
   *
   * @returns the task that was handed over too often.
   */
  handOver(): OpenTask | undefined {
    const { world, session, running, deadlines } = this.#parts;
    let tooOften: OpenTask | undefined;
    for (const [id, started] of running) {
      const { task, attempt, usage, handle } = started;
      running.delete(id);
      deadlines.forget(id);
      started.traceEnded("cancelled");
      handle?.abort(STOPPED.message, true);
      if (session.openTask(id) !== task) continue;
      const at = world.clock.now();
      // mutant: once-handed-over
      const error = unknownEnd(task, STOPPED);
      const used = usage === undefined ? {} : { usage };
      const ended = { task: id, attempt, at, ...used, payload: JSON.stringify(error) };
      if (error !== STOPPED) {
        session.note(keptOutcome({ type: "task_failed", ...ended }));
        continue;
      }
      // mutant: hand-overs-unlimited
      if ((task.handedOver + 1) % HAND_OVERS_MAX === 0) tooOften = task;
      // mutant: hand-over-not-recorded
      session.note({ type: "attempt_failed", ...ended, retryAt: at, paused: true, handedOver: "running" });
    }
    return tooOften;
  }
}
