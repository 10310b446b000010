// `StartedAttempt`: an attempt that runs, as its session and its executor see it.

import {
  positionId,
  type ConversationEntry,
  type JsonText,
  type OpenTask,
  type RunningAttempt,
  type TaskAttempt,
  type TaskDelta,
  type TokenUsage,
  type TraceEvent,
} from "@holdfast/core";
import { addUsage } from "./spending.ts";
import type { TaskSession, TaskWorld } from "./task-session.ts";

type Ended = Extract<TraceEvent, { type: "task_ended" }>;

export class StartedAttempt implements TaskAttempt {
  readonly task: OpenTask;
  /** The answer of its executor at the start. */
  handle: RunningAttempt | undefined;
  usage: TokenUsage | undefined;
  readonly sessionId: string;
  readonly taskId: string;
  readonly kind: string;
  readonly input: JsonText | undefined;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly #world: TaskWorld;
  readonly #session: TaskSession;
  readonly #startedAt: number;
  /** How many deltas the handler has reported. */
  #deltas = 0;

  constructor(world: TaskWorld, session: TaskSession, task: OpenTask) {
    const { sessionId } = session;
    this.#world = world;
    this.#session = session;
    this.#startedAt = world.clock.monotonic();
    this.task = task;
    this.sessionId = sessionId;
    this.taskId = positionId(sessionId, task.id);
    this.kind = task.kind;
    this.input = task.input;
    this.attempt = task.attempt;
    this.idempotencyKey = keyOf(sessionId, task);
  }

  get timeoutMs(): number | undefined {
    return this.task.timeoutMs;
  }

  get deadlineAt(): number | undefined {
    return this.task.deadlineAt;
  }

  get closure(): TaskAttempt["closure"] {
    return this.task.closure;
  }

  get hasConversation(): boolean {
    return this.task.hasConversation;
  }

  get effect(): TaskAttempt["effect"] {
    return this.task.effect;
  }

  /** The span of an attempt begins with its `task_started` event, after this object is made. */
  get traceparent(): string | undefined {
    const { session } = this.#session;
    return this.#world.traceparent(this.sessionId, this) ?? session.agent.traceparent;
  }

  get claimToken(): number | undefined {
    return this.#session.token;
  }

  conversation(leaf: number | null): Promise<readonly ConversationEntry[]> {
    return this.#world.conversation(this.#session.session, leaf, () => this.#session.isOver);
  }

  /** Add up usage, which is recorded with the outcome, and pass every delta to the tracer. */
  onDelta(reported: TaskDelta): void {
    const { sessionId, taskId, kind, attempt } = this;
    const { clock, trace } = this.#world;
    const delta = this.#priced(reported);
    if (delta.type === "usage") {
      const wrong = wrongCount(delta.usage);
      if (wrong !== undefined)
        return this.warn(`reported ${wrong}, which is no whole number, 0 or more: it does not count`);
      this.usage = addUsage(this.usage, delta.usage);
    }
    const offset = this.#deltas++;
    trace?.({ sessionId, at: clock.now(), type: "task_delta", taskId, kind, attempt, offset, delta });
  }

  /** Records a warning about this attempt. */
  warn(what: string): void {
    const line = this.task.lineOf?.();
    const place = line === undefined ? "" : ` (${line})`;
    const payload = JSON.stringify(`attempt ${this.attempt} of task "${this.kind}"${place} ${what}`);
    this.#session.note({ type: "warned", at: this.#world.clock.now(), payload });
  }

  within<T>(work: () => T): T {
    return this.#world.enter({ sessionId: this.sessionId, task: this.kind }, work);
  }

  traceStarted(): void {
    const { sessionId, taskId, kind, attempt, input } = this;
    const { clock, trace } = this.#world;
    trace?.({ sessionId, at: clock.now(), type: "task_started", taskId, kind, attempt, input });
  }

  traceEnded(outcome: Ended["outcome"], result?: Pick<Ended, "output" | "error">): void {
    const { sessionId, taskId, kind, attempt } = this;
    const { clock, trace } = this.#world;
    if (trace === undefined) return;
    const durationMs = clock.monotonic() - this.#startedAt;
    const ended = { sessionId, at: clock.now(), taskId, kind, attempt, durationMs, outcome };
    trace({ ...ended, ...result, type: "task_ended" });
  }

  /** Add the cost by the prices of the process. A model without a price keeps the cost its task reported. */
  #priced(delta: TaskDelta): TaskDelta {
    if (delta.type !== "usage") return delta;
    const costMicroUsd = this.#world.prices?.(delta.usage);
    return costMicroUsd === undefined ? delta : { ...delta, usage: { ...delta.usage, costMicroUsd } };
  }
}

/** The same for all attempts of a task. */
export function keyOf(sessionId: string, { id, key }: OpenTask): string {
  return key === undefined ? positionId(sessionId, id) : `${sessionId}:${key}`;
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
