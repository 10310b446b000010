// `Attempts`: starts, retries, gives up and aborts the attempts of one session's tasks.
//
//   - An attempt starts only after the batch that asked for it is committed (D1).
//   - An attempt's end counts only while its task is open and has no newer attempt.
//   - After an attempt was lost with its process, an outcome is stored before it is delivered (K6).
//   - The end of every started attempt is traced once: when it ends, or when it is told to stop.
//   - An attempt that an earlier process queued elsewhere is found again. It is withdrawn once its task is no
//     longer open, even before the queue has answered whether it runs.
//   - No attempt begins after its task's deadline. At the deadline a running attempt is aborted and the task
//     fails, also between attempts and after a restart.
//   attempts-7. An attempt that asks for a pause of its session is recorded with the pause. It counts toward
//       no limit, and the next attempt begins when the session resumes. A task that may have no other attempt
//       fails.
//   attempts-8. At an orderly stop nothing begins, and an attempt that has not begun is left as it is. An
//       attempt that outlasts the grace is handed over: it is aborted and does not count. An effect that
//       happens once is uncertain then. The next process records the beginning of what was handed over before
//       it begins.
//   attempts-9. When the session is let go of, it is known which attempts have not begun. The next driver in
//       this process begins them, and counts none as lost (`unbegun-tasks.ts`). The last commit before a
//       pause or an orderly stop says so to others.
//
// It knows no storage and no kernel: it gets the open tasks, and returns events to deliver and notes to add.

import {
  mayRetryLost,
  positionId,
  retryDelayMs,
  type AttemptOutcome,
  type JournalRecord,
  type NoteRecord,
  type OpenTask,
  type RecordedError,
  type RunningAttempt,
} from "@holdfast/core";
import { keptOutcome, type OutcomeDraft } from "./drafts.ts";
import { HandOvers } from "./hand-overs.ts";
import { keyOf, StartedAttempt } from "./started-attempt.ts";
import { lossOf, unknownEnd, type Spending } from "./spending.ts";
import type { TaskSession, TaskWorld } from "./task-session.ts";
import { TaskStarts } from "./task-starts.ts";
import { TaskTimes } from "./task-times.ts";
import { wantingPatch } from "./wanting-patch.ts";

type FailedOutcome = Extract<AttemptOutcome, { readonly status: "failed" }>;

const OUTCOMES: ReadonlySet<string> = new Set([
  "task_completed",
  "task_failed",
  "attempt_failed",
  "outcome_kept",
]);

export class Attempts {
  /** Which tasks start, and when. */
  readonly starts: TaskStarts;
  /** attempts-8. */
  readonly stop: HandOvers;
  /**
   * attempts-9. The first attempt that has not begun, neither here nor elsewhere, by the number of its task. An
   * attempt that ended before it began is the first one until another begins.
   */
  readonly unbegun: Map<number, number>;
  readonly #world: TaskWorld;
  readonly #session: TaskSession;
  readonly #running = new Map<number, StartedAttempt>();
  readonly #retries = new TaskTimes();
  /** The deadlines of tasks that have no outcome yet. */
  readonly #deadlines = new TaskTimes();
  /** Tasks whose attempt may still run elsewhere, until the queue has answered. */
  readonly #asked = new Map<number, OpenTask>();
  /** Ended attempts that must be notified when their end is committed. */
  readonly #unrecorded = new Map<number, RunningAttempt>();

