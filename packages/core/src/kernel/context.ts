// What an agent sees: the kernel in the words of an author. Every method is synchronous or returns a durable future.

import { UsageError } from "../errors.ts";
import { isName } from "../ids.ts";
import type { AnswerShape, Approval } from "../journal/approval.ts";
import type { RetryPolicy } from "../journal/record.ts";
import { ANSWER_PREFIX } from "../journal/record.ts";
import { validate, type StandardSchemaV1 } from "../standard-schema.ts";
import type { Asks } from "./asks.ts";
import { callerLine } from "./caller.ts";
import { Combinators } from "./combinators.ts";
import type { DurableFuture } from "./future.ts";
import type { Kernel } from "./kernel.ts";

/** A defined task as a context needs it: its name, and its types for the compiler. */
export interface TaskType<Input, Output> {
  readonly name: string;
  readonly types?: { readonly input: Input; readonly output: Output };
}

export interface TaskOptions {
  /** Tasks of one segment with the same key are one task (K1). Handlers get it as `idempotencyKey`. */
  readonly idempotencyKey?: string;
  /** One attempt may take this long. */
  readonly timeoutMs?: number;
  readonly retry?: RetryPolicy;
}

export interface EntryInput {
  /** `user`, `assistant`, `tool`, `system`, or a role of yours. */
  readonly role: string;
  readonly content: unknown;
  /** The entry it answers; the one appended last by default. */
  readonly parentId?: string;
}

export interface WaitOptions<T> {
  /** Reject with `WaitTimeoutError` after this long, and stop waiting. */
  readonly timeoutMs?: number;
  /** What the payload must be; otherwise the wait rejects with `invalid_signal`, the signal being consumed. */
  readonly schema?: StandardSchemaV1<unknown, T>;
}

/** A conversation as an input of tasks: a reference, resolved to its entries where the task runs (K8). */
export class ConversationRef {
  readonly leaf: number | undefined;

  constructor(leaf: number | undefined) {
    this.leaf = leaf;
  }

  toJSON(): { readonly $conversation: number | null } {
    return { $conversation: this.leaf ?? null };
  }
}

export interface QuestionOptions<T> extends WaitOptions<T> {
  /** Without a schema and without this a question asks for an `Approval`. `any` takes any JSON as it is. */
  readonly answer?: AnswerShape;
}

export interface AgentInfo {
  readonly sessionId: string;
  readonly agentName: string;
  /** Decoded anew for each kernel, so that agents may change it freely. */
  readonly input: unknown;
  readonly state: unknown;
}

export class AgentContext<TaskContext = unknown, Input = unknown, State = unknown> {
  readonly sessionId: string;
  readonly agentName: string;
  readonly input: Input;
  /** The state of the last checkpoint; `undefined` before the first. */
  readonly state: State | undefined;
  readonly #kernel: Kernel;
  readonly #asks: Asks;
  readonly #info: AgentInfo;
  readonly #sheltered: boolean;
  readonly #combine: Combinators;

  constructor(kernel: Kernel, info: AgentInfo, sheltered = false) {
    this.#kernel = kernel;
    this.#asks = kernel.asks;
    this.#info = info;
    this.#sheltered = sheltered;
    this.#combine = new Combinators(kernel.asks);
    this.sessionId = info.sessionId;
    this.agentName = info.agentName;
    this.input = info.input as Input;
    this.state = info.state as State | undefined;
  }

  /** How many checkpoints came before. */
  get turn(): number {
    return this.#asks.turn;
  }

  // ---- tasks -------------------------------------------------------------------------------------------------------

