// Who does tasks. One call is one attempt: retries are decided by the session that asked, because they must be durable.

import type { RecordedError } from "../errors.ts";
import type { JsonText } from "../json.ts";
import type { RetryPolicy } from "../journal/record.ts";

export interface TaskExecutor {
  /** What is known of a kind of task before it is asked for; `undefined` when it cannot be done here. */
  describe(kind: string): TaskTraits | undefined;
  /** Kinds that can be done here, for error messages. */
  kinds(): readonly string[];
  /**
   * Start one attempt. Must not throw; `onEnd` is called exactly once, never synchronously, also after `abort`.
   */
  start(attempt: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt;
  /** Abort what runs and resolve when nothing runs any more. */
  close(): Promise<void>;
}

export interface TaskTraits {
  readonly retry?: RetryPolicy;
  readonly timeoutMs?: number;
}

export interface TaskAttempt {
  readonly sessionId: string;
  readonly taskId: string;
  readonly kind: string;
  readonly input: JsonText | undefined;
  /** From 1. */
  readonly attempt: number;
  /** The same for every attempt of this task: for effects on the outside world. */
  readonly idempotencyKey: string;
  readonly timeoutMs: number | undefined;
  /** W3C trace context of this attempt, or of its session, if it is traced. */
  readonly traceparent?: string | undefined;
  /** `ctx.run`: the work itself, in process only. */
  readonly closure?: (task: unknown) => unknown;
  /** The entries a conversation reference stands for. */
  readonly conversation: (leaf: number) => Promise<readonly ConversationEntry[]>;
  /** Tokens and progress while it runs; provisional (K12). Must not throw. */
  readonly onDelta: (delta: TaskDelta) => void;
}

/** An entry as task handlers see it. */
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

/** What one model call used. Integers. */
export interface TokenUsage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly costMicroUsd?: number;
}

export type AttemptOutcome =
  | { readonly status: "completed"; readonly output: JsonText | undefined }
  | {
      readonly status: "failed";
      readonly error: RecordedError;
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
    }
  /** `abort` took effect. */
  | { readonly status: "aborted" };

export interface RunningAttempt {
  /** Ask it to stop: the handler's abort signal fires. Idempotent. */
  abort(reason: string): void;
}
