// `LocalTaskExecutor`: runs tasks in this process, by their defined handlers or by the closures of `ctx.run`.
//
//   local-task-executor-1. Handlers see values decoded from recorded text, also in the process that made them
//       (json-1).
//   local-task-executor-2. At most `concurrency` attempts run at once; the others wait in the order they
//       came.
//   local-task-executor-3. An attempt ends exactly once: by its handler, its time-out, or its abort,
//       whichever comes first. A handler that still runs afterwards is ignored, and its slot is free.
//   local-task-executor-4. Closing waits for handlers that have read their abort signal, as they may have
//       processes to end, but never longer than its grace. It answers which of them still run, so that
//       nothing starts beside them.
//   local-task-executor-5. A process that was suspended past its lease aborts its attempts before it starts
//       one, reports one, or returns an abort signal. The reason is that handlers may resume before the timer
//       of the lease does.
//   local-task-executor-6. Values of declared secrets are replaced in outputs, errors, tokens and progress before
//       they leave the attempt.

import {
  ConflictError,
  decodeJson,
  encodeJson,
  HoldfastError,
  LIMITS,
  UsageError,
  type AttemptOutcome,
  type Clock,
  type LostAttempt,
  type RunningAttempt,
  type Session,
  type SignalReceipt,
  type TaskAttempt,
  type TaskExecutor,
  type TaskTraits,
  type TokenUsage,
  type UnsettledTask,
} from "@holdfast/core";
import { ChurnMap, Fifo } from "@holdfast/core/internal";
import type { Agent, TaskContext, TaskDefinition } from "../agents/define.ts";
import { UrgentAbortError } from "../processes/process-end.ts";
import { DeclaredSecrets, type SecretSource } from "../secrets/declared-secrets.ts";
import type { RedactedText } from "../secrets/redactor.ts";
import { attemptFailure } from "./attempt-failure.ts";
import { performTask, resolveConversations, traitsOf } from "./task-call.ts";

export interface LocalTaskExecutorOptions {
  readonly tasks?: readonly TaskDefinition[];
  /** Attempts running at once. */
  readonly concurrency?: number;
  readonly payloadChars?: number;
  readonly clock: Clock;
  /** Aborts every attempt when the lease could have passed on (local-task-executor-5). Must not throw. */
  readonly checkLease?: () => void;
  /** Values of declared secrets; none by default. */
  readonly secrets?: SecretSource;
  /** Reads the row of a session, for `readSession`; without it there is none. */
  readonly read?: (sessionId: string) => Promise<Session | undefined>;
  /** Stores a signal to a session, for `signalSession`; without it there is none. */
  readonly signal?: (
    sessionId: string,
    name: string,
    payload: unknown,
    options: { readonly dedupKey?: string },
  ) => Promise<SignalReceipt>;
}

/**
 * local-task-executor-4, without a given grace. A command that ignores SIGTERM is killed after two seconds,
 * and then the processes it left behind are searched.
 */
const HANDLERS_END_MS = 10_000;

export class LocalTaskExecutor implements TaskExecutor {
  readonly #tasks = new Map<string, TaskDefinition>();
  readonly #secrets: DeclaredSecrets;
  readonly #clock: Clock;
  readonly #concurrency: number;
  readonly #host: AttemptHost;
  readonly #waiting = new Fifo<Attempt>();
  readonly #running = new ChurnMap<number, Attempt>();
  /** Handlers at work that heed their signal, also after their attempt's end (local-task-executor-4). */
  readonly #heeding = new Set<UnsettledTask>();
  /** Tasks that hold something for a session. Most processes have none. */
  readonly #holding = new Set<NonNullable<TaskDefinition["sessionLeft"]>>();
  /** Calls of `sessionLeft` that have not settled. */
  readonly #ending = new Set<Promise<void>>();
  /** How many attempts began. */
  #begun = 0;
  #onIdle: (() => void) | undefined;

  constructor({
    tasks = [],
    concurrency = LIMITS.tasksRunning,
    payloadChars = LIMITS.payloadChars,
    clock,
    checkLease = () => {},
    secrets = new Map(),
    read,
    signal,
  }: LocalTaskExecutorOptions) {
    this.#secrets = new DeclaredSecrets(secrets);
    this.#clock = clock;
    this.#concurrency = concurrency;
    this.#host = {
      clock,
      payloadChars,
      checkLease,
      read,
      signal,
      heeding: this.#heeding,
      secrets: this.#secrets,
      ended: (attempt, outcome) => {
        checkLease();
        this.#running.delete(attempt.number);
        this.#startWaiting();
        attempt.onEnd(outcome);
        if (this.#running.size === 0) this.#onIdle?.();
      },
    };
    for (const task of tasks) this.register(task);
  }

  /** @throws ConflictError when another task has this name. */
  register(task: TaskDefinition): void {
    const known = this.#tasks.get(task.name);
    if (known !== undefined && known !== task) {
      throw new ConflictError("usage", `two different tasks are named "${task.name}"`, {
        fix: "rename one of them",
      });
    }
    this.#tasks.set(task.name, task);
    this.#secrets.declare(task);
    if (task.sessionLeft !== undefined) this.#holding.add(task.sessionLeft);
  }

  /** The tasks of an agent, and the secrets of its functions. @throws as `register` does. */
  registerAgent(agent: Pick<Agent, "tasks" | "secrets" | "optionalSecrets">): void {
    for (const task of agent.tasks) this.register(task);
    this.#secrets.declareAgent(agent);
  }

  describe(kind: string): TaskTraits | undefined {
    const task = this.#tasks.get(kind);
    return task === undefined ? undefined : traitsOf(task);
  }

