// `AgentContext`: the kernel as an author of agents sees it. Its waits are durable
// futures; `checkpoint`, `handoffToAgent` and `cleanup` return promises.

import { HoldfastError } from "../errors/errors.ts";
import type { RecordedError } from "../errors/recorded-error.ts";
import type { Approval } from "../journal/approval.ts";
import { childEventName, replyName } from "../journal/signal-names.ts";
import { LIMITS } from "../limits.ts";
import {
  CANCEL_OPTIONS,
  HANDOFF_OPTIONS,
  PATIENCE,
  QUESTION_OPTIONS,
  SPAWN_OPTIONS,
  refuseThread,
  TASK_OPTIONS,
  WAIT_OPTIONS,
  type AgentInfo,
  type EntryInput,
  type HandoffOptions,
  type QuestionOptions,
  type WaitOptions,
} from "./context-options.ts";
import type { RemainingBudget } from "../journal/amounts.ts";
import type { ChildEvent } from "../rules/consequences.ts";
import type { GivenEnvironment, ParentNotice } from "../session/session.ts";
import { validate, type InputArguments, type StandardSchemaV1 } from "../standard-schema.ts";
import type { StatePatch } from "../state/session-state.ts";
import type { Asks } from "../asks/asks.ts";
import { checkAwaited, checkName } from "../asks/checks.ts";
import type { TaskOptions, TaskType } from "../asks/task-asks.ts";
import type { ChildAsks } from "../asks/child-asks.ts";
import type { AgentMode, ChildHandle, SpawnOptions } from "../asks/child-creation.ts";
import { Combinators } from "./combinators.ts";
import { ConversationRef } from "../asks/conversation-ref.ts";
import { randomUuid } from "../asks/random.ts";
import type { DurableFuture } from "../replay/future.ts";
import type { Kernel } from "./kernel.ts";
import { scheduleTask, type TaskAnswer } from "./uncertain-effects.ts";

export class AgentContext<TaskContext = unknown, Input = unknown, State = unknown, P = StatePatch<State>> {
  /** The name of the agent. */
  readonly agentName: string;
  /** The input of the session, as the schema of the agent makes it. */
  readonly input: Input;
  /** The session that created this one; `undefined` without a parent. */
  readonly parentId: string | undefined;
  /** The notices of this session that reach the parent; `undefined` without a parent. */
  readonly parentNotice: ParentNotice | undefined;
  /** The value that the parent passed as `shared: { custom }`. */
  readonly shared: unknown;
  /** The progress that the session reported in whose place this one was created. */
  readonly resumedFrom: unknown;
  /** The environments and variables that the start of the session named (`--env-ref`, `--env`). */
  readonly environment: GivenEnvironment | undefined;
  readonly #kernel: Kernel;
  readonly #asks: Asks;
  readonly #children: ChildAsks;
  readonly #info: AgentInfo;
  readonly #sheltered: boolean;
  readonly #combine: Combinators;

  constructor(kernel: Kernel, info: AgentInfo, sheltered = false) {
    this.#kernel = kernel;
    this.#asks = kernel.asks;
    this.#children = kernel.children;
    this.#info = info;
    this.#sheltered = sheltered;
    this.#combine = new Combinators(kernel.turn);
    this.agentName = info.agentName;
    this.input = info.input as Input;
    this.parentId = info.parentId;
    this.parentNotice = info.parentNotice;
    this.shared = info.shared;
    this.resumedFrom = info.resumedFrom;
    this.environment = info.environment;
  }

  /** The id of this session; while a fork replays its origin's part, the recorded id of the origin. */
  get sessionId(): string {
    return this.#asks.sessionId;
  }

  /** Plain state: that of the last checkpoint, or `undefined`. Typed state: the current one, frozen. */
  get state(): State {
    return this.#asks.state.current as State;
  }

  /** Change fields of typed state, each by its reducer. The next checkpoint stores them. */
  update(patch: P): void {
    this.#asks.updateState(patch);
  }

  /** The number of checkpoints before. */
  get turn(): number {
    return this.#asks.turn;
  }

  // ---- tasks -------------------------------------------------------------------------------------------------------

