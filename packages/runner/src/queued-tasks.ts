// `queuedTasks` makes the executor of tasks that other runners perform. Each attempt is a session of the
// built-in agent `task:{kind}`. A coordinator dispatches that session to a runner that has the handler.
// Claims, leases, losses, results and cancellation are those of sessions.
//
//   - The id of an attempt's session is derived from the task's id and the attempt's number. Starting the
//     attempt again therefore finds the same session, also from a new process.
//   - The attempt's session is removed once its outcome is committed, or once the task is not wanted any
//     more. Until then, a process that resumes the asking session can read the outcome.
//   - A coordinator that cannot be reached costs time, but no attempt.
//   - When this process ends, its attempts continue for the process that resumes their sessions. An aborted
//     attempt is cancelled.
//   - An attempt is started under the claim of the session that asks for it, and only once under that claim.
//     A delayed start request therefore has no effect after another process claimed the session, or after the
//     outcome was committed. If an attempt is abandoned before its start request was answered, the request is
//     sent again before the cancel. Only an attempt that certainly exists cannot be created by a late
//     request.
//   - A process that has the handler itself withdraws an attempt which its predecessor has queued. It cancels
//     the attempt's session and then removes it, and may die in between. The next process of the asking
//     session takes such an attempt as removed.
//   - A session that keeps no journal starts over with the same task ids. An attempt with the same request is
//     found again. An attempt that an earlier life started with another request is cancelled and removed.
//
// Leaky: if a session lives in its user's own storage, a coordinator knows none of its claims. A start
// request that hangs until the attempt was removed, or was lost and made again, starts the attempt once more.
//
// This file knows no storage. `TaskQueue` is a port with one implementation, a coordinator's SessionService.

import {
  decodeJson,
  defined,
  encodeJson,
  HoldfastError,
  recordError,
  toHoldfastError,
  type AttemptOutcome,
  queuedTaskAgent,
  type Clock,
  type JsonText,
  type Random,
  type RecordedError,
  type RunningAttempt,
  type TaskAttempt,
  type TaskExecutor,
  type TaskTraits,
} from "@holdfast/core";
import { SessionService } from "@holdfast/proto";
import {
  resolveConversations,
  systemClock,
  systemRandom,
  traitsOf,
  type TaskDefinition,
} from "@holdfast/runtime";
import type { CoordinatorConnection } from "@holdfast/storage/remote";
import { createHash } from "node:crypto";
import { isPassing, pause, pauseMs } from "./polls/poll-loop.ts";
import { type QueuedInput, type QueuedOutput } from "./task-agent.ts";

/** How long one request for a result waits. */
const WAIT_MS = 30_000;

/** A task that waits in a queue for a runner. */
export interface QueuedTask {
  readonly sessionId: string;
  readonly taskId: string;
  readonly kind: string;
  readonly input: JsonText;
  /** The token of the claim under which the session asks. */
  readonly claimToken: number | undefined;
  readonly traceparent: string | undefined;
}

/** The state of a task in a queue. */
export type QueuedResult =
  | { readonly status: "unknown" }
  | { readonly status: "going" }
  | { readonly status: "completed"; readonly output: JsonText | undefined }
  | { readonly status: "failed" | "cancelled"; readonly error: RecordedError | undefined };

/** The port to the queue. Each method may be called again with the same ids, and throws HoldfastError. */
export interface TaskQueue {
  /**
   * Throws with the code `fenced` when that claim no longer holds the session: the task belongs to the
   * process that resumed it.
   */
  start(task: QueuedTask): Promise<void>;
  /** Waits up to `waitMs` for the end of the attempt's session. */
  result(sessionId: string, waitMs: number, signal: AbortSignal): Promise<QueuedResult>;
  /** Ends the attempt's session at once, and its running task. */
  cancel(sessionId: string): Promise<void>;
  remove(sessionId: string): Promise<void>;
}

