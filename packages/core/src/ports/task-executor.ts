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
  /**
   * An attempt was running when its process ended, and no other will follow: end what it may have left behind. Must not
   * throw; `undefined` when there is nothing to do. No `input` is checked against a schema here.
   */
  endLost?(attempt: LostAttempt): Promise<void> | undefined;
  /** Abort what runs and resolve when nothing runs any more, or what runs does not heed it. */
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
  /** `ctx.run`: the work itself, in process only. */
  readonly closure?: (task: unknown) => unknown;
  /** The entries a conversation reference stands for. */
  readonly conversation: (leaf: number) => Promise<readonly ConversationEntry[]>;
  /** Tokens and progress while it runs; provisional (K12). Must not throw. */
  readonly onDelta: (delta: TaskDelta) => void;
}

export type LostAttempt = Pick<TaskAttempt, "kind" | "input" | "idempotencyKey">;

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
