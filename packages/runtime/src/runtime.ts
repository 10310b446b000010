// A process that runs sessions: it claims them, drives them, and lets go of what only waits.
//
//   T1. `start`, `signal` and `cancel` answer after what they asked for is durable.
//   T2. A session is driven by at most one driver of this process, under one claim.
//   T3. What only waits is kept warm for `warmMs`, then released; an arrival or its time brings it back (K10a).
//   T4. One session's end, fault or abandonment touches no other.

import { AsyncLocalStorage } from "node:async_hooks";
import {
  ANSWER_PREFIX,
  ConflictError,
  decodeJson,
  encodeJson,
  HoldfastError,
  isEnded,
  isName,
  isSessionId,
  JOURNAL_FORMAT,
  LIMITS,
  mintId,
  NotFoundError,
  positionId,
  toHoldfastError,
  UsageError,
  validate,
  type AgentRef,
  type AgentStorage,
  type AgentTracer,
  type ChangeResult,
  type Clock,
  type CreateSession,
  type ConversationEntry,
  type Entry,
  type Limits,
  type Random,
  type Session,
  type SignalReceipt,
  type SignalSource,
  type TaskExecutor,
} from "@holdfast/core";
import { createSession } from "@holdfast/core/internal";
import type { Agent, TaskDefinition } from "./define.ts";
import { installDevelopmentChecks } from "./development-checks.ts";
import { GroupCommitter } from "./group-committer.ts";
import { LocalTaskExecutor } from "./local-task-executor.ts";
import { isDevelopment, sha256, silentTracer, systemClock, systemRandom } from "./node-ports.ts";
import {
  SessionDriver,
  type Creator,
  type Departure,
  type DriverOptions,
  type DriverWorld,
} from "./session-driver.ts";
import { outputOf, settledAs, settledBy, type Settled } from "./settled.ts";
import { SliceLoop } from "./slice-loop.ts";
import { watchStrayRejections } from "./stray-rejections.ts";
import { alarm, Timers } from "./timers.ts";
import type { Watchdog } from "./watchdog.ts";

export interface RuntimeOptions {
  readonly storage: AgentStorage;
  /** Agents whose sessions this process may run, besides those given to `start`. */
  readonly agents?: readonly Agent[];
  /** Tasks for all agents, or an executor of your own. Agents bring their own tasks along. */
  readonly tasks?: readonly TaskDefinition[] | TaskExecutor;
  readonly signals?: readonly SignalSource[];
  readonly tracer?: AgentTracer;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly limits?: Partial<Limits>;
  /** Attempts of tasks running at once. */
  readonly concurrency?: number;
  /** How long a session that only waits is kept in memory. */
  readonly warmMs?: number;
  /** Run sessions of known agents whenever something they wait for arrives or is due, not only those started here. */
  readonly adopt?: boolean;
  /** Names this process in claims. */
  readonly owner?: string;
  /** Ends the process when an agent keeps it busy; made by whoever owns the process. */
  readonly watchdog?: Watchdog;
  /** Report what an agent must not do between two deliveries. On unless NODE_ENV is `production`. */
  readonly development?: boolean;
}

export interface StartOptions {
  /** Your own id: starting the same id again finds the session instead of making another. */
  readonly sessionId?: string;
  /** Where the agent's code came from, to be found again. */
  readonly file?: string;
}

export interface ResumeOptions {
  /** Recorded results stand although the code asks with other inputs (K5). */
  readonly acceptDrift?: boolean;
}

export interface SignalOptions {
  /** A second signal with the same key is not stored. */
  readonly dedupKey?: string;
}

export interface AnswerOptions {
  /** The question's position; the oldest open one by default. */
  readonly question?: number;
}

export interface CancelOptions {
  /** `hard` ends it at once; otherwise it may clean up for `graceMs`. */
  readonly hard?: boolean;
  readonly graceMs?: number;
  readonly reason?: string;
}

