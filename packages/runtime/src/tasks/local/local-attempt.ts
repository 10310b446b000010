// `LocalAttempt`: an attempt in this process, between its executor and its handler
// (`local-task-executor.ts`).

import {
  type AttemptOutcome,
  type Clock,
  decodeJson,
  encodeJson,
  HoldfastError,
  type RemainingBudget,
  remainingOf,
  type RunningAttempt,
  type Session,
  type TaskAttempt,
  type TokenUsage,
  type UnsettledTask,
  UsageError,
} from "@holdfast/core";
import type { TaskContext, TaskDefinition, TaskSignalOptions } from "../../agents/define.ts";
import type { StepObserver } from "../../loop/step-observer.ts";
import { type DeclaredSecrets, type RedactedText, UrgentAbortError } from "@holdfast/system";
import { attemptFailure } from "./attempt-failure.ts";
import { performTask, resolveConversations, type SessionCalls } from "./task-call.ts";

/** The interface of the executor for its attempts. */
export interface AttemptHost extends SessionCalls {
  readonly clock: Clock;
  readonly payloadChars: number;
  readonly checkLease: () => void;
  readonly steps: StepObserver | undefined;
  readonly heeding: Set<UnsettledTask>;
  /** How long a handler that was told to stop is waited for. */
  readonly overlapMs: number;
  readonly secrets: DeclaredSecrets;
  /** The attempt was told to stop. @param settled absent before its handler was called. */
  stopping(taskId: string, settled: Promise<void> | undefined): void;
  /** Called once. */
  ended(attempt: LocalAttempt, outcome: AttemptOutcome): void;
}

export class LocalAttempt implements RunningAttempt, TaskContext {
  readonly #host: AttemptHost;
  readonly #request: TaskAttempt;
  readonly #definition: TaskDefinition | undefined;
  /** Reports the outcome to the caller of `start`. */
  readonly onEnd: (outcome: AttemptOutcome) => void;
  #number = -1;
  #performing: Promise<void> | undefined;
  #controller: AbortController | undefined;
  #aborted: DOMException | undefined;
  /** Tokens in which a secret may begin are held back until it is known. */
  #tokens: RedactedText | undefined;
  #cancelTimeout: (() => void) | undefined;
  #ended = false;
  readonly place: "process" | "thread";
  overlaps = false;
  hasBegun = false;

  constructor(
    host: AttemptHost,
    request: TaskAttempt,
    definition: TaskDefinition | undefined,
    onEnd: (outcome: AttemptOutcome) => void,
  ) {
    this.#host = host;
    this.#request = request;
    this.#definition = definition;
    this.place = definition?.inThread === undefined || request.closure !== undefined ? "process" : "thread";
    this.onEnd = onEnd;
  }

  /** The number of the attempt in the order of their starts; -1 before its start. */
  get number(): number {
    return this.#number;
  }

  /**
   * Whether it has ended or was aborted: an aborted attempt does not start in the microtask before its end.
   */
  get isOver(): boolean {
    return this.#ended || this.#aborted !== undefined;
  }

  // ---- TaskContext -------------------------------------------------------------------------------------------------

  get sessionId(): string {
    return this.#request.sessionId;
  }

  get taskId(): string {
    return this.#request.taskId;
  }

  get attempt(): number {
    return this.#request.attempt;
  }

  get idempotencyKey(): string {
    return this.#request.idempotencyKey;
  }

  get traceparent(): string | undefined {
    return this.#request.traceparent;
  }