  /** @param spending absent for a session without a payer. */
  constructor(world: TaskWorld, session: TaskSession, spending: Spending | undefined) {
    this.#world = world;
    this.#session = session;
    this.unbegun = new Map(world.unbegun.take(session.sessionId, session.token));
    this.starts = new TaskStarts(session, this, spending);
    const times = { retries: this.#retries, deadlines: this.#deadlines };
    this.stop = new HandOvers({ world, session, running: this.#running, ...times });
  }

  /** How many run now. */
  get running(): number {
    return this.#running.size;
  }

  /** The earliest time of a retry or a deadline. */
  get wakeAt(): number | undefined {
    const earliest = Math.min(this.#retries.first ?? Infinity, this.#deadlines.first ?? Infinity);
    return earliest === Infinity ? undefined : earliest;
  }

  /** These tasks are open from the next commit on. */
  opened(tasks: readonly OpenTask[]): void {
    watchDeadlines(this.#deadlines, tasks);
    // mutant: unbegun-not-noted
    for (const { id, attempt } of tasks) this.unbegun.set(id, attempt);
  }

  /** Follow up on a note that is now committed. */
  noted(note: NoteRecord): void {
    if (!("task" in note)) return;
    const task = this.#session.openTask(note.task);
    if (task === undefined || this.stop.isDraining) return;
    if (note.type === "attempt_failed") this.#retryLater(task);
    else if (note.type === "attempt_lost" && note.begins === true) {
      if ((task.retryAt ?? 0) > this.#world.clock.now()) this.#retryLater(task);
      else this.starts.begin([task]);
    } else if (note.type === "outcome_kept") this.#deliverKept(task);
  }

  /** These records are committed. */
  recorded(records: readonly JournalRecord[]): void {
    if (this.#unrecorded.size === 0) return;
    for (const record of records) {
      const isOutcome = OUTCOMES.has(record.type) && "task" in record;
      if (isOutcome) this.#settleUnrecorded(record.task);
    }
  }

  /** The outcome of the task is committed, or no longer needed. */
  #settleUnrecorded(id: number): void {
    const handle = this.#unrecorded.get(id);
    this.#unrecorded.delete(id);
    handle?.recorded?.();
  }

  start(task: OpenTask): void {
    if (this.stop.isDraining) return;
    if (isOverdue(task, this.#world.clock.now())) return this.#expire(task);
    this.unbegun.delete(task.id);
    const running = new StartedAttempt(this.#world, this.#session, task);
    running.traceStarted();
    this.#running.set(task.id, running);
    running.handle = this.#world.executor.start(running, (outcome) => this.#ended(running, outcome));
  }

  /** Fail a task that its budget can never pay for, without running it. */
  refuse({ id, attempt }: OpenTask, error: RecordedError): void {
    const at = this.#world.clock.now();
    this.#deliver({ type: "task_failed", task: id, attempt, at, payload: JSON.stringify(error) });
  }

  /** Fail the tasks whose deadline has come. */
  expireDue(now: number): void {
    for (let task = this.#deadlines.takeDue(now); task !== undefined; task = this.#deadlines.takeDue(now))
      if (this.#session.openTask(task.id) === task && task.kept === undefined) this.#expire(task);
  }

  #expire(task: OpenTask): void {
    const { id } = task;
    this.#retries.forget(id);
    const running = this.#running.get(id);
    const mayHaveRun = this.#asked.has(id) || (running !== undefined && running.handle?.hasBegun !== false);
    const error = mayHaveRun ? unknownEnd(task, pastDeadline(task)) : pastDeadline(task);
    this.#withdraw(id);
    if (running !== undefined) {
      this.#running.delete(id);
      running.traceEnded("failed", { error });
      running.handle?.abort(`its task ${pastDeadline(task).message}`);
    }
    const usage = running?.usage === undefined ? {} : { usage: running.usage };
    const { attempt } = task;
    const at = this.#world.clock.now();
    this.#deliver({ type: "task_failed", task: id, attempt, at, ...usage, payload: JSON.stringify(error) });
  }

  /** Start the tasks whose back-off is over. */
  startDueRetries(now: number): void {
    for (let task = this.#retries.takeDue(now); task !== undefined; task = this.#retries.takeDue(now))
      if (this.#session.openTask(task.id) === task) this.starts.begin([task]);
  }

  #retryLater(task: OpenTask): void {
    this.#retries.set(task, task.retryAt ?? 0);
  }

  abort(id: number, reason: string, isUrgent = false): void {
    this.#retries.forget(id);
    this.#deadlines.forget(id);
    this.#withdraw(id);
    this.#settleUnrecorded(id);
    const running = this.#running.get(id);
    if (running === undefined) return;
    this.#running.delete(id);
    // mutant: waiting-attempt-begun
    if (running.handle?.hasBegun === false) this.unbegun.set(id, running.attempt);
    running.traceEnded("cancelled");
    running.handle?.abort(reason, isUrgent);
  }

  /**
   * @param isForGood whether their outcomes are never needed again: not so when the session only pauses.
   * @param isUrgent whether a hard cancel is the reason.
   */
  abortAll(reason: string, isForGood = false, isUrgent = false): void {
    this.#retries.clear();
    this.#deadlines.clear();
    const unwanted = [...this.#asked.keys(), ...this.#unrecorded.keys()];
    if (isForGood) for (const id of unwanted) this.abort(id, reason);
    this.#asked.clear(); // The next process of the session asks again.
    for (const id of this.#running.keys()) this.abort(id, reason, isUrgent);
  }

  #withdraw(id: number): void {
    const task = this.#asked.get(id);
    if (task === undefined) return;
    this.#asked.delete(id);
    const { sessionId } = this.#session;
    void this.#world.executor.withdraw?.({
      kind: task.kind,
      taskId: positionId(sessionId, id),
      attempt: task.attempt,
    });
  }

  /** The session resumes elsewhere, or later: abort all attempts but those that outlive this process. */
  leaveAll(reason: string, isUrgent: boolean): void {
    for (const [id, running] of this.#running) {
      if (running.handle?.leave === undefined) continue;
      this.#running.delete(id);
      running.traceEnded("cancelled");
      running.handle.leave();
    }
    this.abortAll(reason, false, isUrgent);
  }

  /** Deliver stored outcomes that were not delivered. A second delivery finds the task closed. */
  reportKept(tasks: readonly OpenTask[]): void {
    for (const task of tasks) this.#deliverKept(task);
  }

  /** After a replay: resume the tasks that have no outcome (H7, H8). */
  recover(tasks: readonly OpenTask[], at: number): void {
    const fresh: OpenTask[] = [];
    watchDeadlines(
      this.#deadlines,
      tasks.filter(({ kept }) => kept === undefined),
    );
    for (const task of tasks) {
      const { id, attempt, kind } = task;
      const wasBegun = this.starts.wasBegun(task);
      const neverBegan = attempt >= (this.unbegun.get(id) ?? Infinity);
      // mutant: back-off-forgotten
      // mutant: kept-outcome-repeated
      if (task.kept !== undefined) {
        this.#deliverKept(task);
      } else if (task.isHandedOver) {
        this.unbegun.set(id, attempt);
        this.#session.note({ type: "attempt_lost", task: id, attempt, at, begins: true }); // attempts-8.
      } else if (task.retryAt !== undefined && task.retryAt > at && wasBegun !== true) {
        this.unbegun.set(id, attempt);
        this.#retryLater(task); // A retry never starts early. Leaky: unless the clock went back since.
      } else if (neverBegan && wasBegun === true) {
        this.starts.beginPaid(task);
      } else if (neverBegan || wasBegun === false || (wasBegun === undefined && task.isPaused)) {
        this.unbegun.set(id, attempt);
        fresh.push(task);
      } else {
        const taskId = positionId(this.#session.sessionId, id);
        const { executor } = this.#world;
        const isOver = isOverdue(task, at);
        const isHere = task.closure !== undefined;
        // The task ended before the queue answered whether its attempt runs.
        if (isOver && !isHere) void executor.withdraw?.({ kind, taskId, attempt });
        const running = isHere || isOver ? undefined : executor.isRunning?.({ kind, taskId, attempt });
        if (running === undefined) this.#lost(task, at);
        else {
          this.#asked.set(id, task);
          void running.then((isStillRunning) => {
            if (!this.#asked.delete(id) || this.#session.openTask(id) !== task) return;
            if (isStillRunning) this.starts.begin([task]);
            else this.#lost(task, this.#world.clock.now());
          });
        }
      }
    }
    if (fresh.length > 0) this.starts.begin(fresh);
  }

  /** The outcome of this attempt will never be known. */
  #lost(task: OpenTask, at: number): void {
    const { id, kind, attempt, effect } = task;
    const { sessionId } = this.#session;
    const { clock } = this.#world;
    this.#world.trace?.({
      sessionId,
      at: clock.now(),
      type: "task_lost",
      taskId: positionId(sessionId, id),
      kind,
      attempt,
    });
    const isOver = isOverdue(task, at);
    if (!isOver && mayRetryLost(task, attempt - task.paused)) {
      this.unbegun.set(id, attempt + 1);
      return this.#session.note({ type: "attempt_lost", task: id, attempt, at });
    }
    this.#deadlines.forget(id); // It fails now, or once what it started has ended.
    const lost = lossOf(task);
    const error = isOver && effect !== "once" ? { ...pastDeadline(task), cause: lost } : lost;
    const payload = JSON.stringify(error);
    const report = (): void => this.#deliver({ type: "task_failed", task: id, attempt, at, payload });
    const ending = this.#endLost(task);
    if (ending === undefined) report();
    else
      void ending.then(() => {
        if (this.#session.openTask(id) === task) report();
      });
  }

  /** End the work of a lost attempt before its agent is notified of the loss. Never rejects. */
  #endLost(task: OpenTask): Promise<void> | undefined {
    const { kind, input } = task;
    const idempotencyKey = keyOf(this.#session.sessionId, task);
    return this.#world.executor.endLost?.({ kind, input, idempotencyKey })?.catch(() => {});
  }

  #ended(running: StartedAttempt, outcome: AttemptOutcome): void {
    const { task, attempt } = running;
    const { id } = task;
    if (this.#running.get(id) !== running) return; // It was told to stop, and its end is traced.
    this.#running.delete(id);
    if (running.handle?.recorded !== undefined && outcome.status !== "aborted")
      this.#unrecorded.set(id, running.handle);
    // The task may have ended, or have a newer attempt.
    const isNews = this.#session.openTask(id) === task && task.attempt === attempt;
    const usage = running.usage === undefined ? {} : { usage: running.usage };
    const at = this.#world.clock.now();
    switch (outcome.status) {
      case "aborted":
        running.traceEnded("cancelled");
        return;
      case "completed":
        running.traceEnded("completed", { output: outcome.output });
        if (isNews && outcome.warning !== undefined)
          running.warn(`gave an output that is recorded otherwise: ${outcome.warning}`);
        if (isNews)
          this.#finish(task, {
            type: "task_completed",
            task: id,
            attempt,
            at,
            ...usage,
            payload: outcome.output,
          });
        return;
      case "failed": {
        if (isNews && this.#pauses(running, outcome, at))
          return running.traceEnded("retrying", { error: outcome.error });
        const random = this.#world.random() / 0x1_0000_0000;
        const error = outcome.isUnknown === true ? unknownEnd(task, outcome.error) : outcome.error;
        const backOffMs =
          isNews && error === outcome.error
            ? retryDelayMs(task.retry, countedAttempts(task), outcome, random)
            : undefined;
        // The next attempt could not begin in time.
        const delayMs = backOffMs !== undefined && isOverdue(task, at + backOffMs) ? undefined : backOffMs;
        running.traceEnded(delayMs === undefined ? "failed" : "retrying", { error });
        if (!isNews) return;
        const payload = JSON.stringify(error);
        if (delayMs === undefined)
          this.#finish(task, { type: "task_failed", task: id, attempt, at, ...usage, payload });
        else {
          // mutant: waiting-retry-begun
          // mutant: failed-before-begun
          this.unbegun.set(id, running.handle?.hasBegun === false ? attempt : attempt + 1);
          this.#session.note({
            type: "attempt_failed",
            task: id,
            attempt,
            at,
            retryAt: at + delayMs,
            ...usage,
            payload,
          });
        }
        return;
      }
    }
  }

  /** attempts-7. Whether the session pauses for this outcome. */
  #pauses({ task, attempt, usage }: StartedAttempt, { pause, error }: FailedOutcome, at: number): boolean {
    // mutant: pause-of-once
    if (pause === undefined || !mayRetryLost(task, attempt - task.paused)) return false;
    const times = { at, retryAt: at, paused: true } as const;
    const payload = JSON.stringify(error);
    const used = usage === undefined ? {} : { usage };
    return this.#session.pause(
      { type: "attempt_failed", task: task.id, attempt, ...times, ...used, payload },
      wantingPatch(pause, { error, waited: task.paused, now: at }),
    );
  }

  #finish(task: OpenTask, event: OutcomeDraft): void {
    // mutant: outcome-before-commit
    if (task.lost === 0) return this.#deliver(event);
    this.#deadlines.forget(task.id);
    // After a lost attempt, an outcome is stored before it is delivered.
    this.#session.note(keptOutcome(event));
  }

  #deliver(event: OutcomeDraft): void {
    this.unbegun.delete(event.task);
    this.#deadlines.forget(event.task);
    this.#session.deliver(event);
  }

  #deliverKept({ id, kept, attempt }: OpenTask): void {
    if (kept === undefined) return;
    this.#session.deliver({
      type: kept.outcome,
      task: id,
      attempt,
      at: this.#world.clock.now(),
      ...(kept.usage === undefined ? {} : { usage: kept.usage }),
      payload: kept.payload,
    });
  }
}

function watchDeadlines(deadlines: TaskTimes, tasks: readonly OpenTask[]): void {
  for (const task of tasks) if (task.deadlineAt !== undefined) deadlines.set(task, task.deadlineAt);
}

function isOverdue({ deadlineAt }: OpenTask, now: number): boolean {
  return deadlineAt !== undefined && deadlineAt <= now;
}

function pastDeadline({ deadlineMs }: OpenTask): RecordedError {
  const message = `did not end within its ${deadlineMs} ms, all attempts counted together`;
  return { name: "TaskTimeoutError", message, code: "task_timeout" };
}

/** The attempts that count toward the limit: lost ones only if the author set a limit (decision 0003). */
function countedAttempts({ retry, attempt, lost, paused }: OpenTask): number {
  const counted = attempt - paused; // attempts-7.
  // mutant: losses-as-failures
  return retry?.maxAttempts === undefined ? counted - lost : counted;
}