  /** Ask for a task: at least once, with one recorded outcome. The segment's commit starts it. */
  scheduleTask<O = unknown, I = unknown, T extends TaskOptions = TaskOptions>(
    task: TaskType<I, O> | string,
    ...[input, options = {} as T]: InputArguments<I, T>
  ): DurableFuture<TaskAnswer<O, T>> {
    const kind = typeof task === "string" ? task : task.name;
    this.#asks.checkOptions("scheduleTask", options, TASK_OPTIONS);
    return scheduleTask(this.#asks.tasks, this, { kind, input, options }) as DurableFuture<TaskAnswer<O, T>>;
  }

  /** A closure as a task in this process. Once its return value is recorded, it is not called again. */
  run<T>(
    name: string,
    fn: (task: TaskContext) => T | Promise<T>,
    options: TaskOptions = {},
  ): DurableFuture<T> {
    checkName(name, "task");
    this.#asks.checkOptions("run", options, TASK_OPTIONS, refuseThread);
    const closure = fn as (task: unknown) => unknown;
    const request = { kind: name, input: undefined, closure, options };
    return scheduleTask(this.#asks.tasks, this, request) as DurableFuture<T>;
  }

  // ---- conversation ------------------------------------------------------------------------------------------------

  /** Append to the conversation, exactly once after any crash. Returns the entry's id. */
  appendEntry(entry: EntryInput): string {
    return this.#asks.appendEntry(entry);
  }

  /** Append a model's call of a tool as an entry of role `assistant`. */
  appendToolCall(call: {
    readonly toolCallId: string;
    readonly toolName: string;
    readonly input: unknown;
  }): string {
    return this.appendEntry({ role: "assistant", content: { type: "tool-call", ...call } });
  }

  /** Append a tool's answer as an entry of role `tool`. */
  appendToolResult(result: {
    readonly toolCallId: string;
    readonly toolName: string;
    readonly output: unknown;
    readonly isError?: boolean;
  }): string {
    return this.appendEntry({ role: "tool", content: { type: "tool-result", ...result } });
  }

  /**
   * The conversation so far, as input of a task. Task handlers receive the list of entries in its place:
   * those from the last entry without a parent on.
   *
   * @param to the id of the entry with which it ends; the last appended entry by default.
   */
  conversation(to?: string): ConversationRef {
    return new ConversationRef(this.#asks.conversationLeaf(to));
  }

  // ---- checkpoints -------------------------------------------------------------------------------------------------

  /**
   * Store the state and start the next turn: the agent is called again with it as `ctx.state`. Never returns.
   * Open tasks prevent a checkpoint, unless told to `wait` for or to `cancel`. Timers and waits are
   * withdrawn.
   *
   * @param state the whole state; typed state may be left out, and is then the state that `update` made.
   */
  checkpoint(
    state?: State,
    options: { readonly openTasks?: "refuse" | "cancel" | "wait" } = {},
  ): Promise<never> {
    return this.#asks.checkpoint(state, options.openTasks ?? "refuse");
  }

  // ---- signals -----------------------------------------------------------------------------------------------------

  /** The next signal of this name, consumed by the commit that uses it. */
  waitForSignal<T = unknown>(name: string, options: WaitOptions<T> = {}): DurableFuture<T> {
    checkAwaited(name);
    this.#asks.checkOptions("waitForSignal", options, WAIT_OPTIONS);
    const future = this.#asks.waits.waitSignal(name, "consume", options.timeoutMs, this.#sheltered);
    return this.#validated(future, options.schema, `payload of signal "${name}"`);
  }

  /** Settles while a signal of this name is pending. It consumes nothing, so it may take part in any race. */
  signalReady(name: string, options: { readonly timeoutMs?: number } = {}): DurableFuture<void> {
    checkAwaited(name);
    this.#asks.checkOptions("signalReady", options, PATIENCE);
    return this.#asks.waits.waitSignal(
      name,
      "ready",
      options.timeoutMs,
      this.#sheltered,
    ) as DurableFuture<void>;
  }

  /** The oldest pending signal of this name, consumed; `undefined` when none is pending. */
  takeSignal<T = unknown>(name: string): T | undefined {
    checkAwaited(name);
    return this.#asks.waits.takeSignals(name, "one")[0]?.payload as T | undefined;
  }

  /** Whether a signal of this name is pending. */
  hasSignal(name: string): boolean {
    checkAwaited(name);
    return this.#asks.hasSignal(name);
  }

  /** All pending signals whose name matches, consumed in order. `*` is text without a dot, `**` any. */
  drainSignals<T = unknown>(pattern: string): { readonly name: string; readonly payload: T }[] {
    return this.#asks.waits.takeSignals(pattern, "all") as { name: string; payload: T }[];
  }

  /**
   * Ask a person. The session is `input_required` until `holdfast approve` or, for a schema or `any` answer,
   * `holdfast answer`. An answer of another shape is refused when it is given, and not stored.
   */
  requestInput(
    question: string | { readonly prompt: string; readonly details?: unknown },
    options?: { readonly timeoutMs?: number; readonly ttlMs?: number },
  ): DurableFuture<Approval>;
  /** Ask a person; the answer has the shape of `options.schema`, or of its choices. */
  requestInput<T>(
    question: string | { readonly prompt: string; readonly details?: unknown },
    options: QuestionOptions<T>,
  ): DurableFuture<T>;
  requestInput<T>(
    question: string | { readonly prompt: string; readonly details?: unknown },
    options: QuestionOptions<T> = {},
  ): DurableFuture<T> {
    const asked = typeof question === "string" ? { prompt: question } : question;
    this.#asks.checkOptions("requestInput", options, QUESTION_OPTIONS);
    const answer = options.answer ?? (options.schema === undefined ? "approval" : "any");
    const future = this.#asks.waits.requestInput(asked, answer, options, this.#sheltered);
    return this.#validated(future, options.schema, `answer to "${asked.prompt}"`);
  }

  // ---- time and chance ---------------------------------------------------------------------------------------------

  /** A durable timer. `ms` from `now()`. */
  sleep(ms: number): DurableFuture<void> {
    return this.#asks.waits.startTimer(this.#asks.probeNow() + Math.max(0, ms), this.#sheltered);
  }

  /** Wait until a time: a `Date`, or epoch milliseconds. */
  sleepUntil(time: number | Date): DurableFuture<void> {
    return this.#asks.waits.startTimer(typeof time === "number" ? time : time.getTime(), this.#sheltered);
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
    return randomUuid(() => this.#asks.probeRandom());
  }

  /** Whether this session runs the change `name` of its code; false where it had passed this place before. */
  patched(name: string): boolean {
    return this.#asks.patched(name);
  }

  // ---- other sessions ----------------------------------------------------------------------------------------------

  /** Run an agent as a child, from this segment's commit on: `ctx.spawnAgent(local("name"), input)`. */
  spawnAgent<I, O>(
    mode: AgentMode<I, O>,
    ...[input, options = {}]: InputArguments<I, SpawnOptions>
  ): ChildHandle<O> {
    this.#asks.checkOptions("spawnAgent", options, SPAWN_OPTIONS);
    return this.#children.spawn(mode, input, options);
  }

  /** A child of this session by its session id, also one that was asked for before the last checkpoint. */
  child<O = unknown>(sessionId: string): ChildHandle<O> {
    this.#children.relations.numberOf(sessionId);
    return Object.freeze({ sessionId, agentName: undefined });
  }

  /** The child's output. Rejects with `ChildFailedError` when it ends without one. */
  waitForChild<O>(child: ChildHandle<O>, options: { readonly timeoutMs?: number } = {}): DurableFuture<O> {
    this.#asks.checkOptions("waitForChild", options, PATIENCE);
    const wait = { timeoutMs: options.timeoutMs, sheltered: this.#sheltered };
    return this.#children.outputOf(child, wait) as DurableFuture<O>;
  }

  /** The next event of the child: a signal, its progress, that it is blocked, or its end. */
  waitForChildEvent(
    child: ChildHandle,
    options: { readonly timeoutMs?: number } = {},
  ): DurableFuture<ChildEvent> {
    const { sessionId } = child;
    const name = childEventName(this.#children.listenedTo(child));
    this.#asks.checkOptions("waitForChildEvent", options, PATIENCE);
    return this.#asks.waits.waitSignal(
      name,
      "consume",
      options.timeoutMs,
      this.#sheltered,
      `word of child ${sessionId}`,
    ) as DurableFuture<ChildEvent>;
  }

  /** Signal a child, or its successor, exactly once after any crash. */
  signalChild(child: ChildHandle, name: string, payload?: unknown): void {
    checkName(name, "signal");
    this.#children.sendToChild(child.sessionId, name, payload);
  }

  /** Cancel a child, and all below it. It may clean up first, at most `graceMs`; with `hard` it may not. */
  cancelChild(
    child: ChildHandle,
    options: { readonly hard?: boolean; readonly graceMs?: number; readonly reason?: string } = {},
  ): void {
    this.#asks.checkOptions("cancelChild", options, CANCEL_OPTIONS);
    const { hard = false, graceMs = LIMITS.cancelGraceMs, reason } = options;
    this.#children.cancel(child.sessionId, hard ? "hard" : "graceful", graceMs, reason);
  }

  /** Signal the parent, as a child event. Returns whether there is one; an ended one receives nothing. */
  signalParent(name: string, payload?: unknown): boolean {
    checkName(name, "signal");
    return this.#children.sendToParent(name, { type: "signal", name, payload: payload ?? null });
  }

  /** Report progress to the parent, to observers, and as `ctx.resumedFrom` to a session in its place. */
  reportProgress(data: unknown): void {
    this.#children.sendToParent("progress", { type: "progress", data: data ?? null });
    this.#children.progressed(data);
  }

  /**
   * Ask a handler of the parent's agent. The handler is a task of the parent, with the parent's access.
   * Rejects with `session_ended` when the parent has ended, or ends before it answers.
   */
  requestFromParent<T = unknown>(
    name: string,
    payload?: unknown,
    options: { readonly timeoutMs?: number } = {},
  ): DurableFuture<T> {
    checkName(name, "request");
    this.#asks.checkOptions("requestFromParent", options, PATIENCE);
    const request = this.#children.requestParent(name, payload);
    const reply = this.#asks.waits.waitSignal(
      replyName(request),
      "consume",
      options.timeoutMs,
      this.#sheltered,
      `the answer to request "${name}"`,
    );
    return reply.mapped(async (answer) => {
      const { output, error, ended } = answer as { output?: unknown; error?: RecordedError; ended?: string };
      if (ended !== undefined) throw parentHasEnded(name, ended);
      if (error === undefined) return output as T;
      throw new HoldfastError("task_failed", `the parent's handler "${name}" failed: ${error.message}`, {
        cause: error,
      });
    });
  }

  /** Let another agent continue: `return ctx.handoffToAgent(local("name"), input)`. */
  handoffToAgent<I, O>(
    mode: AgentMode<I, O>,
    ...[input, options = {}]: InputArguments<I, HandoffOptions>
  ): Promise<O> {
    this.#asks.checkOptions("handoffToAgent", options, HANDOFF_OPTIONS);
    const { completion = "wait_for_child", ...spawning } = options;
    if (completion === "wait_for_child")
      return this.waitForChild(this.#children.spawn(mode, input, { onParentEnd: "wait", ...spawning }));
    this.#children.handOff(mode, input, spawning);
    return this.#asks.endByHandOver();
  }

  /** The amount left to spend, by the payer that has least. Amounts without a limit are absent. */
  remainingBudget(): RemainingBudget {
    return this.#asks.remainingBudget();
  }

  /** From here on everything of this session survives its process. */
  enablePersistence(): void {
    this.#asks.enablePersistence();
    this.#children.relations.persistence = "full";
  }

  // ---- cancellation ------------------------------------------------------------------------------------------------

  /** Whether somebody has asked that this session be cancelled. */
  isCancellationRequested(): boolean {
    return this.#asks.cancelRequested;
  }

  /** Run `fn` with a context whose waits and timers survive a graceful cancel, until its deadline. */
  cleanup<T>(fn: (ctx: AgentContext<TaskContext, Input, State, P>) => Promise<T>): Promise<T> {
    return fn(new AgentContext<TaskContext, Input, State, P>(this.#kernel, this.#info, true));
  }

  // ---- combinators -------------------------------------------------------------------------------------------------

  /** As `Promise.all`; when one fails, the open waits of the others are withdrawn. */
  get all(): Combinators["all"] {
    return this.#combine.all.bind(this.#combine);
  }

  /** As `Promise.allSettled`. */
  get allSettled(): Combinators["allSettled"] {
    return this.#combine.allSettled.bind(this.#combine);
  }

  /** As `Promise.any`; the open waits of the others are withdrawn. */
  get any(): Combinators["any"] {
    return this.#combine.any.bind(this.#combine);
  }

  /** As `Promise.race`; the open waits of the losers are withdrawn, and running tasks go on. */
  get race(): Combinators["race"] {
    return this.#combine.race.bind(this.#combine);
  }

  /** The first one, by its key: `const { key, value } = await ctx.select({ done: task, stop: signal })`. */
  get select(): Combinators["select"] {
    return this.#combine.select.bind(this.#combine);
  }

  // ------------------------------------------------------------------------------------------------------------------

  #validated<T>(
    future: DurableFuture<unknown>,
    schema: StandardSchemaV1<unknown, T> | undefined,
    what: string,
  ): DurableFuture<T> {
    if (schema === undefined) return future as DurableFuture<T>;
    return future.mapped((value) => validate(schema, value, what, "invalid_signal"));
  }
}

function parentHasEnded(request: string, parentId: string): HoldfastError {
  const what = `ctx.requestFromParent("${request}"): the parent, session ${parentId}, has ended`;
  return new HoldfastError("session_ended", what, {
    fix: "spawn the child with onParentEnd: cancel or wait, or do what is asked for here",
  });
}
