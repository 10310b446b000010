// `taskAgent` makes the built-in agent `task:{kind}`: one attempt of a queued task, as a session of its own
// (K10b).
//
//   - The session ends as `completed` whatever the attempt's outcome. A failure is its output, so that the
//     asking session decides by its own policy whether to try again.
//   task-agent-2. An attempt that is lost with its runner is repeated by this session. If the task limits its
//       attempts, or its effect happens once, the loss is a failure.
//   - The handler sees the task it belongs to and that task's idempotency key, not this session's.
//   task-agent-4. The handler does not begin after the task's deadline, even if no process is left to cancel
//       this session.

import {
  defined,
  HoldfastError,
  queuedTaskAgent,
  recordError,
  UncertainEffectError,
  UsageError,
  type EffectClass,
  type PauseRequest,
  type RecordedError,
  type TokenUsage,
} from "@holdfast/core";
import {
  attemptFailure,
  defineAgent,
  defineTask,
  performTask,
  type Agent,
  type TaskContext,
  type TaskDefinition,
} from "@holdfast/runtime";

export interface QueuedInput {
  readonly input?: unknown;
  readonly task: {
    readonly sessionId: string;
    readonly taskId: string;
    readonly attempt: number;
    readonly idempotencyKey: string;
    /** The class that the asking session wants; that of the task's definition by default. */
    readonly effect?: EffectClass;
    readonly timeoutMs?: number;
    /** When the whole task must have ended, by the asking session's clock. Epoch milliseconds. */
    readonly deadlineAt?: number;
  };
}

export type QueuedOutput = { readonly usage?: readonly TokenUsage[] } & (
  | { readonly status: "completed"; readonly output?: unknown }
  | {
      readonly status: "failed";
      readonly error: RecordedError;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      readonly pause?: PauseRequest;
    }
);

/** Failures after which the asking session decides about another attempt. */
const ONCE = { nonRetryable: ["task_timeout", "not_json", "limit_exceeded"] };

export function taskAgent(task: TaskDefinition): Agent {
  const name = queuedTaskAgent(task.name);
  const attempt = defineTask({
    name,
    ...defined({ secrets: task.secrets }),
    retry: task.retry?.maxAttempts === undefined ? ONCE : { maxAttempts: 1 }, // task-agent-2.
    ...defined({ effect: task.effect }),
    run: (queued: QueuedInput, context) => perform(task, queued, context),
    ...(task.endLost === undefined
      ? {}
      : {
          endLost: (queued: unknown) => {
            const { input, task: asked } = queued as QueuedInput;
            return task.endLost!(input, asked.idempotencyKey);
          },
        }),
  });
  return defineAgent({
    name,
    tasks: [attempt],
    run: async (ctx, input) => {
      const { effect, timeoutMs, deadlineAt = Infinity } = (input as QueuedInput).task;
      const deadlineMs = deadlineAt - ctx.now();
      if (deadlineMs <= 0) return TOO_LATE; // task-agent-4.
      try {
        return await ctx.scheduleTask(attempt, input as QueuedInput, {
          deadlineMs,
          ...defined({ effect, timeoutMs }),
        });
      } catch (error) {
        if (!HoldfastError.is(error) || error.code !== "task_failed") throw error; // The session was cancelled.
        const isTooLate = ctx.now() >= deadlineAt && !UncertainEffectError.is(error);
        // A failure is an output: the asking session decides whether to try again.
        return isTooLate ? TOO_LATE : endedOtherwise(error);
      }
    },
  });
}

/** An error of the handler becomes the attempt's outcome. */
async function perform(
  task: TaskDefinition,
  queued: QueuedInput,
  context: TaskContext,
): Promise<QueuedOutput> {
  const usage: TokenUsage[] = [];
  const asked = new AskedContext(queued, context, usage);
  const used = (): { usage?: TokenUsage[] } => (usage.length === 0 ? {} : { usage });
  try {
    const output = await performTask(task, queued.input, asked);
    return { status: "completed", ...defined({ output }), ...used() };
  } catch (thrown) {
    const failure = attemptFailure(thrown);
    return { ...failure, ...(isOnceHereOnly(task, queued) ? { retryable: false } : {}), ...used() };
  }
}

/** The asking session does not know that the effect happens once, and would try again after an error. */
function isOnceHereOnly(task: TaskDefinition, queued: QueuedInput): boolean {
  return queued.task.effect === undefined && task.effect === "once" && task.retry === undefined;
}

/** The output for an attempt that timed out, was lost, or whose output cannot be recorded. */
function endedOtherwise(error: HoldfastError): QueuedOutput {
  const recorded = recordError(error.cause ?? error);
  const retryable = recorded.code === "task_timeout" || recorded.name === "AttemptLostError";
  return { status: "failed", error: recorded, retryable };
}

/** task-agent-4. The outcome when no time is left for an attempt. */
const TOO_LATE = {
  status: "failed",
  error: { name: "TaskTimeoutError", message: "did not end by its deadline", code: "task_timeout" },
  retryable: false,
} as const satisfies QueuedOutput;

class AskedContext implements TaskContext {
  readonly sessionId: string;
  readonly taskId: string;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly #context: TaskContext;
  readonly #usage: TokenUsage[];

  constructor({ task }: QueuedInput, context: TaskContext, usage: TokenUsage[]) {
    this.sessionId = task.sessionId;
    this.taskId = task.taskId;
    this.attempt = task.attempt;
    this.idempotencyKey = task.idempotencyKey;
    this.#context = context;
    this.#usage = usage;
  }

  get traceparent(): string | undefined {
    return this.#context.traceparent;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  secret(name: string): string {
    return this.#context.secret(name);
  }

  signalSession(): Promise<undefined> {
    return Promise.reject(this.#isElsewhere("signal"));
  }

  remainingBudget(): Promise<undefined> {
    throw new UsageError("a task of a queue has no session whose budget it could read");
  }

  readSession(): Promise<undefined> {
    return Promise.reject(this.#isElsewhere("read"));
  }

  #isElsewhere(what: string): UsageError {
    return new UsageError(
      `task ${this.taskId} was queued by another process and cannot ${what} its session`,
      {
        fix: "register the task at the runner that has its agent",
      },
    );
  }

  get overlaps(): boolean {
    return this.#context.overlaps;
  }

  streamToken(text: string): void {
    this.#context.streamToken(text);
  }

  progress(data: unknown): void {
    this.#context.progress(data);
  }

  reportUsage(usage: TokenUsage): void {
    this.#usage.push(usage);
    this.#context.reportUsage(usage);
  }
}