  /** Ask for a task: at least once, its outcome recorded once. Returns at once; starts when the segment is committed. */
  scheduleTask<I, O>(task: TaskType<I, O>, input: I, options?: TaskOptions): DurableFuture<O>;
  scheduleTask<O = unknown>(kind: string, input?: unknown, options?: TaskOptions): DurableFuture<O>;
  scheduleTask(
    task: string | { readonly name: string },
    input?: unknown,
    options: TaskOptions = {},
  ): DurableFuture<unknown> {
    const kind = typeof task === "string" ? task : task.name;
    return this.#asks.scheduleTask({
      kind,
      input,
      key: options.idempotencyKey,
      timeoutMs: options.timeoutMs,
      retry: options.retry,
    });
  }

  /** A task made of a closure, done in this process. What `fn` returns is recorded; it is not called again once it is. */
  run<T>(
    name: string,
    fn: (task: TaskContext) => T | Promise<T>,
    options: TaskOptions = {},
  ): DurableFuture<T> {
    this.#checkName(name, "task");
    return this.#asks.scheduleTask({
      kind: name,
      input: undefined,
      closure: fn as (task: unknown) => unknown,
      key: options.idempotencyKey,
      timeoutMs: options.timeoutMs,
      retry: options.retry,
    }) as DurableFuture<T>;
  }

  // ---- conversation ------------------------------------------------------------------------------------------------

  /** Append to the conversation, exactly once after any crash. Returns the entry's id. */
  appendEntry(entry: EntryInput): string {
    return this.#asks.appendEntry(entry);
  }

  /** The conversation so far, to hand to a task. Handlers find the list of entries in its place. */
  conversation(): ConversationRef {
    return new ConversationRef(this.#asks.conversationLeaf());
  }

  // ---- checkpoints -------------------------------------------------------------------------------------------------

  /**
   * Store the state and start the next turn: the agent's function is called anew with it as `ctx.state`, live as after a
   * crash. Never returns. Open tasks refuse it unless told to `wait` for or to `cancel`; timers and waits are withdrawn.
   */
  checkpoint(
    state: State,
    options: { readonly openTasks?: "refuse" | "cancel" | "wait" } = {},
  ): Promise<never> {
    return this.#asks.checkpoint(state, options.openTasks ?? "refuse");
  }

  // ---- signals -----------------------------------------------------------------------------------------------------

  /** The next signal of this name, consumed by the commit that uses it. */
  waitForSignal<T = unknown>(name: string, options: WaitOptions<T> = {}): DurableFuture<T> {
    this.#checkName(name, "signal");
    const future = this.#asks.waitSignal(name, "consume", options.timeoutMs, this.#sheltered);
    return this.#validated(future, options.schema, `payload of signal "${name}"`);
  }

  /** Settles while a signal of this name is pending; consumes nothing, so it may be raced by anything. */
  signalReady(name: string, options: { readonly timeoutMs?: number } = {}): DurableFuture<void> {
    this.#checkName(name, "signal");
    return this.#asks.waitSignal(name, "ready", options.timeoutMs, this.#sheltered) as DurableFuture<void>;
  }

  /** The oldest pending signal of this name, consumed; `undefined` when none is pending. */
  takeSignal<T = unknown>(name: string): T | undefined {
    this.#checkName(name, "signal");
    return this.#asks.takeSignals(name, "one")[0]?.payload as T | undefined;
  }

  hasSignal(name: string): boolean {
    this.#checkName(name, "signal");
    return this.#asks.hasSignal(name);
  }

  /** All pending signals whose name matches (`*`: no dot, `**`: anything), in order of arrival, consumed. */
  drainSignals<T = unknown>(pattern: string): { readonly name: string; readonly payload: T }[] {
    return this.#asks.takeSignals(pattern, "all") as { name: string; payload: T }[];
  }

  /**
   * Ask a person. The session is `input_required` until `holdfast approve` or, for what has a schema or takes `any`
   * answer, `holdfast answer`. An answer of another shape is refused where it is given, and not stored.
   */
  requestInput(
    question: string | { readonly prompt: string; readonly details?: unknown },
    options?: { readonly timeoutMs?: number },
  ): DurableFuture<Approval>;
  requestInput<T>(
    question: string | { readonly prompt: string; readonly details?: unknown },
    options: QuestionOptions<T>,
  ): DurableFuture<T>;
  requestInput<T>(
    question: string | { readonly prompt: string; readonly details?: unknown },
    options: QuestionOptions<T> = {},
  ): DurableFuture<T> {
    const asked = typeof question === "string" ? { prompt: question } : question;
    const answer = options.answer ?? (options.schema === undefined ? "approval" : "any");
    const future = this.#asks.requestInput(asked, answer, options.timeoutMs, this.#sheltered);
    return this.#validated(future, options.schema, `answer to "${asked.prompt}"`);
  }

  // ---- time and chance ---------------------------------------------------------------------------------------------

  /** A durable timer. `ms` from `now()`. */
  sleep(ms: number): DurableFuture<void> {
    return this.#asks.startTimer(this.#asks.probeNow() + Math.max(0, ms), this.#sheltered);
  }

  sleepUntil(time: number | Date): DurableFuture<void> {
    return this.#asks.startTimer(typeof time === "number" ? time : time.getTime(), this.#sheltered);
  }

  /** Epoch milliseconds of the delivery the agent is reacting to; the same on replay. */
  now(): number {
    return this.#asks.probeNow();
  }

  /** In [0, 1), the same on replay. */
  random(): number {
    return this.#asks.probeRandom() / 0x1_0000_0000;
  }

  /** A version 4 UUID, the same on replay. */
  randomUuid(): string {
    const words = Array.from({ length: 4 }, () => this.#asks.probeRandom().toString(16).padStart(8, "0"));
    const hex = words.join("");
    const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  // ---- cancellation ------------------------------------------------------------------------------------------------

  isCancellationRequested(): boolean {
    return this.#asks.cancelRequested;
  }

  /** Waits and timers asked of the context given to `fn` live through a graceful cancel, until its deadline. */
  cleanup<T>(fn: (ctx: AgentContext<TaskContext, Input, State>) => Promise<T>): Promise<T> {
    return fn(new AgentContext<TaskContext, Input, State>(this.#kernel, this.#info, true));
  }

  // ---- combinators -------------------------------------------------------------------------------------------------

  get all(): Combinators["all"] {
    return this.#combine.all.bind(this.#combine);
  }

  get allSettled(): Combinators["allSettled"] {
    return this.#combine.allSettled.bind(this.#combine);
  }

  get any(): Combinators["any"] {
    return this.#combine.any.bind(this.#combine);
  }

  get race(): Combinators["race"] {
    return this.#combine.race.bind(this.#combine);
  }

  /** The first of several, by its key: `const { key, value } = await ctx.select({ done: task, stop: signal })`. */
  get select(): Combinators["select"] {
    return this.#combine.select.bind(this.#combine);
  }

  // ------------------------------------------------------------------------------------------------------------------

  #checkName(name: string, what: string): void {
    if (isName(name) && !name.startsWith(ANSWER_PREFIX)) return;
    const line = callerLine();
    throw new UsageError(`"${name}" cannot be the name of a ${what}`, {
      ...(line === undefined ? {} : { at: line }),
      expected: `1 to 200 letters, digits, spaces and . _ : / @ + -, not starting with "${ANSWER_PREFIX}"`,
    });
  }

  #validated<T>(
    future: DurableFuture<unknown>,
    schema: StandardSchemaV1<unknown, T> | undefined,
    what: string,
  ): DurableFuture<T> {
    if (schema === undefined) return future as DurableFuture<T>;
    return future.mapped((value) => validate(schema, value, what, "invalid_signal"));
  }
}