  /** Made when first read: most tasks never read it, and a controller costs more than a trivial task. */
  get signal(): AbortSignal {
    this.#host.checkLease();
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.#heed();
    }
    if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    return this.#controller.signal;
  }

  secret(name: string): string {
    const { closure, sessionId } = this.#request;
    return this.#host.secrets.of(closure === undefined ? this.#definition : undefined, name, sessionId);
  }

  async signalSession(
    name: string,
    payload?: unknown,
    options: TaskSignalOptions = {},
  ): Promise<RemainingBudget | undefined> {
    if (!this.#mayReport()) throw this.#aborted ?? abortError("its attempt has ended");
    if (this.#host.signal === undefined) throw new UsageError("a task cannot signal its session here");
    const shown = payload === undefined ? undefined : this.#host.secrets.redactor.shown(payload);
    const receipt = await this.#host.signal(this.sessionId, name, shown, options);
    if (receipt.status === "refused") throw new HoldfastError("session_ended", receipt.reason);
    return receipt.unspent;
  }

  async readSession(sessionId = this.sessionId): Promise<Session | undefined> {
    if (this.#host.read === undefined) throw new UsageError("a task cannot read its session here");
    const row = await this.#host.read(sessionId);
    // mutant: foreign-session-read-by-task
    const isNear = sessionId === this.sessionId || row?.parent?.sessionId === this.sessionId;
    return isNear ? row : undefined;
  }

  async remainingBudget(): Promise<RemainingBudget | undefined> {
    const { read, clock } = this.#host;
    if (read === undefined) throw new UsageError("a task cannot read the budget of its session here");
    const payers = (await read(this.sessionId))?.payers ?? [];
    if (payers.length === 0) return undefined;
    const accounts = await Promise.all(payers.map(async (id) => (await read(id))?.account));
    return remainingOf(
      accounts.filter((account) => account !== undefined),
      clock.now(),
    );
  }

  streamToken(text: string): void {
    if (!this.#mayReport()) return;
    this.#tokens ??= this.#host.secrets.redactor.textStream();
    this.#showToken(this.#tokens.write(text));
  }

  #showToken(text: string): void {
    if (text !== "") this.#request.onDelta({ type: "token", text });
  }

  progress(data: unknown): void {
    if (!this.#mayReport()) return;
    this.#request.onDelta({ type: "progress", data: this.#host.secrets.redactor.shown(data) });
  }

  reportUsage(usage: TokenUsage): void {
    if (this.#mayReport()) this.#request.onDelta({ type: "usage", usage });
  }

  #mayReport(): boolean {
    this.#host.checkLease();
    return !this.isOver;
  }

  // ---- the attempt -------------------------------------------------------------------------------------------------

  begin(number: number): void {
    this.#number = number;
    const { timeoutMs } = this.#request;
    if (timeoutMs !== undefined) {
      this.#cancelTimeout = this.#host.clock.setTimer(() => {
        const error = {
          name: "TaskTimeoutError",
          code: "task_timeout",
          message: `took longer than its ${timeoutMs} ms`,
        };
        this.#fireAbort(`timed out after ${timeoutMs} ms`);
        this.#end({ status: "failed", error, retryable: true, isUnknown: this.hasBegun });
      }, timeoutMs);
    }
    const { closure, kind } = this.#request;
    const step = this.#host.steps?.began(this.sessionId, kind, timeoutMs);
    const perform = (): Promise<void> => this.#perform(step);
    // A closure brings its context along.
    this.#performing = closure === undefined ? this.#request.within(perform) : perform();
    this.#host.steps?.returned();
    if (this.#aborted !== undefined) this.#host.stopping(this.taskId, this.#performing);
    if (this.#controller !== undefined) this.#heed(); // A handler may ask for its signal before it first awaits.
  }

  #heed(): void {
    const settled = this.#performing;
    if (settled === undefined) return;
    const { heeding } = this.#host;
    const { sessionId, kind } = this.#request;
    const unsettled = { sessionId, kind, settled };
    heeding.add(unsettled);
    void settled.finally(() => heeding.delete(unsettled));
  }

  abort(reason: string, isUrgent = false): void {
    if (this.#ended) return;
    this.#fireAbort(reason, isUrgent);
    // Asynchronous: the caller is in the middle of something, and `onEnd` is never called from within a call.
    void Promise.resolve().then(() => this.#end({ status: "aborted" }));
  }

  async #perform(step: number | undefined): Promise<void> {
    const { closure } = this.#request;
    let outcome: AttemptOutcome;
    try {
      this.hasBegun = closure !== undefined;
      const output = closure === undefined ? await this.#performDefined() : await closure(this);
      outcome = this.#completed(output);
    } catch (thrown) {
      const { redactor } = this.#host.secrets;
      outcome = attemptFailure(thrown, (text) => redactor.text(text)); // local-task-executor-6.
      // A handler that throws at once does so within `start`, and `onEnd` is never called within that.
      await Promise.resolve();
    }
    if (step !== undefined) this.#host.steps?.ended(step);
    this.#end(outcome);
  }

  #completed(output: unknown): AttemptOutcome {
    const { kind } = this.#request;
    let warning: string | undefined;
    const what = `output of task "${kind}" (the task itself ran to its end)`;
    const encoded = encodeJson(output, what, (changed) => (warning = changed));
    const text = encoded === undefined ? undefined : this.#host.secrets.redactor.json(encoded);
    const { payloadChars } = this.#host;
    if (text !== undefined && text.length > payloadChars) {
      throw new HoldfastError("limit_exceeded", `${what} is ${text.length} characters of JSON`, {
        expected: `at most ${payloadChars} (limit "payloadChars")`,
        fix: "keep large content in a file and return its path, or raise the limit",
      });
    }
    return { status: "completed", output: text, ...(warning === undefined ? {} : { warning }) };
  }

  async #performDefined(): Promise<unknown> {
    const { kind } = this.#request;
    if (this.#definition !== undefined) {
      const input = await this.#input();
      const ready = this.#host.secrets.ready(this.sessionId);
      if (ready !== undefined) await ready;
      // O10. It was aborted while its conversation or its secrets were read: another process may start the attempt by now.
      // mutant: aborted-attempt-begins
      if (this.#aborted !== undefined) throw this.#aborted;
      this.hasBegun = true;
      return performTask(this.#definition, input, this, this.#host.overlapMs / 2);
    }
    throw new HoldfastError("unknown_task_kind", `no task "${kind}" is known here`, {
      fix: "define it with defineTask()",
    });
  }

  #input(): unknown {
    const request = this.#request;
    const decoded = decodeJson(request.input);
    if (!request.hasConversation) return decoded;
    return resolveConversations(decoded, (leaf) => request.conversation(leaf));
  }

  #fireAbort(reason: string, isUrgent = false): void {
    if (this.#aborted === undefined) this.#host.stopping(this.taskId, this.#performing);
    const aborted = (this.#aborted = abortError(reason, isUrgent));
    // The listeners are code of the task, and a request of any user may be what aborts it.
    this.#request.within(() => this.#controller?.abort(aborted));
  }

  #end(outcome: AttemptOutcome): void {
    if (this.#ended) return;
    if (this.#tokens !== undefined && this.#aborted === undefined) this.#showToken(this.#tokens.end());
    this.#ended = true;
    this.#cancelTimeout?.();
    this.#host.ended(this, outcome);
  }
}

function abortError(reason: string, isUrgent = false): DOMException {
  const message = `the task was aborted: ${reason}`;
  return isUrgent ? new UrgentAbortError(message) : new DOMException(message, "AbortError");
}
