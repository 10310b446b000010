// The attempts of one session's tasks: started, ended, tried again, given up, aborted.
//
//   A1. An attempt starts only when told to, which is after the batch that asked for it is committed (D1).
//   A2. An attempt's end is news only while its task is open and this is its newest attempt.
//   A3. What cost a process before is kept before it is delivered (K6).
//
// Knows no storage and no kernel: it is told which tasks are open, and gives back events to deliver and notes to add.

import {
  mayRetryLost,
  positionId,
  retryDelayMs,
  type AttemptOutcome,
  type Clock,
  type ConversationEntry,
  type EventRecord,
  type NoteRecord,
  type OpenTask,
  type RunningAttempt,
  type TaskAttempt,
  type TaskExecutor,
  type TraceBody,
} from "@holdfast/core";

type Draft<R> = R extends unknown ? Omit<R, "seq" | "id"> : never;
export type EventDraft = Draft<EventRecord>;
export type NoteDraft = Draft<NoteRecord>;

/** What attempts need of the session they belong to. */
export interface AttemptsHost {
  readonly sessionId: string;
  readonly executor: TaskExecutor;
  readonly clock: Clock;
  /** Integers in [0, 2^32), for jitter. */
  readonly random: () => number;
  /** The task of this number, while nobody has heard its outcome. */
  openTask(id: number): OpenTask | undefined;
  conversation(leaf: number): Promise<readonly ConversationEntry[]>;
  enter<T>(fn: () => T): T;
  /** Absent when nobody listens. */
  readonly trace: ((event: TraceBody) => void) | undefined;
  deliver(event: EventDraft): void;
  note(note: NoteDraft): void;
}

export class Attempts {
  readonly #host: AttemptsHost;
  readonly #running = new Map<number, RunningAttempt>();
  readonly #retries = new Map<number, OpenTask>();

  constructor(host: AttemptsHost) {
    this.#host = host;
  }

  /** The earliest moment a task is to be tried again. */
  get wakeAt(): number | undefined {
    if (this.#retries.size === 0) return undefined;
    let earliest: number | undefined;
    for (const { retryAt } of this.#retries.values()) {
      if (retryAt !== undefined && (earliest === undefined || retryAt < earliest)) earliest = retryAt;
    }
    return earliest;
  }

  /** Follow up on a note that is now committed. */
  noted(note: { readonly type: string; readonly task?: number }): void {
    const task = note.task === undefined ? undefined : this.#host.openTask(note.task);
    if (task === undefined) return;
    if (note.type === "attempt_failed") this.#retries.set(task.id, task);
    else if (note.type === "attempt_lost" && !this.#running.has(task.id)) this.start(task);
    else if (note.type === "outcome_kept") this.#deliverKept(task);
  }

  start(task: OpenTask): void {
    const { sessionId, clock, executor } = this.#host;
    const { id, kind, attempt } = task;
    const taskId = positionId(sessionId, id);
    const startedAt = clock.monotonic();
    let offset = 0;
    this.#host.trace?.({ type: "task_started", taskId, kind, attempt, input: task.input });
    const request: TaskAttempt = {
      sessionId,
      taskId,
      kind,
      input: task.input,
      attempt,
      idempotencyKey: task.key === undefined ? taskId : `${sessionId}:${task.key}`,
      timeoutMs: task.timeoutMs,
      ...(task.closure === undefined ? {} : { closure: task.closure }),
      conversation: (leaf) => this.#host.conversation(leaf),
      onDelta: (delta) =>
        this.#host.trace?.({ type: "task_delta", taskId, kind, attempt, offset: offset++, delta }),
    };
    const onEnd = (outcome: AttemptOutcome): void => {
      if (this.#running.get(id) === running) this.#running.delete(id);
      this.#ended(task, attempt, startedAt, outcome);
    };
    const running = this.#host.enter(() => executor.start(request, onEnd));
    this.#running.set(id, running);
  }

  /** Start the tasks whose back-off is over. */
  startDueRetries(now: number): void {
    if (this.#retries.size === 0) return;
    for (const [id, task] of this.#retries) {
      if ((task.retryAt ?? 0) > now) continue;
      this.#retries.delete(id);
      if (this.#host.openTask(id) === task) this.start(task);
    }
  }

  abort(id: number, reason: string): void {
    this.#retries.delete(id);
    this.#running.get(id)?.abort(reason);
    this.#running.delete(id);
  }

  abortAll(reason: string): void {
    this.#retries.clear();
    for (const id of this.#running.keys()) this.abort(id, reason);
  }

  /** After a replay: go on with the tasks that have no outcome (H7, H8). */
  recover(tasks: readonly OpenTask[], at: number): void {
    for (const task of tasks) {
      const { id, attempt, retry } = task;
      if (task.kept !== undefined) {
        this.#deliverKept(task);
      } else if (task.retryAt !== undefined && task.retryAt > at) {
        this.#retries.set(id, task); // Never early, so it cannot have been started.
      } else if (mayRetryLost(retry, attempt)) {
        this.#host.note({ type: "attempt_lost", task: id, attempt, at });
      } else {
        const message = `attempt ${attempt} of ${retry?.maxAttempts ?? attempt} was running when its process ended; its outcome is unknown`;
        const payload = JSON.stringify({ name: "AttemptLostError", message, code: "task_failed" });
        this.#host.deliver({ type: "task_failed", task: id, attempt, at, payload });
      }
    }
  }

  #ended(task: OpenTask, attempt: number, startedAt: number, outcome: AttemptOutcome): void {
    const { id, kind } = task;
    if (this.#host.openTask(id) !== task || attempt !== task.attempt) return; // A2.
    const { trace } = this.#host;
    const at = this.#host.clock.now();
    const traced = trace && {
      type: "task_ended" as const,
      taskId: positionId(this.#host.sessionId, id),
      kind,
      attempt,
      durationMs: this.#host.clock.monotonic() - startedAt,
    };
    switch (outcome.status) {
      case "aborted":
        if (traced) trace({ ...traced, outcome: "cancelled" });
        return;
      case "completed":
        if (traced) trace({ ...traced, outcome: "completed", output: outcome.output });
        this.#finish(task, { type: "task_completed", task: id, attempt, at, payload: outcome.output });
        return;
      case "failed": {
        const delayMs = retryDelayMs(task.retry, attempt, outcome, this.#host.random() / 0x1_0000_0000);
        const payload = JSON.stringify(outcome.error);
        const traceOutcome = delayMs === undefined ? "failed" : "retrying";
        if (traced) trace({ ...traced, outcome: traceOutcome, error: outcome.error });
        if (delayMs === undefined)
          this.#finish(task, { type: "task_failed", task: id, attempt, at, payload });
        else
          this.#host.note({ type: "attempt_failed", task: id, attempt, at, retryAt: at + delayMs, payload });
        return;
      }
    }
  }

  #finish(task: OpenTask, event: Extract<EventDraft, { type: "task_completed" | "task_failed" }>): void {
    if (!task.lost) return this.#host.deliver(event);
    const { type: outcome, task: id, attempt, at, payload } = event;
    this.#host.note({ type: "outcome_kept", outcome, task: id, attempt, at, payload }); // A3.
  }

  #deliverKept({ id, kept, attempt }: OpenTask): void {
    if (kept === undefined) return;
    this.#host.deliver({
      type: kept.outcome,
      task: id,
      attempt,
      at: this.#host.clock.now(),
      payload: kept.payload,
    });
  }
}
