// `LocalRuntime`: a process that runs sessions, with the calls for its users and the parts it is made of.
//
//   runtime-1. `start`, `signal` and `cancel` answer after what they asked for is durable.
//
// `live-sessions.ts` drives the sessions; `due-sessions.ts` runs and releases them by time (due-sessions-3).

import { AsyncLocalStorage } from "node:async_hooks";
import {
  BEHAVIOUR_FLAGS,
  checkBudget,
  encodeJson,
  forkSession,
  HoldfastError,
  isEnded,
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
  type ChangeResult,
  type Clock,
  type CreateSession,
  type Budget,
  type Limits,
  type Random,
  type Schedule,
  type ScheduledAction,
  type SessionStatus,
  type SignalReceipt,
  type TaskExecutor,
} from "@holdfast/core";
import {
  readOrigin,
  refuseIfLarge,
  refuseNewerSession,
  refuseSignalName,
  UNKNOWN_VERSION,
} from "@holdfast/core/internal";
import { checkRuntimeOptions, withCheckedCalls } from "./api/runtime-arguments.ts";
import { checkBounds, deadlineOf } from "./agents/bounds.ts";
import type { Agent } from "./agents/define.ts";
import { installDevelopmentChecks } from "./isolation/development-checks.ts";
import { awaitConversation } from "./tasks/conversation.ts";
import { DueSessions } from "./sessions/due-sessions.ts";
import { GivenClaims } from "./sessions/given-claims.ts";
import { GroupCommitter } from "./loop/group-committer.ts";
import { arrivalsHere } from "./session/inbox.ts";
import { guardedTrace, guardedTraceparent } from "./tracers/guarded-tracer.ts";
import { LeaseKeeper } from "./sessions/lease-keeper.ts";
import { LiveSessions } from "./sessions/live-sessions.ts";
import type { ClaimTerms } from "./sessions/live-sessions-host.ts";
import type { LocalTaskExecutor } from "./tasks/local-task-executor.ts";
import { clockFor, isDevelopment, sha256, silentTracer, systemRandom } from "./node/node-ports.ts";
import { ScheduleKeeper } from "./schedules/schedule-keeper.ts";
import { Schedules } from "./schedules/schedules.ts";
import type {
  AnswerOptions,
  CancelOptions,
  CancelReceipt,
  CloseOptions,
  ForkOptions,
  GivenClaim,
  ImportOptions,
  ResumeOptions,
  Runtime,
  RuntimeOptions,
  ScheduleRequest,
  SessionHandle,
  SignalOptions,
  StartOptions,
} from "./api/runtime-api.ts";
import { tooLarge } from "./session/session-claim.ts";
import { openSource, SessionRequests, unexpected } from "./requests/session-requests.ts";
import type { DriverWorld, RunningCode } from "./session/driver-environment.ts";
import { ProcessHold, sessionHandle } from "./api/session-handle.ts";
import { SliceLoop, type Immediate } from "./loop/slice-loop.ts";
import { watchStrayRejections } from "./isolation/stray-rejections.ts";
import { Timers } from "./loop/timers.ts";
import { executorsOf } from "./task-placement.ts";
import { warmLimits } from "./sessions/warm-sessions.ts";
import type { Watchdog } from "./isolation/watchdog.ts";
import { refuseOtherFork } from "./requests/fork-requests.ts";
import { exportLines, readSessionFile, storeImported } from "./requests/session-file.ts";
export type { Runtime, RuntimeOptions } from "./api/runtime-api.ts";

const WARM_MS = 30_000;

/** Make a runtime over the given storage. Options not given are those of a Node process. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return withCheckedCalls(new LocalRuntime(checkRuntimeOptions(options)));
}

/** @internal End a runtime as the death of its process would. Its storage must be dead already. */
export function vanishRuntime(runtime: Runtime): void {
  if (runtime instanceof LocalRuntime) runtime.vanish();
}