/** A session, from any process: everything it says is asked of storage. */
export interface SessionHandle<Output = unknown> {
  readonly sessionId: string;
  /** False when `start` found a session of this id. */
  readonly created: boolean;
  /** The output. @throws HoldfastError when it failed, was cancelled, or is paused. */
  result(): Promise<Output>;
  /** How it ends in this process; never throws. */
  settled(): Promise<Settled<Output>>;
  session(): Promise<Session>;
  signal(name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  answer(answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  cancel(options?: CancelOptions): Promise<CancelReceipt>;
}

export type CancelReceipt = {
  readonly status: "requested" | "already_ended";
  readonly sessionStatus: string;
};

export interface Runtime {
  /**
   * Start a session; answers when it is stored. One of this id that exists already is found, and gone on with unless it
   * has ended, is paused, or runs elsewhere.
   */
  start<Input, Output>(
    agent: Agent<Input, Output>,
    input?: Input,
    options?: StartOptions,
  ): Promise<SessionHandle<Output>>;
  /** Go on with a session of a known agent that no process is running. */
  resume(sessionId: string, options?: ResumeOptions): Promise<SessionHandle>;
  /** Go on with every session of known agents that has something to do. Answers their ids. */
  recover(): Promise<readonly string[]>;
  handle(sessionId: string): SessionHandle;
  signal(sessionId: string, name: string, payload?: unknown, options?: SignalOptions): Promise<SignalReceipt>;
  /** Answer a question of `ctx.requestInput`. The first answer counts; later ones are duplicates. */
  answer(sessionId: string, answer: unknown, options?: AnswerOptions): Promise<SignalReceipt>;
  cancel(sessionId: string, options?: CancelOptions): Promise<CancelReceipt>;
  /** Sessions driven now. */
  readonly live: number;
  /** Stop: running tasks are aborted, sessions stay as their last commit left them. Does not close the storage. */
  close(): Promise<void>;
}

const WARM_MS = 30_000;
const DUE_BATCH = 1_000;
const DUE_RETRY_MS = 1_000;

/** Make a runtime over the given storage. Options not given are those of a Node process. */
export function createRuntime(options: RuntimeOptions): Runtime {
  return new LocalRuntime(options);
}

/** @internal End a runtime as the death of its process would. Its storage must be dead already. */
export function vanishRuntime(runtime: Runtime): void {
  if (runtime instanceof LocalRuntime) runtime.vanish();
}

interface Live {
  readonly driver: SessionDriver;
  /** Tells who waits for a session to be created that it will not be. */
  readonly onFailedCreation: ((error: HoldfastError) => void) | undefined;
  readonly agent: Agent;
  reloads: number;
}

class LocalRuntime implements Runtime {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: Limits;
  readonly #tracer: AgentTracer;
  readonly #executor: TaskExecutor;
  readonly #timers: Timers;
  readonly #committer: GroupCommitter;
  readonly #world: DriverWorld;
  readonly #agents = new Map<string, Agent>();
  readonly #live = new Map<string, Live>();
  readonly #activating = new Map<string, Promise<void>>();
  /** Sessions being loaded, and whether something arrived for them meanwhile. */
  readonly #loading = new Map<string, boolean>();
  readonly #waiters = new Map<string, PromiseWithResolvers<Settled>>();
  /** Why sessions that were abandoned here were; forgotten when they are driven again. */
  readonly #abandoned = new Map<string, HoldfastError>();
  readonly #warm = new Map<string, number>();
  readonly #dueAlarm = alarm(() => this.#lookForDue());
  readonly #coolAlarm = alarm(() => this.#cool());
  readonly #context = new AsyncLocalStorage<string>();
  readonly #watchdog: Watchdog | undefined;
  readonly #owner: string;
  readonly #warmMs: number;
  readonly #adopt: boolean;
  readonly #closers: (() => void | Promise<void>)[] = [];
  #closed = false;

  constructor(options: RuntimeOptions) {
    this.#storage = options.storage;
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom();
    this.#limits = { ...LIMITS, ...options.limits };
    this.#tracer = options.tracer ?? silentTracer;
    this.#warmMs = options.warmMs ?? WARM_MS;
    this.#adopt = options.adopt ?? true;
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
    this.#committer = new GroupCommitter(this.#storage, this.#clock);
    this.#watchdog = options.watchdog;
    this.#world = this.#makeWorld();
    for (const agent of options.agents ?? []) this.#know(agent);
    this.#closers.push(
      this.#storage.subscribe(({ sessionId, awaited }) => this.#arrived(sessionId, awaited)),
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
    return this.#live.size;
  }

  async start<Input, Output>(
    agent: Agent<Input, Output>,
    input?: Input,
    { sessionId, file }: StartOptions = {},
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
    };
    const creation: CreateSession = {
      type: "create_session",
      sessionId: id,
      agent: ref,
      input: text,
      seed: this.#random.u32(),
      flags: 0,
      format: JOURNAL_FORMAT,
      claimFor: { owner: this.#owner, leaseMs: Infinity },
    };
    const status = await this.#create(agent as unknown as Agent, creation);
    if (status === "created") return this.#handle<Output>(id, true);
    if (status !== "exists") throw unexpected("creating a session", status);
    // Ours, when the first answer was lost; another's, when it is being run elsewhere: then there is nothing to do here.
    const session = await this.#session(id);
    if (!isEnded(session.status) && session.status !== "paused") {
      await this.#activate(id, false).catch((error: unknown) => {
        if (!HoldfastError.is(error) || error.code !== "session_claimed") throw error;
      });
    }
    return this.#handle<Output>(id, false);
  }

