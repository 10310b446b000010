// A process that runs sessions: what people ask of it, and what it is made of.
//
//   T1. `start`, `signal` and `cancel` answer after what they asked for is durable.
//
// Which sessions it drives is in `live-sessions.ts` (T2, T4), when they come and go by time in `due-sessions.ts` (T3).

import { AsyncLocalStorage } from "node:async_hooks";
import {
  BEHAVIOUR_FLAGS,
  checkBudget,
  encodeJson,
  HoldfastError,
  isEnded,
  isName,
  isReservedName,
  isSessionId,
  JOURNAL_FORMAT,
  LIMITS,
  mintId,
  toHoldfastError,
  UsageError,
  validate,
  type AgentRef,
  type AgentStorage,
  type AgentTracer,
  type Clock,
  type CreateSession,
  type Budget,
  type Limits,
  type PauseSession,
  type Prices,
  type Random,
  type ResumeSession,
  type SessionStatus,
  type SetBudget,
  type SignalReceipt,
  type SignalSource,
  type TaskExecutor,
} from "@holdfast/core";
import type { Agent } from "./define.ts";
import { installDevelopmentChecks } from "./development-checks.ts";
import { readConversation } from "./conversation.ts";
import { DueSessions } from "./due-sessions.ts";
import { GroupCommitter } from "./group-committer.ts";
import { LiveSessions, sessionNotFound } from "./live-sessions.ts";
import { LocalTaskExecutor } from "./local-task-executor.ts";
import { isDevelopment, sha256, silentTracer, systemClock, systemRandom } from "./node-ports.ts";
import type {
  AnswerOptions,
  CancelOptions,
  CancelReceipt,
  ResumeOptions,
  Runtime,
  RuntimeOptions,
  SessionHandle,
  SignalOptions,
  StartOptions,
} from "./runtime-api.ts";
import type { DriverWorld } from "./driver-world.ts";
import { outputOf, type Settled } from "./settled.ts";
import { SliceLoop, type Immediate } from "./slice-loop.ts";
import { watchStrayRejections } from "./stray-rejections.ts";
import { Timers } from "./timers.ts";
import type { Watchdog } from "./watchdog.ts";

export type { Runtime, RuntimeOptions } from "./runtime-api.ts";

const WARM_MS = 30_000;

/** Make a runtime over the given storage. Options not given are those of a Node process. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new LocalRuntime(options);
}

/** @internal End a runtime as the death of its process would. Its storage must be dead already. */
export function vanishRuntime(runtime: Runtime): void {
  if (runtime instanceof LocalRuntime) runtime.vanish();
}

class LocalRuntime implements Runtime {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #immediate: Immediate;
  readonly #limits: Limits;
  readonly #prices: Prices | undefined;
  readonly #tracer: AgentTracer;
  readonly #executor: TaskExecutor;
  readonly #timers: Timers;
  readonly #committer: GroupCommitter;
  readonly #world: DriverWorld;
  readonly #sessions: LiveSessions;
  readonly #due: DueSessions;
  readonly #context = new AsyncLocalStorage<string>();
  readonly #watchdog: Watchdog | undefined;
  readonly #owner: string;
  readonly #closers: (() => void | Promise<void>)[] = [];

