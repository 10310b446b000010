// Who does tasks. One call is one attempt: retries are decided by the session that asked, because they must be durable.

import type { RecordedError } from "../errors/errors.ts";
import type { JsonText } from "../json/json.ts";
import type { RetryPolicy, TokenUsage } from "../journal/record.ts";

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
  /**
   * An attempt was running when the process of its session ended: whether it goes on without it, so that to start it again, with
   * the same number, is to find it again. Never rejects; `undefined` when what it runs ends with the process.
   */
  goesOn?(attempt: Pick<TaskAttempt, "kind" | "taskId" | "attempt">): Promise<boolean> | undefined;
  /**
   * An attempt may have been begun here by another process of its session, and is lost, because its task is done elsewhere now, or is not
   * wanted any more: end it, so that it is not done beside the next one, or after its outcome. Never rejects.
   */
  withdraw?(attempt: Pick<TaskAttempt, "kind" | "taskId" | "attempt">): Promise<void> | undefined;
  /**
   * Abort what runs and resolve when nothing runs any more, or what runs does not heed it.
   *
   * @param graceMs how long handlers that heed their signal are waited for; the adapter's own time when absent.
   * @returns the tasks whose handlers heed their signal and had not settled by then.
   */
  close(graceMs?: number): Promise<readonly UnsettledTask[] | void>;
}

/** A task that was aborted, and whose handler still runs. */
export interface UnsettledTask {
  readonly sessionId: string;
  readonly kind: string;
  /** Resolves when the handler has settled. Never rejects. */
  readonly settled: Promise<void>;
}

export interface TaskTraits {
  readonly retry?: RetryPolicy;
  readonly timeoutMs?: number;
  /** How long the whole task may take, over all attempts. Milliseconds. */
  readonly deadlineMs?: number;
  /** Ask a person when the same input has had the same result ten times, one after another. */
  readonly guardRepeats?: boolean;
  /** The most an attempt with this input may cost; asked for only when somebody pays. What it throws fails the task. */
  readonly cost?: (input: JsonText | undefined) => TaskCost;
}

/** The worst case of one attempt. Integers. */
export interface TaskCost {
  /** All tokens, those of the input included. */
  readonly maxTokens: number;
  /** Of `maxTokens`, at most this many are output; all of them when it is not known. */
  readonly maxOutputTokens?: number;
  /** What prices are known by: `provider/model`. */
  readonly model?: string;
  /** Where prices know nothing of the model, or there is none. */
  readonly maxCostMicroUsd?: number;
}

/** What this many tokens of a model cost, in whole millionths of a US dollar, rounded up; `undefined` for an unknown model. */
export type Prices = (usage: Omit<TokenUsage, "costMicroUsd">) => number | undefined;

export interface TaskAttempt {
  readonly sessionId: string;
  readonly taskId: string;
  readonly kind: string;
  readonly input: JsonText | undefined;
  /** From 1. */
  readonly attempt: number;
  /** Of the claim under which its session is run: what is done elsewhere for that one is done under it. */
  readonly claimToken: number | undefined;
  /** The same for every attempt of this task: for effects on the outside world. */
  readonly idempotencyKey: string;
  readonly timeoutMs: number | undefined;
  /** When its whole task must have ended; who asked aborts it then. Epoch milliseconds. */
  readonly deadlineAt: number | undefined;
  /** W3C trace context of this attempt, or of its session, if it is traced. */
  readonly traceparent: string | undefined;
  /** `ctx.run`: the work itself, in process only. */
  readonly closure: ((task: unknown) => unknown) | undefined;
  /** Whether `input` has references to the conversation. */
  readonly hasConversation: boolean;
  /** The entries such a reference stands for; `null` is the beginning. */
  conversation(leaf: number | null): Promise<readonly ConversationEntry[]>;
  /** Tokens and progress while it runs; provisional. Must not throw. */
  onDelta(delta: TaskDelta): void;
  /** Calls what does the work in this process, so that a rejection in it that nobody handles is known to be this attempt's. */
  within<T>(work: () => T): T;
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
  /**
   * Nobody in this process listens any more, and whoever goes on with the session wants its outcome. For what goes on without the
   * process; everything else is aborted.
   */
  leave?(): void;
  /** Its outcome is committed, or nobody wants it any more: nobody will ask for it again. */
  recorded?(): void;
}
