// `Attempts`: starts, retries, gives up and aborts the attempts of one session's tasks.
//
//   attempts-1. An attempt starts only after the batch that asked for it is committed (D1).
//   attempts-2. An attempt's end counts only while its task is open and has no newer attempt.
//   attempts-3. After an attempt was lost with its process, an outcome is stored before it is delivered (K6).
//   attempts-4. The end of every started attempt is traced once: when it ends, or when it is told to stop.
//   attempts-5. An attempt that an earlier process queued elsewhere is found again. It is withdrawn once its
//       task is no longer open, even before the queue has answered whether it runs.
//   attempts-6. No attempt begins after its task's deadline. At the deadline a running attempt is aborted and
//       the task fails, also between attempts and after a restart.
//
// It knows no storage and no kernel: it gets the open tasks, and returns events to deliver and notes to add.

import {
  mayRetryLost,
  positionId,
  retryDelayMs,
  type AttemptOutcome,
  type Clock,
  type ConversationEntry,
  type EventRecord,
  type JournalRecord,
  type JsonText,
  type NoteRecord,
  type OpenTask,
  type RecordedError,
  type RunningAttempt,
  type TaskAttempt,
  type Prices,
  type TaskDelta,
  type TaskExecutor,
  type TokenUsage,
  type TraceEvent,
} from "@holdfast/core";
import { addUsage, lossOf } from "./spending.ts";
import { TaskTimes } from "./task-times.ts";

type Draft<R> = R extends unknown ? Omit<R, "seq" | "id"> : never;
export type EventDraft = Draft<EventRecord>;
export type NoteDraft = Draft<NoteRecord>;

type OutcomeDraft = Extract<EventDraft, { type: "task_completed" | "task_failed" }>;

const OUTCOMES: ReadonlySet<string> = new Set([
  "task_completed",
  "task_failed",
  "attempt_failed",
  "outcome_kept",
]);

/** An outcome that is stored before it is delivered. */
export function keptOutcome({ type: outcome, task, attempt, at, usage, payload }: OutcomeDraft): NoteDraft {
  return {
    type: "outcome_kept",
    outcome,
    task,
    attempt,
    at,
    ...(usage === undefined ? {} : { usage }),
    payload,
  };
}

/** The interface of the session that the attempts belong to. */
export interface AttemptsHost {
  readonly sessionId: string;
  readonly executor: TaskExecutor;
  readonly clock: Clock;
  /** Integers in [0, 2^32), for jitter. */
  readonly random: () => number;
  readonly prices: Prices | undefined;
  /** Whether its attempt had started before its process ended; `undefined` where that is not stored. */
  wasBegun(task: OpenTask): boolean | undefined;
  /** Start tasks that never ran, and tasks to be retried, as soon as they may start. */
  begin(tasks: readonly OpenTask[]): void;
  /** The token of the claim the session is driven under. */
  claimToken(): number | undefined;
  /** The task of this number, until its outcome is delivered. */
  openTask(id: number): OpenTask | undefined;
  conversation(leaf: number | null): Promise<readonly ConversationEntry[]>;
  /** Call the function of a task of this kind, so that its stray rejections count as this session's. */
  enter<T>(kind: string, fn: () => T): T;
  /** Absent without a tracer: then no event is built. */
  readonly trace: ((event: TraceEvent) => void) | undefined;
  traceparent(attempt: { readonly taskId: string; readonly attempt: number }): string | undefined;
  deliver(event: EventDraft): void;
  note(note: NoteDraft): void;
}

/** An attempt that runs, also as its executor sees it. */
class Running implements TaskAttempt {
  readonly task: OpenTask;
  readonly startedAt: number;
  handle: RunningAttempt | undefined;
  usage: TokenUsage | undefined;
  readonly sessionId: string;
  readonly taskId: string;
  readonly kind: string;
  readonly input: JsonText | undefined;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly timeoutMs: number | undefined;
  readonly deadlineAt: number | undefined;
  readonly closure: TaskAttempt["closure"];
  readonly hasConversation: boolean;
  readonly #host: AttemptsHost;
  /** How many deltas the handler has reported. */
  #deltas = 0;

  constructor(host: AttemptsHost, task: OpenTask) {
    const { sessionId, clock } = host;
    this.#host = host;
    this.task = task;
    this.startedAt = clock.monotonic();
    this.sessionId = sessionId;
    this.taskId = positionId(sessionId, task.id);
    this.kind = task.kind;
    this.input = task.input;
    this.attempt = task.attempt;
    this.idempotencyKey = keyOf(sessionId, task);
    this.timeoutMs = task.timeoutMs;
    this.deadlineAt = task.deadlineAt;
    this.closure = task.closure;
    this.hasConversation = task.hasConversation;
  }

  /** The span of an attempt begins with its `task_started` event, after this object is made. */
  get traceparent(): string | undefined {
    return this.#host.traceparent(this);
  }