  async resume(sessionId: string, { acceptDrift = false }: ResumeOptions = {}): Promise<SessionHandle> {
    this.#refuseIfClosed();
    const session = await this.#session(sessionId);
    this.#watchdog?.clear(sessionId); // A person wants it tried again.
    if (!isEnded(session.status)) await this.#activate(sessionId, acceptDrift);
    return this.#handle(sessionId, false);
  }

  async recover(): Promise<readonly string[]> {
    this.#refuseIfClosed();
    return this.#runDue();
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
    if (!isName(name) || name.startsWith(ANSWER_PREFIX)) {
      throw new UsageError(`"${name}" cannot be the name of a signal`, {
        expected: `1 to 200 letters, digits, spaces and . _ : / @ + -, not starting with "${ANSWER_PREFIX}"`,
      });
    }
    return this.#send(sessionId, name, payload, options);
  }

  async answer(sessionId: string, answer: unknown, { question }: AnswerOptions = {}): Promise<SignalReceipt> {
    const session = await this.#session(sessionId);
    const open = session.waits.filter((wait) => wait.type === "input");
    const wait = question === undefined ? open[0] : open.find(({ seq }) => seq === question);
    if (wait === undefined) {
      const reason =
        open.length === 0
          ? `session ${sessionId} asks nothing (it is ${session.status})`
          : `session ${sessionId} has no open question ${question}; open: ${open.map(({ seq }) => seq).join(", ")}`;
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
        if (!hard) this.#lookAt(this.#clock.now() + (graceMs ?? this.#limits.cancelGraceMs));
        return { status: "requested", sessionStatus: result.sessionStatus };
      case "ended":
        return { status: "already_ended", sessionStatus: result.sessionStatus };
      case "not_found":
        throw sessionNotFound(sessionId);
      default:
        throw unexpected("cancelling", result.status);
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.allSettled(this.#activating.values());
    for (const { driver } of this.#live.values()) driver.abandon();
    await this.#executor.close();
    await this.#committer.idle();
    for (const close of this.#closers) await close();
    this.#timers.close();
  }

  /** @internal Vanish as a killed process would: nothing is released, committed or awaited. For crash tests. */
  vanish(): void {
    this.#closed = true;
    for (const { driver } of this.#live.values()) driver.abandon();
    this.#live.clear();
    void this.#executor.close();
    for (const close of this.#closers) void close();
    this.#timers.close();
  }

  // ---- running sessions --------------------------------------------------------------------------------------------

  #know(agent: Agent): void {
    const known = this.#agents.get(agent.name);
    if (known === agent) return;
    if (known !== undefined) {
      throw new ConflictError("usage", `two different agents are named "${agent.name}"`, {
        expected:
          "one agent for each name in a runtime: a session that comes back is given to the agent of its name",
        fix: "rename one of them",
      });
    }
    this.#agents.set(agent.name, agent);
    if (this.#executor instanceof LocalTaskExecutor)
      for (const task of agent.tasks) this.#executor.register(task);
  }

  /** Claim and drive it, unless it is driven already. */
  #activate(sessionId: string, acceptDrift: boolean): Promise<void> {
    return this.#activateBy(sessionId, () => this.#claimAndDrive(sessionId, acceptDrift));
  }

  /** T2: once at a time. */
  #activateBy(sessionId: string, begin: () => Promise<void>): Promise<void> {
    if (this.#live.has(sessionId)) return Promise.resolve();
    const known = this.#activating.get(sessionId);
    if (known !== undefined) return known;
    const activating = begin().finally(() => this.#activating.delete(sessionId));
    this.#activating.set(sessionId, activating);
    return activating;
  }

  async #claimAndDrive(sessionId: string, acceptDrift: boolean): Promise<void> {
    const session = await this.#session(sessionId);
    const agent = this.#agentOf(session);
    const now = this.#clock.now();
    const claim = await this.#storage.claim({ sessionId, owner: this.#owner, now, leaseMs: Infinity });
    switch (claim.status) {
      case "claimed":
        if (this.#watchdog?.isCharged(sessionId) === true) return this.#parkPoison(session, claim.token);
        return this.#drive(sessionId, agent, claim.token, acceptDrift);
      case "busy":
        throw new ConflictError("session_claimed", `session ${sessionId} is being run by ${claim.owner}`, {
          fix: "wait for it, or signal or cancel it from here",
        });
      case "ended":
        return;
      case "not_found":
        throw sessionNotFound(sessionId);
    }
  }

  /** K4a: it kept a process busy until the watchdog ended it, alone and so for certain. */
  async #parkPoison({ sessionId, nextSeq }: Session, token: number): Promise<void> {
    const message =
      "its agent kept the process busy without awaiting, twice; `holdfast resume` tries it again";
    await this.#committer.commit({
      type: "commit_batch",
      sessionId,
      token,
      firstSeq: nextSeq,
      records: [],
      entries: [],
      consumed: [],
      session: {
        status: "paused",
        pauseReason: "poison",
        waits: [],
        error: { name: "PoisonError", message },
      },
    });
    this.#release(sessionId, token);
    this.#settle(sessionId, {
      status: "paused",
      fault: new HoldfastError("session_paused", `session ${sessionId}: ${message}`),
    });
  }

  async #drive(
    sessionId: string,
    agent: Agent,
    token: number,
    acceptDrift: boolean,
    reloads = 0,
  ): Promise<void> {
    this.#loading.set(sessionId, false);
    const snapshot = await this.#storage.load(sessionId);
    const arrived = this.#loading.get(sessionId) === true;
    this.#loading.delete(sessionId);
    if (snapshot === undefined) throw sessionNotFound(sessionId);
    if (this.#closed) return this.#release(sessionId, token);
    const driver = this.#launch({ agent, snapshot, claim: token, acceptDrift }, reloads);
    if (arrived) driver.poke();
  }

  /** Run the agent to its first standstill and store the session with what it asked for, in one transaction. */
  #create(agent: Agent, creation: CreateSession): Promise<ChangeResult["status"]> {
    const { sessionId } = creation;
    const known = this.#activating.get(sessionId);
    if (known !== undefined) return known.then(() => "exists" as const);
    if (this.#live.has(sessionId)) return Promise.resolve("exists");
    const snapshot = { session: createSession(creation, this.#clock.now()), records: [], signals: [] };
    const creating = new Promise<ChangeResult["status"]>((resolve, reject) => {
      const claim: Creator = (first, onCreated, onError) =>
        this.#committer.submit({
          change: { ...creation, first },
          onResult: (result) => {
            if (result.status === "created" && result.token !== undefined) onCreated(result.token);
            else this.#live.delete(sessionId); // What it did was only thought: another of this id is stored.
            if (result.status !== "created") driver.abandon();
            resolve(result.status);
          },
          onError: (error) => {
            onError(error);
            reject(error);
          },
        });
      const driver = this.#launch({ agent, snapshot, claim, acceptDrift: false }, 0, reject);
    });
    const activating = creating.then(() => {}).finally(() => this.#activating.delete(sessionId));
    activating.catch(() => {}); // Whoever asked for it hears of it from `creating`.
    this.#activating.set(sessionId, activating);
    return creating;
  }

  #launch(
    options: DriverOptions,
    reloads: number,
    onFailedCreation?: (error: HoldfastError) => void,
  ): SessionDriver {
    const driver = new SessionDriver(this.#world, options);
    this.#abandoned.delete(driver.sessionId);
    this.#live.set(driver.sessionId, { driver, agent: options.agent, reloads, onFailedCreation });
    driver.start();
    return driver;
  }

  #departed(driver: SessionDriver, departure: Departure): void {
    const { sessionId } = driver;
    const live = this.#live.get(sessionId);
    if (live?.driver !== driver) return;
    this.#live.delete(sessionId);
    this.#warm.delete(sessionId);
    if (departure.type !== "abandoned") this.#watchdog?.clear(sessionId);
    // A commit was refused because somebody cancelled it in the meantime: what is stored now says how to go on.
    if (
      departure.type === "abandoned" &&
      departure.error?.code === "session_ended" &&
      live.reloads < 3 &&
      !this.#closed
    ) {
      void this.#reload(live, departure.error);
      return;
    }
    const { token } = driver;
    if (token === undefined) {
      const { error } = departure as { error?: HoldfastError };
      live.onFailedCreation?.(
        error ??
          new HoldfastError("session_paused", `session ${sessionId} was not stored: the runtime closed`),
      );
    } else if (departure.type !== "ended") {
      this.#release(sessionId, token);
    }
    if (departure.type === "abandoned" && departure.error !== undefined)
      this.#abandoned.set(sessionId, departure.error);
    this.#settle(sessionId, settledBy(departure));
  }

  async #reload({ agent, driver, reloads }: Live, error: HoldfastError): Promise<void> {
    const { sessionId, token } = driver;
    try {
      const session = await this.#session(sessionId);
      if (isEnded(session.status)) this.#settle(sessionId, settledAs(session));
      else if (token !== undefined) await this.#drive(sessionId, agent, token, false, reloads + 1);
    } catch (thrown) {
      this.#settle(sessionId, {
        status: "released",
        error: thrown === undefined ? error : toHoldfastError(thrown),
      });
    }
  }

  #release(sessionId: string, token: number): void {
    this.#committer.submit({
      change: { type: "release_claim", sessionId, token },
      onResult: () => {},
      onError: () => {},
    });
  }

  #settle(sessionId: string, settled: Settled): void {
    const waiter = this.#waiters.get(sessionId);
    this.#waiters.delete(sessionId);
    waiter?.resolve(settled);
  }

  // ---- arrivals, time, cooling -------------------------------------------------------------------------------------

  #arrived(sessionId: string, awaited: boolean): void {
    const live = this.#live.get(sessionId);
    if (live !== undefined) live.driver.poke();
    else if (this.#loading.has(sessionId)) this.#loading.set(sessionId, true);
    else if (awaited && (this.#adopt || this.#waiters.has(sessionId)))
      queueMicrotask(() => void this.#wakeUp(sessionId));
  }

  async #wakeUp(sessionId: string): Promise<void> {
    if (this.#closed) return;
    try {
      const session = await this.#storage.reader.session(sessionId);
      if (session === undefined) return;
      if (isEnded(session.status)) this.#settle(sessionId, settledAs(session));
      else if (this.#agents.has(session.agent.name)) await this.#activate(sessionId, false);
      else if (session.cancel !== undefined) this.#lookAt(session.cancel.deadlineAt);
    } catch (error) {
      this.#trace(sessionId, toHoldfastError(error).message);
    }
  }

  /** Run what is due, off everybody's path; when storage cannot say what is, ask again. */
  #lookForDue(): void {
    if (this.#closed) return;
    this.#runDue().catch(() => this.#lookAt(this.#clock.now() + DUE_RETRY_MS));
  }

  /** Look for what is due at this time, too. */
  #lookAt(at: number): void {
    if (this.#adopt && !this.#closed && at < this.#dueAlarm.queuedFor) this.#timers.set(this.#dueAlarm, at);
  }

  /** Run what is due, and look again when the next is. */
  async #runDue(): Promise<readonly string[]> {
    const started: string[] = [];
    const { sessionIds, nextAt } = await this.#storage.due({ now: this.#clock.now(), limit: DUE_BATCH });
    for (const sessionId of sessionIds) {
      if (this.#closed || this.#live.has(sessionId)) continue;
      const session = await this.#storage.reader.session(sessionId);
      if (session === undefined || !this.#agents.has(session.agent.name)) continue;
      try {
        await this.#activate(sessionId, false);
        started.push(sessionId);
      } catch (error) {
        this.#trace(sessionId, toHoldfastError(error).message);
      }
    }
    if (!this.#closed && this.#adopt) {
      if (nextAt !== undefined) this.#timers.set(this.#dueAlarm, nextAt);
      if (sessionIds.length === DUE_BATCH && started.length > 0) started.push(...(await this.#runDue()));
    }
    return started;
  }

  /** T3. A session waits: note since when, and look at the oldest when its time is up. */
  #noteWaiting(sessionId: string): void {
    if (!this.#adopt) return;
    this.#warm.delete(sessionId);
    this.#warm.set(sessionId, this.#clock.now() + this.#warmMs);
    if (this.#coolAlarm.queuedFor === Infinity)
      this.#timers.set(this.#coolAlarm, this.#clock.now() + this.#warmMs);
  }

  #cool(): void {
    const now = this.#clock.now();
    for (const [sessionId, until] of this.#warm) {
      if (until > now) {
        this.#timers.set(this.#coolAlarm, until);
        return;
      }
      this.#warm.delete(sessionId);
      const live = this.#live.get(sessionId);
      if (live?.driver.parked === true) this.#letGo(sessionId, live);
      else if (live !== undefined) this.#noteWaiting(sessionId); // Just now it is busy: look again.
    }
  }

  #letGo(sessionId: string, { driver }: Live): void {
    const { token } = driver;
    if (token === undefined) return;
    this.#live.delete(sessionId);
    driver.abandon();
    this.#committer.submit({
      change: { type: "release_claim", sessionId, token },
      // Whatever arrived between the last commit and this release finds nobody driving it: look once more (K10).
      onResult: () => this.#lookForDue(),
      onError: () => {},
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

  // ---- small things ------------------------------------------------------------------------------------------------

  #makeWorld(): DriverWorld {
    const storage = this.#storage;
    return {
      loop: new SliceLoop(this.#committer.flush, this.#watchdog),
      timers: this.#timers,
      clock: this.#clock,
      hash: sha256,
      limits: this.#limits,
      executor: this.#executor,
      random: () => this.#random.u32(),
      submit: (change, onResult, onError) => this.#committer.submit({ change, onResult, onError }),
      arrivals: (sessionId, after) => storage.arrivals(sessionId, after),
      conversation: async (sessionId, leaf) =>
        (await storage.conversation(sessionId, leaf)).map((entry) => toConversation(sessionId, entry)),
      trace: (event) => {
        if (event.type === "waiting") this.#noteWaiting(event.sessionId);
        try {
          this.#tracer.trace(event);
        } catch {
          // A tracer can neither throw into nor delay what it watches.
        }
      },
      enter: (sessionId, fn) => this.#context.run(sessionId, fn),
      departed: (driver, departure) => this.#departed(driver, departure),
    };
  }

  #warn(sessionId: string, reason: unknown): void {
    this.#trace(
      sessionId,
      `a promise of the agent was rejected and nobody handled it: ${toHoldfastError(reason).message}`,
    );
  }

  #trace(sessionId: string, message: string): void {
    this.#world.trace({ type: "warned", sessionId, at: this.#clock.now(), message });
  }

  async #session(sessionId: string): Promise<Session> {
    const session = await this.#storage.reader.session(sessionId);
    if (session === undefined) throw sessionNotFound(sessionId);
    return session;
  }

  #agentOf({ sessionId, agent }: Session): Agent {
    const known = this.#agents.get(agent.name);
    if (known !== undefined) return known;
    throw new NotFoundError(
      "agent_not_found",
      `session ${sessionId} needs agent "${agent.name}", which is not known here`,
      {
        expected:
          this.#agents.size === 0
            ? "an agent; none was given"
            : `one of ${[...this.#agents.keys()].join(", ")}`,
        fix: "give it to createRuntime({ agents })",
      },
    );
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
    if (this.#closed)
      throw new UsageError("the runtime is closed", { fix: "make another with createRuntime()" });
  }

  #handle<Output>(sessionId: string, created: boolean): SessionHandle<Output> {
    return {
      sessionId,
      created,
      result: async () => outputOf(sessionId, (await this.#settledOf(sessionId)) as Settled<Output>),
      settled: () => this.#settledOf(sessionId) as Promise<Settled<Output>>,
      session: () => this.#session(sessionId),
      signal: (name, payload, options) => this.signal(sessionId, name, payload, options),
      answer: (answer, options) => this.answer(sessionId, answer, options),
      cancel: (options) => this.cancel(sessionId, options),
    };
  }

  async #settledOf(sessionId: string): Promise<Settled> {
    const known = this.#waiters.get(sessionId);
    if (known !== undefined) return known.promise;
    const isHere = () =>
      this.#live.has(sessionId) || this.#activating.has(sessionId) || this.#loading.has(sessionId);
    if (!isHere() || this.#closed) {
      const session = await this.#session(sessionId);
      if (isEnded(session.status)) return settledAs(session);
      if (session.status === "paused" && !isHere()) return settledAs(session);
      const isAtWork = session.status === "working" || session.status === "submitted";
      if (this.#closed || (isAtWork && !isHere()))
        return { status: "released", error: this.#abandoned.get(sessionId) };
    }
    const waiter = this.#waiters.get(sessionId) ?? Promise.withResolvers<Settled>();
    this.#waiters.set(sessionId, waiter);
    return waiter.promise;
  }
}

function isExecutor(tasks: RuntimeOptions["tasks"]): tasks is TaskExecutor {
  return tasks !== undefined && !Array.isArray(tasks);
}

function toConversation(sessionId: string, { seq, parent, role, turn, content }: Entry): ConversationEntry {
  return {
    id: positionId(sessionId, seq),
    parentId: parent === undefined ? null : positionId(sessionId, parent),
    role,
    turnId: String(turn),
    content: decodeJson(content),
  };
}

function sessionNotFound(sessionId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${sessionId}`, {
    fix: "ids are case-sensitive; `holdfast list` shows them",
  });
}

function unexpected(doing: string, status: string): HoldfastError {
  return new HoldfastError("internal", `${doing}: storage answered "${status}"`);
}