/** Options of `queuedTasks`. */
export interface QueuedTasksOptions {
  /** The queue, such as `coordinatorQueue(connection)`. */
  readonly queue: TaskQueue;
  /**
   * The tasks that may be queued. A definition brings its policy, worst case and guards, which apply in the
   * asking process. By default every kind is queued: a task without a handler here waits for a runner that
   * has one.
   */
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of tasks of any input and output has no other type.
  readonly tasks?: readonly (string | TaskDefinition<any, any>)[];
  readonly clock?: Clock;
  readonly random?: Random;
}

/** The executor for tasks that this process has no handler for. */
export function queuedTasks(options: QueuedTasksOptions): TaskExecutor {
  return new QueuedTasks(options);
}

function queuedSessionId(taskId: string, attempt: number): string {
  const hex = createHash("sha256").update(`${taskId}\n${attempt}`).digest("hex");
  return `ses_${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

class QueuedTasks implements TaskExecutor {
  readonly #queue: TaskQueue;
  readonly #traits: ReadonlyMap<string, TaskTraits> | undefined;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #running = new Set<QueuedAttempt>();
  /** Cancellations and removals that are under way. */
  readonly #ending = new Set<Promise<void>>();
  readonly #closed = new AbortController();

  constructor({ queue, tasks, clock = systemClock, random = systemRandom() }: QueuedTasksOptions) {
    this.#queue = queue;
    const traits = tasks?.map((task) =>
      typeof task === "string" ? named(task) : ([task.name, traitsOf(task)] as const),
    );
    this.#traits = traits === undefined ? undefined : new Map(traits);
    this.#clock = clock;
    this.#random = random;
  }

  describe(kind: string): TaskTraits | undefined {
    return this.#traits === undefined ? {} : this.#traits.get(kind);
  }

  kinds(): readonly string[] {
    return [...(this.#traits?.keys() ?? [])];
  }

  start(request: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt {
    const attempt = new QueuedAttempt(request, {
      queue: this.#queue,
      persist: (ask, signal = this.#closed.signal) => this.#persist(ask, signal),
      tidy: (tidying) => this.#tidy(tidying),
      onEnd: (outcome) => {
        this.#running.delete(attempt);
        onEnd(outcome);
      },
    });
    this.#running.add(attempt);
    attempt.begin();
    return attempt;
  }

  async isRunning({
    taskId,
    attempt,
  }: Parameters<NonNullable<TaskExecutor["isRunning"]>>[0]): Promise<boolean> {
    const { signal } = this.#closed;
    const id = queuedSessionId(taskId, attempt);
    try {
      const result = await this.#persist(() => this.#queue.result(id, 0, signal), signal);
      // mutant: queued-attempt-lost
      return result.status !== "unknown";
    } catch {
      return signal.aborted; // The coordinator refused for good: the attempt cannot be found, so it is lost.
    }
  }

  async withdraw(lost: Parameters<NonNullable<TaskExecutor["withdraw"]>>[0]): Promise<void> {
    if (!(await this.isRunning(lost))) return;
    const { signal } = this.#closed;
    const id = queuedSessionId(lost.taskId, lost.attempt);
    // An attempt that has ended cannot be cancelled, and an attempt that cannot be removed is no longer
    // running.
    await this.#persist(() => this.#queue.cancel(id), signal).catch(() => {});
    await this.#persist(() => this.#queue.remove(id), signal).catch(() => {});
  }

  /** Requests under way are finished, but not repeated. */
  async close(): Promise<void> {
    for (const attempt of this.#running) attempt.leave();
    this.#closed.abort();
    await Promise.allSettled(this.#ending);
  }

  /** @throws HoldfastError when waiting cannot help, or any error once `signal` is aborted. */
  async #persist<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
    for (let failures = 0; ; failures++) {
      try {
        return await ask();
      } catch (thrown) {
        const error = toHoldfastError(thrown);
        if (signal.aborted || !isPassing(error)) throw error;
        await pause(pauseMs(failures, this.#random), this.#clock, signal);
        if (signal.aborted) throw error;
      }
    }
  }

  /** Runs in the background: its failure has no effect. */
  #tidy(tidying: () => Promise<void>): void {
    const ending = tidying()
      .catch(() => {})
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function named(kind: string): readonly [string, TaskTraits] {
  return [kind, {}];
}

interface AttemptHost {
  readonly queue: TaskQueue;
  /** @param signal aborted when the result is no longer wanted; by default, when the executor closes. */
  persist<T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  tidy(tidying: () => Promise<void>): void;
  onEnd(outcome: AttemptOutcome): void;
}

class QueuedAttempt implements RunningAttempt {
  readonly #request: TaskAttempt;
  readonly #host: AttemptHost;
  readonly #sessionId: string;
  readonly #controller = new AbortController();
  /** The attempt whose start request was sent and not answered: it may exist already or later. */
  #asked: QueuedTask | undefined;
  #isMade = false;
  #isOver = false;

  constructor(request: TaskAttempt, host: AttemptHost) {
    this.#request = request;
    this.#host = host;
    this.#sessionId = queuedSessionId(request.taskId, request.attempt);
  }

  begin(): void {
    this.#perform().then(
      (outcome) => this.#end(outcome),
      (thrown: unknown) => this.#fail(toHoldfastError(thrown)),
    );
  }

  /**
   * Starting or reading the attempt failed for good. When the error says that the session is claimed
   * elsewhere, the failure is retryable. If the error is right, the commit of the failure is fenced. If this
   * process does hold the session, the next attempt follows.
   */
  #fail(error: HoldfastError): void {
    if (this.#controller.signal.aborted) return; // The abort ends it.
    const isGone = error.code === "fenced" || error.code === "session_not_found";
    this.#end({ status: "failed", error: recordError(error), retryable: isGone });
    if (!isGone) this.#dropRequested();
  }

  abort(_reason: string): void {
    if (this.#isOver) return;
    this.leave();
    this.#dropRequested();
  }

  #dropRequested(): void {
    const asked = this.#asked;
    if (asked !== undefined) this.#host.tidy(() => this.#drop(asked));
  }

  /**
   * A refused attempt may have been created by an earlier request. An attempt that cannot be cancelled has
   * ended.
   */
  async #drop(asked: QueuedTask): Promise<void> {
    const { queue, persist } = this.#host;
    // mutant: abandoned-task-not-made
    if (!this.#isMade) await persist(() => queue.start(asked)).catch(() => {});
    await persist(() => queue.cancel(asked.sessionId)).catch(() => {});
    await persist(() => queue.remove(asked.sessionId));
  }

  leave(): void {
    if (this.#isOver) return;
    this.#controller.abort();
    void Promise.resolve().then(() => this.#end({ status: "aborted" }));
  }

  recorded(): void {
    const { queue, persist, tidy } = this.#host;
    tidy(() => persist(() => queue.remove(this.#sessionId)));
  }

  async #perform(): Promise<AttemptOutcome> {
    const { queue, persist } = this.#host;
    const { signal } = this.#controller;
    const { taskId, kind, claimToken, traceparent } = this.#request;
    const input = await this.#input();
    if (signal.aborted) return { status: "aborted" };
    const asked = { sessionId: this.#sessionId, taskId, kind, input, claimToken, traceparent };
    this.#asked = asked;
    await this.#start(asked, signal);
    this.#isMade = true;
    for (;;) {
      const result = await persist(() => queue.result(this.#sessionId, WAIT_MS, signal), signal);
      const outcome = this.#outcomeOf(result);
      if (outcome !== undefined) return outcome;
    }
  }

  async #start(asked: QueuedTask, signal: AbortSignal): Promise<void> {
    const { queue, persist } = this.#host;
    const start = (): Promise<void> => persist(() => queue.start(asked), signal);
    try {
      await start();
    } catch (error) {
      if (!HoldfastError.is(error) || error.code !== "session_exists") throw error;
      await persist(() => queue.cancel(asked.sessionId), signal).catch(() => {}); // It may have ended.
      await persist(() => queue.remove(asked.sessionId), signal);
      await start();
    }
  }

  /** The input for the handler, with conversations resolved as a local attempt would have them. */
  async #input(): Promise<JsonText> {
    const { sessionId, taskId, attempt, idempotencyKey, effect, timeoutMs, deadlineAt } = this.#request;
    const { hasConversation, conversation } = this.#request;
    const decoded = decodeJson(this.#request.input);
    const input = hasConversation ? await resolveConversations(decoded, conversation) : decoded;
    const queued: QueuedInput = {
      ...defined({ input }),
      task: {
        sessionId,
        taskId,
        attempt,
        idempotencyKey,
        ...defined({ effect, timeoutMs, deadlineAt }),
      },
    };
    return encodeJson(queued, `input of task "${this.#request.kind}"`)!;
  }

  #outcomeOf(result: QueuedResult): AttemptOutcome | undefined {
    switch (result.status) {
      case "going":
        return undefined;
      case "completed": {
        const output = decodeJson(result.output) as QueuedOutput;
        for (const usage of output.usage ?? []) this.#request.onDelta({ type: "usage", usage });
        if (output.status === "failed") {
          const { error, retryable, retryAfterMs, pause: asked } = output;
          return {
            status: "failed",
            error,
            retryable,
            ...defined({ retryAfterMs, pause: asked }),
          };
        }
        return { status: "completed", output: encodeJson(output.output, "output") };
      }
      case "failed": {
        const error = result.error ?? { name: "Error", message: "unknown" };
        return { status: "failed", error, retryable: !FOR_GOOD.has(error.code) };
      }
      case "cancelled":
        return { status: "failed", error: result.error ?? CANCELLED, retryable: false, isUnknown: true };
      case "unknown":
        return { status: "failed", error: REMOVED, retryable: true, isUnknown: true };
    }
  }

  #end(outcome: AttemptOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#host.onEnd(outcome);
  }
}

/** Errors that another attempt would end with as well. */
const FOR_GOOD: ReadonlySet<string | undefined> = new Set(["no_matching_runner", "too_large"]);
const CANCELLED = { name: "CancelledError", message: "the queued task was cancelled", code: "cancelled" };
/** The reason of a cancel by the asking session. Stored. */
const WITHDRAWN = "withdrawn by the session that asked for it";
const REMOVED = { name: "HoldfastError", message: "the queued task was removed", code: "session_not_found" };

/**
 * The queue of a coordinator. A runner may queue tasks of the sessions it holds, a user tasks of its own
 * sessions.
 */
export function coordinatorQueue(connection: CoordinatorConnection): TaskQueue {
  const client = connection.client(SessionService);
  return {
    async start({ sessionId, taskId, kind, input, claimToken, traceparent }) {
      const request = {
        agent: queuedTaskAgent(kind),
        agentVersion: "1",
        input: new TextEncoder().encode(input),
        sessionId,
        taskId,
        ...(claimToken === undefined ? {} : { claimToken: BigInt(claimToken) }),
        ...defined({ traceparent }),
      };
      await connection.ask(() => client.start(request));
    },

    async result(sessionId, waitMs, signal) {
      try {
        const request = { sessionId, waitMs: Math.min(waitMs, WAIT_MS) };
        const answer = await connection.ask(() =>
          client.getResult(request, { signal, timeoutMs: waitMs + WAIT_MS }),
        );
        if (!answer.ended) return { status: "going" };
        if (answer.status === "completed") {
          const output = answer.output === undefined ? undefined : new TextDecoder().decode(answer.output);
          return { status: "completed", output };
        }
        const error = answer.error === undefined ? undefined : recordedOf(answer.error);
        if (answer.status !== "cancelled") return { status: "failed", error };
        if (error === undefined) return { status: "cancelled", error };
        if (error.message === WITHDRAWN) return { status: "unknown" };
        return {
          status: "cancelled",
          error: { ...CANCELLED, message: `${CANCELLED.message}: ${error.message}` },
        };
      } catch (error) {
        if (HoldfastError.is(error) && error.code === "session_not_found") return { status: "unknown" };
        throw error;
      }
    },

    async cancel(sessionId) {
      await connection.ask(() => client.cancel({ sessionId, mode: "hard", reason: WITHDRAWN }));
    },

    async remove(sessionId) {
      await connection.ask(() => client.delete({ sessionId }));
    },
  };
}

function recordedOf(error: {
  readonly name: string;
  readonly message: string;
  readonly code?: string | undefined;
}): RecordedError {
  const { name, message, code } = error;
  return { name, message, ...defined({ code }) };
}