  get effect(): TaskAttempt["effect"] {
    return this.task.effect;
  }

  get claimToken(): number | undefined {
    return this.#host.claimToken();
  }

  conversation(leaf: number | null): Promise<readonly ConversationEntry[]> {
    return this.#host.conversation(leaf);
  }

  /** Add up usage, which is recorded with the outcome, and pass every delta to the tracer. */
  onDelta(reported: TaskDelta): void {
    const { sessionId, clock, trace } = this.#host;
    const { taskId, kind, attempt } = this;
    const delta = this.#priced(reported);
    if (delta.type === "usage") {
      const wrong = wrongCount(delta.usage);
      if (wrong !== undefined)
        return this.#warn(`reported ${wrong}, which is no whole number, 0 or more: it does not count`);
      this.usage = addUsage(this.usage, delta.usage);
    }
    const offset = this.#deltas++;
    trace?.({ sessionId, at: clock.now(), type: "task_delta", taskId, kind, attempt, offset, delta });
  }

  #warn(what: string): void {
    const payload = JSON.stringify(`attempt ${this.attempt} of task "${this.kind}" ${what}`);
    this.#host.note({ type: "warned", at: this.#host.clock.now(), payload });
  }

  within<T>(work: () => T): T {
    return this.#host.enter(this.kind, work);
  }

  /** Add the cost by the prices of the process. A model without a price keeps the cost its task reported. */
  #priced(delta: TaskDelta): TaskDelta {
    if (delta.type !== "usage") return delta;
    const costMicroUsd = this.#host.prices?.(delta.usage);
    return costMicroUsd === undefined ? delta : { ...delta, usage: { ...delta.usage, costMicroUsd } };
  }
}

export class Attempts {
  readonly #host: AttemptsHost;
  readonly #running = new Map<number, Running>();
  readonly #retries = new TaskTimes();
  /** attempts-6. The deadlines of tasks that have no outcome yet. */
  readonly #deadlines = new TaskTimes();
  /** Tasks whose attempt may still run elsewhere, until the queue has answered (attempts-5). */
  readonly #asked = new Map<number, OpenTask>();
  /** Ended attempts that must be notified when their end is committed. */
  readonly #unrecorded = new Map<number, RunningAttempt>();