  kinds(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  start(request: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt {
    const attempt = new Attempt(this.#host, request, this.#tasks.get(request.kind), onEnd);
    if (this.#running.size < this.#concurrency) this.#begin(attempt);
    else this.#waiting.push(attempt);
    return attempt;
  }

  endLost({ kind, input, idempotencyKey }: LostAttempt): Promise<void> | undefined {
    const endLost = this.#tasks.get(kind)?.endLost;
    if (endLost === undefined) return undefined;
    // `async`, because an author's function may throw at once, whatever its type says.
    return (async () => endLost(decodeJson(input), idempotencyKey))();
  }

  /** The session is not in the memory of this process any more. Never throws. */
  sessionLeft(sessionId: string, how: { readonly isWaiting: boolean }): void {
    for (const leave of this.#holding) {
      const ending = (async () => leave(sessionId, how))().catch(() => {});
      this.#ending.add(ending);
      void ending.then(() => this.#ending.delete(ending));
    }
  }

  async close(graceMs = HANDLERS_END_MS): Promise<readonly UnsettledTask[]> {
    for (const attempt of this.#waiting.drain()) attempt.abort("the runtime is closing");
    for (const [, attempt] of this.#running) attempt.abort("the runtime is closing");
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    if (this.#heeding.size + this.#ending.size === 0) return [];
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.setTimer(late.resolve, graceMs);
    const ends = [...Array.from(this.#heeding, ({ settled }) => settled), ...this.#ending];
    await Promise.race([Promise.all(ends), late.promise]);
    cancel();
    return [...this.#heeding];
  }

  #begin(attempt: Attempt): void {
    const number = this.#begun++;
    this.#running.set(number, attempt);
    attempt.begin(number);
  }

  #startWaiting(): void {
    while (this.#running.size < this.#concurrency) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (!next.isOver) this.#begin(next);
    }
  }
}

/** The interface of the executor for its attempts. */
interface AttemptHost {
  readonly clock: Clock;
  readonly payloadChars: number;
  readonly checkLease: () => void;
  readonly read: LocalTaskExecutorOptions["read"];
  readonly signal: LocalTaskExecutorOptions["signal"];
  readonly heeding: Set<UnsettledTask>;
  readonly secrets: DeclaredSecrets;
  /** Called once. */
  ended(attempt: Attempt, outcome: AttemptOutcome): void;
}

class Attempt implements RunningAttempt, TaskContext {
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

  constructor(
    host: AttemptHost,
    request: TaskAttempt,
    definition: TaskDefinition | undefined,
    onEnd: (outcome: AttemptOutcome) => void,
  ) {
    this.#host = host;
    this.#request = request;
    this.#definition = definition;
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
    return this.#host.secrets.of(this.#request.closure === undefined ? this.#definition : undefined, name);
  }

  async signalSession(
    name: string,
    payload?: unknown,
    options: { readonly dedupKey?: string } = {},
  ): Promise<void> {
    if (!this.#mayReport()) throw this.#aborted ?? abortError("its attempt has ended");
    if (this.#host.signal === undefined) throw new UsageError("a task cannot signal its session here");
    const shown = payload === undefined ? undefined : this.#host.secrets.redactor.shown(payload);
    const receipt = await this.#host.signal(this.sessionId, name, shown, options);
    if (receipt.status === "refused") throw new HoldfastError("session_ended", receipt.reason);
  }

  async readSession(sessionId = this.sessionId): Promise<Session | undefined> {
    if (this.#host.read === undefined) throw new UsageError("a task cannot read its session here");
    const row = await this.#host.read(sessionId);
    // mutant: foreign-session-read-by-task
    const isNear = sessionId === this.sessionId || row?.parent?.sessionId === this.sessionId;
    return isNear ? row : undefined;
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
        this.#end({ status: "failed", error, retryable: true });
      }, timeoutMs);
    }
    const { closure } = this.#request;
    // A closure brings its context along.
    this.#performing = closure === undefined ? this.#request.within(() => this.#perform()) : this.#perform();
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
    queueMicrotask(() => this.#end({ status: "aborted" }));
  }

  async #perform(): Promise<void> {
    const { closure } = this.#request;
    let outcome: AttemptOutcome;
    try {
      const output = closure === undefined ? await this.#performDefined() : await closure(this);
      outcome = { status: "completed", output: this.#encode(output) };
    } catch (thrown) {
      const { redactor } = this.#host.secrets;
      outcome = attemptFailure(thrown, (text) => redactor.text(text)); // local-task-executor-6.
      // A handler that throws at once does so within `start`, and `onEnd` is never called within that.
      await Promise.resolve();
    }
    this.#end(outcome);
  }

  #encode(output: unknown): string | undefined {
    const { kind } = this.#request;
    const encoded = encodeJson(output, `output of task "${kind}"`);
    const text = encoded === undefined ? undefined : this.#host.secrets.redactor.json(encoded);
    const { payloadChars } = this.#host;
    if (text !== undefined && text.length > payloadChars) {
      throw new HoldfastError(
        "limit_exceeded",
        `output of task "${kind}" is ${text.length} characters of JSON`,
        {
          expected: `at most ${payloadChars} (limit "payloadChars")`,
          fix: "keep large content in a file and return its path, or raise the limit",
        },
      );
    }
    return text;
  }

  async #performDefined(): Promise<unknown> {
    const { kind } = this.#request;
    if (this.#definition !== undefined) {
      const input = await this.#input();
      // O10. It was aborted while its conversation was read: another process may start the attempt by now.
      // mutant: aborted-attempt-begins
      if (this.#aborted !== undefined) throw this.#aborted;
      return performTask(this.#definition, input, this);
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
