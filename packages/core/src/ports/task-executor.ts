// `TaskExecutor`: the port to whatever performs tasks. One call is one attempt. The session that asked
// decides about retries, because retries must be durable.

import type { RecordedError } from "../errors/recorded-error.ts";
import type { PauseRequest } from "../errors/pause-error.ts";
import type { JsonText } from "../json/json.ts";
import type { EffectClass, RetryPolicy } from "../journal/task-policy.ts";
import type { TokenUsage } from "../journal/record.ts";

/** The port for the work of tasks. One call is one attempt. */
export interface TaskExecutor {
  /**
   * The traits of a kind of task, which are known before a task is asked for; `undefined` when this executor
   * cannot perform the kind.
   */
  describe(kind: string): TaskTraits | undefined;
  /** The kinds that this executor can perform, for error messages. */
  kinds(): readonly string[];
  /**
   * Start one attempt. Must not throw; `onEnd` is called exactly once, never synchronously, also after
   * `abort`.
   */
  start(attempt: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt;
  /**
   * End what a lost attempt may have left behind: it was running when its process ended, and no other attempt
   * will follow. Must not throw; `undefined` when there is nothing to do. The `input` is not checked against
   * a schema here.
   */
  endLost?(attempt: LostAttempt): Promise<void> | undefined;
  /**
   * Whether an attempt is still running after the process of its session ended. Starting it again with the
   * same number then attaches to it. Never rejects; `undefined` when work of this kind ends with the process.
   */
  isRunning?(attempt: Pick<TaskAttempt, "kind" | "taskId" | "attempt">): Promise<boolean> | undefined;
  /**
   * End a lost attempt that another process of its session may have begun here. Its task is performed
   * elsewhere now, or is no longer wanted. Otherwise it would run beside the next attempt, or after its
   * outcome. Never rejects.
   */
  withdraw?(attempt: Pick<TaskAttempt, "kind" | "taskId" | "attempt">): Promise<void> | undefined;
  /**
   * Abort all running attempts. Resolves when no attempt runs any more, except those that ignore their
   * signal.
   *
   * @param graceMs how long handlers that heed their signal are waited for; the adapter's own time when
   * absent.
   * @returns the tasks whose handlers heed their signal and had not settled by then.
   */
  close(graceMs?: number): Promise<readonly UnsettledTask[] | void>;
}

/** A task that was aborted, and whose handler still runs. */
export interface UnsettledTask {
  /** The session whose task it is. */
  readonly sessionId: string;
  /** The name of the task. */
  readonly kind: string;
  /** Resolves when the handler has settled. Never rejects. */
  readonly settled: Promise<void>;
}

/** The properties of a kind of task: its retries, effect, times and cost. */
export interface TaskTraits {
  /** How a failed attempt is repeated. */
  readonly retry?: RetryPolicy;
  /** Whether a repetition is safe for the outside world. */
  readonly effect?: EffectClass;
  /** How long one attempt may take. Milliseconds. */
  readonly timeoutMs?: number;
  /** How long the whole task may take, over all attempts. Milliseconds. */
  readonly deadlineMs?: number;
  /** Ask a person when the same input has had the same result ten times, one after another. */
  readonly guardRepeats?: boolean;
  /**
   * The most that an attempt with this input may cost. It is called only when an account pays. An exception
   * fails the task.
   */
  readonly cost?: (input: JsonText | undefined) => TaskCost;
}

/** The worst case of one attempt. Integers. */
export interface TaskCost {
  /** All tokens, those of the input included. */
  readonly maxTokens: number;
  /** The part of `maxTokens` that may be output; all of `maxTokens` when absent. */
  readonly maxOutputTokens?: number;
  /** The name of the model in price tables: `provider/model`. */
  readonly model?: string;
  /** The highest cost, where the price table does not have the model, or there is no model. */
  readonly maxCostMicroUsd?: number;
}

/**
 * The cost of this many tokens of a model, in whole millionths of a US dollar, rounded up; `undefined` for an
 * unknown model.
 */
export type Prices = (usage: Omit<TokenUsage, "costMicroUsd">) => number | undefined;

/** One attempt of a task, as an executor gets it. */
export interface TaskAttempt {
  /** The session whose task it is. */
  readonly sessionId: string;
  /** The id of the task within its session. */
  readonly taskId: string;
  /** The name of the task. */
  readonly kind: string;
  /** The input of the task, as JSON. */
  readonly input: JsonText | undefined;
  /** From 1. */
  readonly attempt: number;
  /**
   * Token of the claim under which the session runs. Work that another process performs for the session is
   * done under this claim.
   */
  readonly claimToken: number | undefined;
  /** The same for every attempt of this task, for effects on the outside world. */
  readonly idempotencyKey: string;
  /** The class that was asked for, if any. */
  readonly effect: EffectClass | undefined;
  /** How long the attempt may take. Milliseconds. */
  readonly timeoutMs: number | undefined;
  /** When the whole task must have ended; the session aborts it then. Epoch milliseconds. */
  readonly deadlineAt: number | undefined;
  /** W3C trace context of this attempt, or of its session, if it is traced. */
  readonly traceparent: string | undefined;
  /** `ctx.run`: the work itself, in process only. */
  readonly closure: ((task: unknown) => unknown) | undefined;
  /** Whether `input` has references to the conversation. */
  readonly hasConversation: boolean;
  /** The entries that such a reference means; `null` is the beginning. */
  conversation(leaf: number | null): Promise<readonly ConversationEntry[]>;
  /** Tokens and progress while it runs; provisional. Must not throw. */
  onDelta(delta: TaskDelta): void;
  /**
   * Call the function that does the work in this process. An unhandled rejection in it is then known to be
   * this attempt's.
   */
  within<T>(work: () => T): T;
}

/** The task of an attempt that was lost with its process. */
export type LostAttempt = Pick<TaskAttempt, "kind" | "input" | "idempotencyKey">;

/** An entry as task handlers see it. It is frozen with its content, because later attempts see the same object. */
export interface ConversationEntry {
  readonly id: string;
  readonly parentId: string | null;
  readonly role: string;
  readonly turnId: string;
  readonly content: unknown;
}

export type TaskDelta =
  | { readonly type: "token"; readonly text: string }
  | { readonly type: "progress"; readonly data: unknown }
  | { readonly type: "usage"; readonly usage: TokenUsage };

/** The end of one attempt of a task. */
export type AttemptOutcome =
  | {
      readonly status: "completed";
      readonly output: JsonText | undefined;
      /** A text about the output, for a person. */
      readonly warning?: string;
    }
  | {
      readonly status: "failed";
      readonly error: RecordedError;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      /** The work may be done all the same, as its handler had not settled. An effect that happens once is uncertain. */
      readonly isUnknown?: boolean;
      /** The work cannot be done until a person or a time allows it: the session is to be paused. */
      readonly pause?: PauseRequest;
    }
  /** `abort` took effect. */
  | { readonly status: "aborted" };

/** An attempt that an executor carries out, as the runtime stops and follows it. */
export interface RunningAttempt {
  /** Whether its handler was called; `undefined` when this process cannot know. */
  readonly hasBegun?: boolean;
  /**
   * Ask it to stop: the handler's abort signal fires. Idempotent.
   *
   * @param isUrgent the session was cancelled hard, so the attempt's processes get a moment to end, and no
   *   more.
   */
  abort(reason: string, isUrgent?: boolean): void;
  /**
   * Stop listening: this process no longer needs the outcome, but the next driver of the session will. An
   * attempt that can outlive the process continues, and any other attempt is aborted.
   */
  leave?(): void;
  /** Called when the attempt's outcome is committed or no longer wanted. No caller will ask for it again. */
  recorded?(): void;
}