  constructor(host: AttemptsHost) {
    this.#host = host;
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

  /** attempts-6. These tasks are open from the next commit on. */
  opened(tasks: readonly OpenTask[]): void {
    for (const task of tasks) if (task.deadlineAt !== undefined) this.#deadlines.set(task, task.deadlineAt);
  }

  /** Follow up on a note that is now committed. */
  noted(note: { readonly type: string; readonly task?: number }): void {
    const task = note.task === undefined ? undefined : this.#host.openTask(note.task);
    if (task === undefined) return;
    if (note.type === "attempt_failed") this.#retryLater(task);
    else if (note.type === "outcome_kept") this.#deliverKept(task);
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
    if (isOverdue(task, this.#host.clock.now())) return this.#expire(task); // attempts-6.
    const running = new Running(this.#host, task);
    if (this.#host.trace !== undefined) {
      const { taskId, kind, attempt, input } = running;
      this.#host.trace({ ...this.#stamp(), type: "task_started", taskId, kind, attempt, input });
    }
    this.#running.set(task.id, running);
    running.handle = this.#host.executor.start(running, (outcome) => this.#ended(running, outcome));
  }

  /** Fail a task that its budget can never pay for, without running it. */
  refuse({ id, attempt }: OpenTask, error: RecordedError): void {
    const at = this.#host.clock.now();
    this.#deliver({ type: "task_failed", task: id, attempt, at, payload: JSON.stringify(error) });
  }

  /** attempts-6. Fail the tasks whose deadline has come. */
  expireDue(now: number): void {
    for (let task = this.#deadlines.takeDue(now); task !== undefined; task = this.#deadlines.takeDue(now))
      if (this.#host.openTask(task.id) === task && task.kept === undefined) this.#expire(task);
  }

  #expire(task: OpenTask): void {
    const { id } = task;
    const error = pastDeadline(task);
    this.#retries.forget(id);
    this.#withdraw(id);
    const running = this.#running.get(id);
    if (running !== undefined) {
      this.#running.delete(id);
      this.#host.trace?.({ ...this.#end(running), outcome: "failed", error });
      running.handle?.abort(`its task ${error.message}`);
    }
    const usage = running?.usage === undefined ? {} : { usage: running.usage };
    const { attempt } = task;
    const at = this.#host.clock.now();
    this.#deliver({ type: "task_failed", task: id, attempt, at, ...usage, payload: JSON.stringify(error) });
  }

  /** Start the tasks whose back-off is over. */
  startDueRetries(now: number): void {
    for (let task = this.#retries.takeDue(now); task !== undefined; task = this.#retries.takeDue(now))
      if (this.#host.openTask(task.id) === task) this.#host.begin([task]);
  }

  #retryLater(task: OpenTask): void {
    this.#retries.set(task, task.retryAt ?? 0);
  }

  abort(id: number, reason: string): void {
    this.#retries.forget(id);
    this.#deadlines.forget(id);
    this.#withdraw(id);
    this.#settleUnrecorded(id);
    const running = this.#running.get(id);
    if (running === undefined) return;
    this.#running.delete(id);
    this.#host.trace?.({
      ...this.#end(running),
      outcome: "cancelled",
    });
    running.handle?.abort(reason);
  }

  /** @param isForGood whether their outcomes are never needed again: not so when the session only pauses. */
  abortAll(reason: string, isForGood = false): void {
    this.#retries.clear();
    this.#deadlines.clear();
    const unwanted = [...this.#asked.keys(), ...this.#unrecorded.keys()];
    if (isForGood) for (const id of unwanted) this.abort(id, reason);
    this.#asked.clear(); // The next process of the session asks again.
    for (const id of this.#running.keys()) this.abort(id, reason);
  }

  /** attempts-5. */
  #withdraw(id: number): void {
    const task = this.#asked.get(id);
    if (task === undefined) return;
    this.#asked.delete(id);
    const { sessionId, executor } = this.#host;
    void executor.withdraw?.({
      kind: task.kind,
      taskId: positionId(sessionId, id),
      attempt: task.attempt,
    });
  }

  /** The session resumes elsewhere, or later: abort all attempts but those that outlive this process. */
  leaveAll(reason: string): void {
    for (const [id, running] of this.#running) {
      if (running.handle?.leave === undefined) continue;
      this.#running.delete(id);
      this.#host.trace?.({ ...this.#end(running), outcome: "cancelled" }); // attempts-4.
      running.handle.leave();
    }
    this.abortAll(reason);
  }

  /** Deliver stored outcomes that were not delivered. A second delivery finds the task closed. */
  reportKept(tasks: readonly OpenTask[]): void {
    for (const task of tasks) this.#deliverKept(task);
  }

  /** After a replay: resume the tasks that have no outcome (H7, H8). */
  recover(tasks: readonly OpenTask[], at: number): void {
    const fresh: OpenTask[] = [];
    this.opened(tasks.filter(({ kept }) => kept === undefined));
    for (const task of tasks) {
      const { id, attempt, kind } = task;
      const wasBegun = this.#host.wasBegun(task);
      // mutant: back-off-forgotten
      // mutant: kept-outcome-repeated
      if (task.kept !== undefined) {
        this.#deliverKept(task);
      } else if (task.retryAt !== undefined && task.retryAt > at && wasBegun !== true) {
        this.#retryLater(task); // A retry never starts early. Leaky: unless the clock went back since.
      } else if (wasBegun === false) {
        fresh.push(task);
      } else {
        const taskId = positionId(this.#host.sessionId, id);
        const { executor } = this.#host;
        const isOver = isOverdue(task, at);
        const isHere = task.closure !== undefined;
        if (isOver && !isHere) void executor.withdraw?.({ kind, taskId, attempt }); // attempts-5.
        const running = isHere || isOver ? undefined : executor.isRunning?.({ kind, taskId, attempt });
        if (running === undefined) this.#lost(task, at);
        else {
          this.#asked.set(id, task);
          void running.then((isStillRunning) => {
            if (!this.#asked.delete(id) || this.#host.openTask(id) !== task) return;
            if (isStillRunning) this.#host.begin([task]);
            else this.#lost(task, this.#host.clock.now());
          });
        }
      }
    }
    if (fresh.length > 0) this.#host.begin(fresh);
  }

  /** The outcome of this attempt will never be known. */
  #lost(task: OpenTask, at: number): void {
    const { id, attempt, effect } = task;
    this.#traceLost(task);
    const isOver = isOverdue(task, at);
    if (!isOver && mayRetryLost(task, attempt))
      return this.#host.note({ type: "attempt_lost", task: id, attempt, at });
    this.#deadlines.forget(id); // It fails now, or once what it started has ended.
    const lost = lossOf(task);
    const error = isOver && effect !== "once" ? { ...pastDeadline(task), cause: lost } : lost;
    const payload = JSON.stringify(error);
    const report = (): void => this.#deliver({ type: "task_failed", task: id, attempt, at, payload });
    const ending = this.#endLost(task);
    if (ending === undefined) report();
    else
      void ending.then(() => {
        if (this.#host.openTask(id) === task) report();
      });
  }

  /** End the work of a lost attempt before its agent is notified of the loss. Never rejects. */
  #endLost(task: OpenTask): Promise<void> | undefined {
    const { kind, input } = task;
    const idempotencyKey = keyOf(this.#host.sessionId, task);
    return this.#host.executor.endLost?.({ kind, input, idempotencyKey })?.catch(() => {});
  }

  #ended(running: Running, outcome: AttemptOutcome): void {
    const { task, attempt } = running;
    const { id } = task;
    if (this.#running.get(id) !== running) return; // It was told to stop, and its end is traced.
    this.#running.delete(id);
    if (running.handle?.recorded !== undefined && outcome.status !== "aborted")
      this.#unrecorded.set(id, running.handle);
    const isNews = this.#host.openTask(id) === task && task.attempt === attempt; // attempts-2.
    const usage = running.usage === undefined ? {} : { usage: running.usage };
    const at = this.#host.clock.now();
    switch (outcome.status) {
      case "aborted":
        this.#host.trace?.({ ...this.#end(running), outcome: "cancelled" });
        return;
      case "completed":
        this.#host.trace?.({
          ...this.#end(running),
          outcome: "completed",
          output: outcome.output,
        });
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
        const random = this.#host.random() / 0x1_0000_0000;
        const backOffMs = isNews
          ? retryDelayMs(task.retry, countedAttempts(task), outcome, random)
          : undefined;
        // attempts-6. The next attempt could not begin in time.
        const delayMs = backOffMs !== undefined && isOverdue(task, at + backOffMs) ? undefined : backOffMs;
        this.#host.trace?.({
          ...this.#end(running),
          outcome: delayMs === undefined ? "failed" : "retrying",
          error: outcome.error,
        });
        if (!isNews) return;
        const payload = JSON.stringify(outcome.error);
        if (delayMs === undefined)
          this.#finish(task, { type: "task_failed", task: id, attempt, at, ...usage, payload });
        else
          this.#host.note({
            type: "attempt_failed",
            task: id,
            attempt,
            at,
            retryAt: at + delayMs,
            ...usage,
            payload,
          });
        return;
      }
    }
  }