  constructor(options: RuntimeOptions) {
    this.#storage = options.storage;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom();
    this.#limits = { ...LIMITS, ...options.limits };
    this.#prices = options.prices;
    this.#tracer = options.tracer ?? silentTracer;
    this.#owner = options.owner ?? `process ${process.pid} (${this.#random.u32().toString(36)})`;
    this.#timers = new Timers(this.#clock);
    this.#executor = isExecutor(options.tasks)
      ? options.tasks
      : new LocalTaskExecutor({
          tasks: options.tasks ?? [],
          clock: this.#clock,
          payloadChars: this.#limits.payloadChars,
          ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
        });
    this.#immediate = options.immediate ?? setImmediate;
    this.#committer = new GroupCommitter(this.#storage, this.#clock, this.#immediate);
    this.#watchdog = options.watchdog;
    this.#world = this.#makeWorld();
    const adopt = options.adopt ?? true;
    const warn = (sessionId: string, message: string): void => this.#trace(sessionId, message);
    this.#sessions = new LiveSessions({
      storage: this.#storage,
      committer: this.#committer,
      world: this.#world,
      owner: this.#owner,
      adopt,
      watchdog: this.#watchdog,
      lookAt: (at) => this.#due.lookAt(at),
      left: (sessionId) => this.#due.forget(sessionId),
      warn,
    });
    this.#due = new DueSessions({
      storage: this.#storage,
      clock: this.#clock,
      timers: this.#timers,
      sessions: this.#sessions,
      warmMs: options.warmMs ?? WARM_MS,
      adopt,
      warn,
    });
    for (const agent of options.agents ?? []) this.#know(agent);
    this.#closers.push(
      this.#storage.subscribe(({ sessionId, awaited }) => this.#sessions.arrived(sessionId, awaited)),
      watchStrayRejections(this.#context, (sessionId, reason) => this.#warn(sessionId, reason)),
    );
    if (options.development ?? isDevelopment()) {
      this.#closers.push(
        installDevelopmentChecks({
          currentSession: () => (this.#world.loop.inSlice ? this.#context.getStore() : undefined),
          warn: (sessionId, message) => this.#trace(sessionId, message),
        }),
      );
    }
    for (const source of options.signals ?? []) this.#listen(source);
  }

  get live(): number {
    return this.#sessions.size;
  }

  async start<Input, Output>(
    agent: Agent<Input, Output>,
    input?: Input,
    { sessionId, file, budget, persistence = "full", timeoutMs, traceparent }: StartOptions = {},
  ): Promise<SessionHandle<Output>> {
    this.#refuseIfClosed();
    if (sessionId !== undefined && !isSessionId(sessionId)) {
      throw new UsageError(`"${sessionId}" cannot be a session id`, {
        expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or digit",
      });
    }
    this.#know(agent as unknown as Agent);
    // What the schema makes of it (defaults, conversions) is what is recorded, and so what the agent sees.
    const valid = await validate(agent.input, input, `input of agent "${agent.name}"`, "invalid_input");
    const text = encodeJson(valid, `input of agent "${agent.name}"`);
    this.#refuseIfLarge(text, `input of agent "${agent.name}"`);
    const id = sessionId ?? mintId("ses", this.#clock.now(), () => this.#random.u32());
    const ref: AgentRef = {
      name: agent.name,
      version: agent.version,
      ...(file === undefined ? {} : { file }),
      ...(traceparent === undefined ? {} : { traceparent }),
    };
    const creation: CreateSession = {
      type: "create_session",
      sessionId: id,
      agent: ref,
      input: text,
      seed: this.#random.u32(),
      flags: BEHAVIOUR_FLAGS,
      format: JOURNAL_FORMAT,
      ...(budget === undefined ? {} : { budget: checkBudget(budget) }),
      ...(persistence === "full" ? {} : { persistence }),
      ...this.#deadline(Math.min(timeoutMs ?? Infinity, budget?.ttlMs ?? Infinity)),
      claimFor: { owner: this.#owner, leaseMs: Infinity },
    };
    const status = await this.#sessions.create(agent as unknown as Agent, creation);
    if (status === "created") return this.#handle<Output>(id, true);
    if (status !== "exists") throw unexpected("creating a session", status);
    await this.#goOn(id);
    return this.#handle<Output>(id, false);
  }

  /** With a session that exists: ours, when the first answer was lost. Another's is run elsewhere, and nothing is to do here. */
  async #goOn(sessionId: string): Promise<void> {
    try {
      const session = await this.#sessions.find(sessionId);
      if (isEnded(session.status) || session.status === "paused") return;
      await this.#sessions.activate(sessionId, false);
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      if (error.code === "session_claimed") return;
      this.#sessions.failedToRun(sessionId, error); // Ours is claimed already: nobody else would.
      throw error;
    }
  }

  async resume(sessionId: string, { acceptDrift = false }: ResumeOptions = {}): Promise<SessionHandle> {
    this.#refuseIfClosed();
    const session = await this.#sessions.find(sessionId);
    this.#watchdog?.clear(sessionId); // A person wants it tried again.
    if (session.status === "paused") await this.#committer.commit({ type: "resume_session", sessionId });
    if (!isEnded(session.status)) await this.#sessions.activate(sessionId, acceptDrift);
    return this.#handle(sessionId, false);
  }

  async recover(): Promise<readonly string[]> {
    this.#refuseIfClosed();
    return this.#due.runDue();
  }

  handle(sessionId: string): SessionHandle {
    return this.#handle(sessionId, false);
  }

  async signal(
    sessionId: string,
    name: string,
    payload?: unknown,
    options: SignalOptions = {},
  ): Promise<SignalReceipt> {
    if (!isName(name) || isReservedName(name)) {
      throw new UsageError(`"${name}" cannot be the name of a signal`, {
        expected:
          '1 to 200 letters, digits, spaces and . _ : / @ + -, not starting with "answer:", "child:", "child-end:", "request:" or "reply:"',
      });
    }
    return this.#send(sessionId, name, payload, options);
  }

  async answer(sessionId: string, answer: unknown, { question }: AnswerOptions = {}): Promise<SignalReceipt> {
    const session = await this.#sessions.find(sessionId);
    const open = session.waits.filter((wait) => wait.type === "input");
    const wait = question === undefined ? open[0] : open.find(({ id }) => id === question);
    if (wait === undefined) {
      const reason =
        open.length === 0
          ? `session ${sessionId} asks nothing (it is ${session.status})`
          : `session ${sessionId} has no open question ${question}; open: ${open.map(({ id }) => id).join(", ")}`;
      return { status: "refused", reason };
    }
    return this.#send(sessionId, wait.name, answer, { dedupKey: wait.name });
  }

  async #send(
    sessionId: string,
    name: string,
    payload: unknown,
    { dedupKey }: SignalOptions,
  ): Promise<SignalReceipt> {
    const text = encodeJson(payload, `payload of signal "${name}"`);
    this.#refuseIfLarge(text, `payload of signal "${name}"`);
    const result = await this.#committer.commit({
      type: "send_signal",
      sessionId,
      signalId: mintId("sig", this.#clock.now(), () => this.#random.u32()),
      name,
      payload: text,
      ...(dedupKey === undefined ? {} : { dedupKey }),
    });
    switch (result.status) {
      case "stored":
      case "duplicate":
        return { status: result.status };
      case "ended":
        return { status: "refused", reason: `session ${sessionId} has ended (${result.sessionStatus})` };
      case "not_found":
        return { status: "refused", reason: `there is no session ${sessionId}` };
      case "invalid":
        return { status: "refused", reason: result.reason };
      default:
        throw unexpected("sending a signal", result.status);
    }
  }

  async cancel(
    sessionId: string,
    { hard = false, graceMs, reason }: CancelOptions = {},
  ): Promise<CancelReceipt> {
    const result = await this.#committer.commit({
      type: "request_cancel",
      sessionId,
      mode: hard ? "hard" : "graceful",
      graceMs: graceMs ?? this.#limits.cancelGraceMs,
      ...(reason === undefined ? {} : { reason }),
    });
    switch (result.status) {
      case "requested":
        // Whatever becomes of its agent: at the deadline it ends.
        if (!hard) this.#due.lookAt(this.#clock.now() + (graceMs ?? this.#limits.cancelGraceMs));
        return { status: "requested", sessionStatus: result.sessionStatus };
      case "ended":
        return { status: "already_ended", sessionStatus: result.sessionStatus };
      case "not_found":
        throw sessionNotFound(sessionId);
      default:
        throw unexpected("cancelling", result.status);
    }
  }

  async pause(sessionId: string): Promise<SessionStatus> {
    return this.#request({ type: "pause_session", sessionId }, "pausing");
  }

  async unpause(sessionId: string): Promise<SessionStatus> {
    const status = await this.#request({ type: "resume_session", sessionId }, "resuming");
    const { agent } = await this.#sessions.find(sessionId);
    if (!isEnded(status) && this.#sessions.agents.latest(agent.name) !== undefined)
      await this.#sessions.activate(sessionId, false);
    return status;
  }

  async setBudget(sessionId: string, limits: Budget): Promise<SessionStatus> {
    return this.#request(
      { type: "set_budget", sessionId, limits: checkBudget(limits) },
      "raising the budget",
    );
  }

  async #request(change: PauseSession | ResumeSession | SetBudget, doing: string): Promise<SessionStatus> {
    const result = await this.#committer.commit(change);
    switch (result.status) {
      case "requested":
      case "ended":
        return result.sessionStatus;
      case "not_found":
        throw sessionNotFound(change.sessionId);
      case "invalid":
        throw new UsageError(result.reason);
      default:
        throw unexpected(doing, result.status);
    }
  }

  async close(): Promise<void> {
    if (this.#sessions.closed) return;
    await this.#sessions.close();
    await this.#executor.close();
    await this.#committer.idle();
    for (const close of this.#closers.splice(0)) await close();
    this.#timers.close();
    await this.#tracer.flush?.().catch(() => {});
  }

  /** @internal Vanish as a killed process would: nothing is released, committed or awaited. For crash tests. */
  vanish(): void {
    this.#sessions.vanish();
    void this.#executor.close();
    for (const close of this.#closers.splice(0)) void close();
    this.#timers.close();
  }

  // ---- inside ------------------------------------------------------------------------------------------------------

  #know(agent: Agent): void {
    if (!this.#sessions.know(agent)) return;
    if (this.#executor instanceof LocalTaskExecutor)
      for (const task of agent.tasks) this.#executor.register(task);
    for (const child of agent.agents) this.#know(child);
  }

  #deadline(ms: number): { readonly deadlineAt?: number } {
    if (ms === Infinity) return {};
    if (Number.isFinite(ms) && ms > 0) return { deadlineAt: Math.ceil(this.#clock.now() + ms) };
    throw new UsageError(`a session cannot have ${ms} ms to live`, {
      expected: "a number of milliseconds above 0",
    });
  }

  #listen(source: SignalSource): void {
    const opening = source.open(async ({ sessionId, name, payload, dedupKey }) => {
      try {
        return await this.signal(sessionId, name, payload, dedupKey === undefined ? {} : { dedupKey });
      } catch (error) {
        return { status: "refused", reason: toHoldfastError(error).message };
      }
    });
    this.#closers.push(async () => (await opening).close());
  }

  #makeWorld(): DriverWorld {
    const storage = this.#storage;
    return {
      loop: new SliceLoop(this.#committer.flush, this.#watchdog, this.#immediate),
      immediate: this.#immediate,
      timers: this.#timers,
      clock: this.#clock,
      hash: sha256,
      limits: this.#limits,
      executor: this.#executor,
      random: () => this.#random.u32(),
      submit: (change, onResult, onError) => this.#committer.submit({ change, onResult, onError }),
      arrivals: (sessionId, after) => storage.arrivals(sessionId, after),
      conversation: (session, leaf) => readConversation(storage, session, leaf),
      prices: this.#prices,
      describeAgent: (name) => this.#sessions.agents.describe(name),
      agentNames: () => this.#sessions.agents.names,
      spawned: (sessionIds) => this.#sessions.spawned(sessionIds),
      settled: () => this.#sessions.settled(),
      awaitSettlement: (driver) => this.#sessions.awaitSettlement(driver),
      trace: guardedTrace(this.#tracer),
      traceparent: guardedTraceparent(this.#tracer),
      noteWaiting: (sessionId) => this.#due.noteWaiting(sessionId),
      enter: (sessionId, fn) => this.#context.run(sessionId, fn),
      departed: (driver, departure) => this.#sessions.departed(driver, departure),
    };
  }

  #warn(sessionId: string, reason: unknown): void {
    this.#trace(
      sessionId,
      `a promise of the agent was rejected and nobody handled it: ${toHoldfastError(reason).message}`,
    );
  }

  #trace(sessionId: string, message: string): void {
    this.#world.trace?.({ type: "warned", sessionId, at: this.#clock.now(), message });
  }

  #refuseIfLarge(text: string | undefined, what: string): void {
    if (text === undefined || text.length <= this.#limits.payloadChars) return;
    throw new UsageError(`${what} is ${text.length} characters of JSON`, {
      code: "limit_exceeded",
      expected: `at most ${this.#limits.payloadChars} (limit "payloadChars")`,
      fix: "keep large content in a file and pass its path, or raise the limit",
    });
  }

  #refuseIfClosed(): void {
    if (this.#sessions.closed)
      throw new UsageError("the runtime is closed", { fix: "make another with createRuntime()" });
  }

  #handle<Output>(sessionId: string, created: boolean): SessionHandle<Output> {
    return {
      sessionId,
      created,
      result: async () => outputOf(sessionId, (await this.#sessions.settledOf(sessionId)) as Settled<Output>),
      settled: () => this.#sessions.settledOf(sessionId) as Promise<Settled<Output>>,
      session: () => this.#sessions.find(sessionId),
      signal: (name, payload, options) => this.signal(sessionId, name, payload, options),
      answer: (answer, options) => this.answer(sessionId, answer, options),
      cancel: (options) => this.cancel(sessionId, options),
      pause: () => this.pause(sessionId),
      unpause: () => this.unpause(sessionId),
      setBudget: (limits) => this.setBudget(sessionId, limits),
    };
  }
}

/** A tracer can neither throw into nor delay what it watches. */
function guardedTrace(tracer: AgentTracer): DriverWorld["trace"] {
  if (tracer === silentTracer) return undefined;
  return (event) => {
    try {
      tracer.trace(event);
    } catch {
      // What a tracer cannot take is lost to it.
    }
  };
}

function guardedTraceparent(tracer: AgentTracer): DriverWorld["traceparent"] {
  return (sessionId, attempt) => {
    try {
      return tracer.traceparent?.(sessionId, attempt);
    } catch {
      return undefined;
    }
  };
}

function isExecutor(tasks: RuntimeOptions["tasks"]): tasks is TaskExecutor {
  return tasks !== undefined && !Array.isArray(tasks);
}

function unexpected(doing: string, status: string): HoldfastError {
  return new HoldfastError("internal", `${doing}: storage answered "${status}"`);
}