class LocalRuntime implements Runtime {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: Limits;
  readonly #development: boolean;
  readonly #tracer: AgentTracer;
  readonly #executor: TaskExecutor;
  /** The executor with which agents register their tasks, unless the program passes its own. */
  readonly #local: LocalTaskExecutor | undefined;
  readonly #timers: Timers;
  readonly #idleTimers: Timers;
  readonly #committer: GroupCommitter;
  readonly #world: DriverWorld;
  readonly #sessions: LiveSessions;
  readonly #given: GivenClaims;
  readonly #due: DueSessions;
  readonly #schedules: Schedules;
  readonly #requests: SessionRequests;
  readonly #keeper: ScheduleKeeper | undefined;
  readonly #context = new AsyncLocalStorage<RunningCode>();
  /** The line at which each session's agent last made a non-deterministic call. */
  readonly #outsideCalls = new Map<string, string>();
  readonly #watchdog: Watchdog | undefined;
  readonly #owner: string;
  readonly #dispatched: RuntimeOptions["dispatched"];
  readonly #leases: LeaseKeeper;
  readonly #aliveness = new ProcessHold();
  #closing: Promise<void> | undefined;
  readonly #closers: (() => void | Promise<void>)[] = [];
  readonly #strictBounds: boolean;
  readonly #warn = (sessionId: string, message: string): void =>
    this.#world.trace?.({ type: "warned", sessionId, at: this.#clock.now(), message });