  #traceLost({ id, kind, attempt }: OpenTask): void {
    this.#host.trace?.({
      ...this.#stamp(),
      type: "task_lost",
      taskId: positionId(this.#host.sessionId, id),
      kind,
      attempt,
    });
  }

  #stamp(): { readonly sessionId: string; readonly at: number } {
    return { sessionId: this.#host.sessionId, at: this.#host.clock.now() };
  }

  #end({ task: { kind }, taskId, attempt, startedAt }: Running) {
    const { sessionId, clock } = this.#host;
    const durationMs = clock.monotonic() - startedAt;
    return { type: "task_ended", sessionId, at: clock.now(), taskId, kind, attempt, durationMs } as const;
  }

  #finish(task: OpenTask, event: OutcomeDraft): void {
    // mutant: outcome-before-commit
    if (task.lost === 0) return this.#deliver(event);
    this.#deadlines.forget(task.id);
    this.#host.note(keptOutcome(event)); // attempts-3.
  }

  #deliver(event: OutcomeDraft): void {
    this.#deadlines.forget(event.task);
    this.#host.deliver(event);
  }

  #deliverKept({ id, kept, attempt }: OpenTask): void {
    if (kept === undefined) return;
    this.#host.deliver({
      type: kept.outcome,
      task: id,
      attempt,
      at: this.#host.clock.now(),
      ...(kept.usage === undefined ? {} : { usage: kept.usage }),
      payload: kept.payload,
    });
  }
}

const COUNTS = [
  "inputTokens",
  "outputTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "costMicroUsd",
] as const;

/** The first member of a usage that is no count: an account could never get rid of it (budget-3). */
function wrongCount(usage: TokenUsage): string | undefined {
  const wrong = COUNTS.find((name) => {
    const count: unknown = usage[name];
    if (count === undefined) return name === "inputTokens" || name === "outputTokens";
    return !Number.isSafeInteger(count) || (count as number) < 0;
  });
  return wrong && `${wrong}: ${String(usage[wrong])}`;
}

function isOverdue({ deadlineAt }: OpenTask, now: number): boolean {
  return deadlineAt !== undefined && deadlineAt <= now;
}

function pastDeadline({ deadlineMs }: OpenTask): RecordedError {
  const message = `did not end within its ${deadlineMs} ms, all attempts counted together`;
  return { name: "TaskTimeoutError", message, code: "task_timeout" };
}

/** The same for all attempts of a task. */
function keyOf(sessionId: string, { id, key }: OpenTask): string {
  return key === undefined ? positionId(sessionId, id) : `${sessionId}:${key}`;
}

/** The attempts that count toward the limit: lost ones only if the author set a limit (decision 0003). */
function countedAttempts({ retry, attempt, lost }: OpenTask): number {
  // mutant: losses-as-failures
  return retry?.maxAttempts === undefined ? attempt - lost : attempt;
}