  constructor(options: RuntimeOptions) {
    this.#strictBounds = options.strictBounds ?? false;
    this.#storage = options.storage;
    this.#clock = options.clock ?? clockFor(options.storage);
    const random = options.random ?? systemRandom();
    this.#random = random;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#development = options.development ?? isDevelopment();
    this.#tracer = options.tracer ?? silentTracer;
    this.#owner = options.owner ?? `process ${process.pid} (${this.#random.u32().toString(36)})`;
    const { leaseMs = Infinity, renewMs } = options;
    this.#leases = new LeaseKeeper({
      clock: this.#clock,
      leaseMs,
      renewMs,
      renew: () =>
        this.#storage.renew({
          owner: this.#owner,
          sessionIds: this.#sessions.held,
          now: this.#clock.now(),
          leaseMs,
        }),
      isHolding: () => this.#sessions.isHolding,
      letGo: () => this.#sessions.letGoOfAll(),
      watch: (letGoInMs) => options.watchdog?.expectLetGo(letGoInMs),
    });
    this.#dispatched = options.dispatched;
    this.#timers = new Timers(this.#clock);
    this.#idleTimers = new Timers(this.#clock, true);
    const executors = executorsOf(options, this.#clock, this.#limits.payloadChars, {
      checkLease: () => this.#leases.check(),
      signal: (...asked) => this.signal(...asked),
    });
    ({ executor: this.#executor, local: this.#local } = executors);
    const immediate = options.immediate ?? setImmediate;
    this.#committer = new GroupCommitter(this.#storage, this.#clock, immediate);
    this.#watchdog = options.watchdog;
    this.#world = this.#makeWorld(options, immediate);
    const adopt = options.adopt ?? true;
    const warn = this.#warn;
    this.#sessions = new LiveSessions({
      storage: this.#storage,
      committer: this.#committer,
      world: this.#world,
      claimTerms: () => this.#claimTerms(),
      adopt,
      dispatched: this.#dispatched !== undefined,
      watchdog: this.#watchdog,
      lookAt: (at) => this.#due.lookAt(at),
      left: (sessionId) => this.#due.forget(sessionId),
      warn,
    });
    this.#given = new GivenClaims({
      clock: this.#clock,
      timers: this.#timers,
      sessions: this.#sessions,
      claimAgeMs: this.#dispatched?.claimAgeMs ?? Infinity,
    });
    this.#requests = new SessionRequests({
      clock: this.#clock,
      random: this.#random,
      limits: this.#limits,
      commit: (change) => this.#committer.commit(change),
      find: (sessionId) => this.#sessions.find(sessionId),
      pendingSignals: (sessionId) => this.#storage.reader.pendingSignals(sessionId),
      lookAt: (at) => this.#due.lookAt(at),
    });
    this.#due = new DueSessions({
      storage: this.#storage,
      clock: this.#clock,
      timers: this.#timers,
      idleTimers: this.#idleTimers,
      sessions: this.#sessions,
      warmMs: options.warmMs ?? WARM_MS,
      warm: warmLimits(options),
      adopt,
      lookEveryMs: this.#leases.renewMs,
      warn,
    });
    for (const agent of options.agents ?? []) this.#know(agent);
    void this.#storage.lost?.then((error) => this.#sessions.storageLost(error));
    this.#closers.push(
      this.#storage.subscribe(({ sessionId, awaited }) => this.#sessions.arrived(sessionId, awaited)),
      watchStrayRejections(this.#context, (sessionId, reason) => {
        const { message } = toHoldfastError(reason);
        warn(sessionId, `a promise of the agent was rejected and nobody handled it: ${message}`);
      }),
    );
    if (this.#development) {
      this.#closers.push(
        installDevelopmentChecks({
          currentSession: () => (this.#world.loop.inSlice ? this.#context.getStore()?.sessionId : undefined),
          warn,
          onOutsideCall: (sessionId, line) => void this.#outsideCalls.set(sessionId, line),
        }),
      );
    }
    for (const source of options.signals ?? [])
      this.#closers.push(openSource(source, (...asked) => this.signal(...asked)));
    const scheduling = { storage: this.#storage, committer: this.#committer, clock: this.#clock, random };
    this.#schedules = new Schedules(scheduling);
    if (options.schedules === undefined || options.schedules === false) return;
    this.#keeper = new ScheduleKeeper({
      ...scheduling,
      options: options.schedules === true ? {} : options.schedules,
      agents: this.#sessions.agents,
      know: (agent) => this.#know(agent),
      goOn: (sessionId) => this.#goOn(sessionId),
      failedToRun: (sessionId, error) => this.#sessions.failedToRun(sessionId, error),
      warn,
    });
  }

  drive(claim: GivenClaim): void {
    this.#claimTerms();
    this.#given.drive(claim);
  }

  abandon(sessionId: string): void {
    this.#sessions.abandon(sessionId);
  }

  letGo(): void {
    this.#due.letGo();
  }

  get live(): number {
    return this.#sessions.size;
  }

  async start<Input, Output>(
    agent: Agent<Input, Output>,
    input?: Input,
    { sessionId, file, budget, persistence = "full", timeoutMs, traceparent }: StartOptions = {},
  ): Promise<SessionHandle<Output>> {
    const id = this.#idOf(sessionId);
    const unbounded = checkBounds(agent, { budget, timeoutMs }, this.#strictBounds);
    this.#know(agent as unknown as Agent);
    const text = await this.#inputText(agent.name, agent.input, input);
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
      ...deadlineOf(this.#clock.now(), Math.min(timeoutMs ?? Infinity, budget?.ttlMs ?? Infinity)),
      claimFor: this.#claimTerms(),
    };
    const made = await this.#create(agent as unknown as Agent, creation);
    const { status } = made;
    if (status === "invalid" && made.isTooLarge === true) throw tooLarge(id, made.reason, "start it again");
    if (status !== "created" && status !== "exists") throw unexpected("creating a session", status);
    if (status === "exists") await this.#goOn(id);
    else if (unbounded !== undefined) this.#warn(id, unbounded);
    return this.#handle<Output>(id, status === "created");
  }

  /**
   * K4a: with a watchdog, which may end the process in the first slice, the session is stored before its agent
   * runs. An ephemeral session is stored first too, as it cannot restart (K11).
   */
  async #create(agent: Agent, creation: CreateSession): Promise<ChangeResult> {
    const isStoredFirst = this.#watchdog !== undefined || creation.persistence === "ephemeral";
    if (!isStoredFirst) return this.#sessions.create(agent, creation);
    const { claimFor: _, ...unclaimed } = creation;
    const result = await this.#committer.commit(unclaimed);
    if (result.status === "created") await this.#sessions.activate(creation.sessionId);
    return result;
  }

  /** Run a session that exists already, unless another process runs it. */
  async #goOn(sessionId: string): Promise<void> {
    try {
      const session = await this.#sessions.find(sessionId);
      if (isEnded(session.status) || session.status === "paused") return;
      await this.#sessions.activate(sessionId, session);
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      if (error.code === "session_claimed") return;
      this.#sessions.failedToRun(sessionId, error); // We may hold its claim, and then no other process would run it.
      throw error;
    }
  }

  async fork(
    sessionId: string,
    { at, tasks = "rerun", sessionId: wanted, run = true, ...options }: ForkOptions = {},
  ): Promise<SessionHandle> {
    this.#refuseIfClosed();
    const id = this.#idOf(wanted);
    const origin = await this.#sessions.find(sessionId);
    const agent = this.#sessions.agents.latest(origin.agent.name);
    const input =
      options.input === undefined
        ? {}
        : { input: { text: await this.#inputText(origin.agent.name, agent?.input, options.input) } };
    const change = forkSession(await readOrigin(this.#storage.reader, origin), {
      sessionId: id,
      ...(at === undefined ? {} : { at }),
      ...input,
      tasks,
      seed: this.#random.u32(),
      now: this.#clock.now(),
    });
    try {
      const result = await this.#committer.commit(change);
      if (result.status === "invalid") throw new HoldfastError("internal", result.reason);
      if (result.status === "exists") refuseOtherFork(await this.#sessions.find(id), change);
      if (run && agent !== undefined) await this.#goOn(id);
      return this.#handle(id, result.status === "created");
    } catch (error) {
      // The fork may be stored although its answer was lost, and no arrival announces it.
      this.#due.lookAt(this.#clock.now());
      throw error;
    }
  }

  export(sessionId: string): AsyncIterable<string> {
    return exportLines(this.#storage.reader, sessionId);
  }

  async import(
    file: AsyncIterable<Uint8Array>,
    { name = "the file", sessionId: wanted }: ImportOptions = {},
  ): Promise<SessionHandle> {
    this.#refuseIfClosed();
    const change = await readSessionFile(file, name, wanted);
    await storeImported(this.#storage.reader, (storing) => this.#committer.commit(storing), change, name);
    return this.#handle(change.sessionId, true);
  }

  async resume(sessionId: string, { acceptDrift = false }: ResumeOptions = {}): Promise<SessionHandle> {
    this.#refuseIfClosed();
    const session = await this.#sessions.find(sessionId);
    refuseNewerSession(session);
    if (acceptDrift || session.status === "paused") this.#sessions.acceptDrift(sessionId, acceptDrift);
    if (session.status === "paused") {
      this.#watchdog?.clear(sessionId); // A person has read the reason, and wants to try again.
      await this.#committer.commit({ type: "resume_session", sessionId });
    }
    if (!isEnded(session.status)) await this.#sessions.activate(sessionId);
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
    refuseSignalName(name);
    return this.#requests.send(sessionId, name, payload, options);
  }

  answer(sessionId: string, answer: unknown, options: AnswerOptions = {}): Promise<SignalReceipt> {
    return this.#requests.answer(sessionId, answer, options);
  }

  cancel(sessionId: string, options: CancelOptions = {}): Promise<CancelReceipt> {
    return this.#requests.cancel(sessionId, options);
  }

  pause(sessionId: string): Promise<SessionStatus> {
    return this.#requests.ask({ type: "pause_session", sessionId }, "pausing");
  }

  async unpause(sessionId: string): Promise<SessionStatus> {
    const status = await this.#requests.ask({ type: "resume_session", sessionId }, "resuming");
    const { agent } = await this.#sessions.find(sessionId);
    if (this.#sessions.agents.latest(agent.name) !== undefined) await this.#goOn(sessionId);
    return status;
  }

  setBudget(sessionId: string, limits: Budget): Promise<SessionStatus> {
    return this.#requests.setBudget(sessionId, limits);
  }

  releaseLost(sessionId: string): Promise<SessionStatus> {
    return this.#requests.releaseLost(sessionId);
  }

  async schedule<Input, Output>(request: ScheduleRequest<Input, Output>): Promise<Schedule> {
    this.#refuseIfClosed();
    const { id, cron, timeZone } = request;
    return this.#schedules.put({ id, cron, timeZone, action: await this.#actionOf(request) });
  }

  schedules(): Promise<readonly Schedule[]> {
    return this.#schedules.list();
  }

  unschedule(scheduleId: string): Promise<boolean> {
    return this.#schedules.remove(scheduleId);
  }

  close({ graceMs }: CloseOptions = {}): Promise<void> {
    return (this.#closing ??= this.#sessions.closed ? Promise.resolve() : this.#close(graceMs));
  }

  async #close(graceMs: number | undefined): Promise<void> {
    this.#keeper?.close();
    this.#committer.hurry();
    await this.#sessions.close(() => this.#executor.close(graceMs));
    await this.#committer.idle();
    this.#leases.close();
    for (const close of this.#closers.splice(0)) await close();
    this.#timers.close();
    this.#idleTimers.close();
    this.#aliveness.close();
    await this.#tracer.flush?.().catch(() => {});
  }

  /** @internal Vanish as a killed process would: nothing is released, committed or awaited. For crash tests. */
  vanish(): void {
    this.#keeper?.close();
    this.#sessions.vanish();
    this.#leases.close();
    void this.#executor.close();
    for (const close of this.#closers.splice(0)) void close();
    this.#timers.close();
    this.#idleTimers.close();
    this.#aliveness.close();
  }

  // ---- inside ------------------------------------------------------------------------------------------------------

  #claimTerms(): ClaimTerms {
    this.#leases.claiming(this.#dispatched?.claimAgeMs);
    return { owner: this.#owner, leaseMs: this.#leases.leaseMs };
  }

  /** A reference to an agent that only other processes may know, in the version that they have. */
  #elsewhere(name: string): AgentRef | undefined {
    return this.#dispatched === undefined ? undefined : { name, version: UNKNOWN_VERSION };
  }

  #know(agent: Agent): void {
    if (!this.#sessions.know(agent)) return;
    this.#local?.registerAgent(agent);
    for (const child of agent.agents) this.#know(child);
  }

  #idOf(wanted = mintId("ses", this.#clock.now(), () => this.#random.u32())): string {
    if (isSessionId(wanted)) return wanted;
    throw new UsageError(`"${wanted}" cannot be a session id`, {
      expected: "1 to 100 letters, digits, dots, dashes and underscores, starting with a letter or digit",
    });
  }

  /** The input after its schema (defaults, conversions), as it is recorded and as the agent sees it. */
  async #inputText(
    name: string,
    schema: Agent["input"],
    input: unknown,
  ): Promise<ReturnType<typeof encodeJson>> {
    const what = `input of agent "${name}"`;
    const text = encodeJson(await validate(schema, input, what, "invalid_input"), what);
    refuseIfLarge(text, what, this.#limits.payloadChars);
    this.#refuseIfClosed(); // A schema may have taken its time.
    return text;
  }

  async #actionOf<Input, Output>({
    start,
    signal,
  }: ScheduleRequest<Input, Output>): Promise<ScheduledAction> {
    if (start !== undefined) {
      const { agent, input, file, budget } = start;
      checkBounds(agent, { budget }, this.#strictBounds);
      this.#know(agent as unknown as Agent);
      const text = await this.#inputText(agent.name, agent.input, input);
      const { name, version } = agent;
      return {
        type: "start",
        agent: { name, version, ...(file === undefined ? {} : { file }) },
        input: text,
        ...(budget === undefined ? {} : { budget: checkBudget(budget) }),
      };
    }
    const { sessionId, name, payload } = signal;
    refuseSignalName(name);
    return { type: "signal", sessionId, name, payload: this.#requests.payloadText(name, payload) };
  }

  #makeWorld({ prices, machine }: RuntimeOptions, immediate: Immediate): DriverWorld {
    const storage = this.#storage;
    return {
      loop: new SliceLoop(this.#committer.flush, this.#watchdog, immediate),
      immediate,
      timers: this.#timers,
      clock: this.#clock,
      hash: sha256,
      limits: this.#limits,
      development: this.#development,
      executor: this.#executor,
      random: () => this.#random.u32(),
      checkLease: () => this.#leases.check(),
      submit: (change, onResult, onError) => this.#committer.submit({ change, onResult, onError }),
      arrivals: (sessionId, after) => arrivalsHere(storage, sessionId, after),
      find: (sessionId) => storage.reader.session(sessionId),
      conversation: (session, leaf, isOver) =>
        awaitConversation(
          { storage, clock: this.#clock, unstored: (...of) => this.#sessions.unstored(...of) },
          session,
          leaf,
          isOver,
        ),
      prices,
      describeAgent: (name) => this.#sessions.agents.describe(name) ?? this.#elsewhere(name),
      machine,
      agentNames: () => this.#sessions.agents.names,
      spawned: (sessionIds) => this.#sessions.children.spawned(sessionIds),
      settled: (payers) => this.#sessions.settlements.settled(payers),
      asked: (...asked) => this.#sessions.settlements.asked(...asked),
      trace: guardedTrace(this.#tracer),
      traceparent: guardedTraceparent(this.#tracer),
      noteWaiting: (sessionId, bytes) => this.#due.noteWaiting(sessionId, bytes),
      enter: (whose, fn) => this.#context.run(whose, fn),
      whereabouts: (sessionId) => ({
        task: this.#context.getStore()?.task,
        outsideCall: this.#outsideCalls.get(sessionId),
      }),
      departed: (driver, departure) => {
        this.#outsideCalls.delete(driver.sessionId);
        this.#sessions.departed(driver, departure);
      },
    };
  }

  #refuseIfClosed(): void {
    if (!this.#sessions.closed) return;
    throw new UsageError("the runtime is closed", { fix: "make another with createRuntime()" });
  }

  #handle<Output>(sessionId: string, created: boolean): SessionHandle<Output> {
    const host = {
      runtime: this,
      find: (id: string) => this.#sessions.find(id),
      settledOf: (id: string) => this.#sessions.settledOf(id),
      aliveness: this.#aliveness,
    };
    return sessionHandle(host, sessionId, created);
  }
}
