// `RuntimeParts`: the parts of a runtime, with the order in which they are made and closed.
//
// Each part gets the parts that were made before it. Parts that need each other are in one class:
// `LeasedClaims` and `LiveSessions`.

import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers";
import {
  type AgentStorage,
  type AgentTracer,
  ALONE_LOSSES_MAX,
  type Clock,
  type Limits,
  LIMITS,
  type Random,
  type TaskExecutor,
  toHoldfastError,
} from "@holdfast/core";
import type { Agent } from "./agents/define.ts";
import type { RuntimeOptions, ScheduleOptions } from "./api/runtime-api.ts";
import { ProcessHold } from "./api/session-handle.ts";
import type { Claims } from "./claims/claims.ts";
import { LeasedClaims } from "./claims/leased-claims.ts";
import type { LeaseKeeper } from "./claims/lease-keeper.ts";
import { Trials } from "./claims/trials.ts";
import { installDevelopmentChecks } from "./isolation/development-checks.ts";
import { watchStrayRejections } from "./isolation/stray-rejections.ts";
import type { Watchdog } from "./isolation/watchdog.ts";
import { GroupCommitter } from "./loop/group-committer.ts";
import { isNeutralEmpty } from "./loop/neutral-context.ts";
import { SliceLoop, type Immediate } from "./loop/slice-loop.ts";
import { Timers } from "./loop/timers.ts";
import { clockFor, isDevelopment, silentTracer, systemRandom } from "./node/node-ports.ts";
import { RunRequests } from "./requests/run-requests.ts";
import { openSource, SessionRequests } from "./requests/session-requests.ts";
import { ScheduleKeeper, type ScheduleKeeperHost } from "./schedules/schedule-keeper.ts";
import { Schedules } from "./schedules/schedules.ts";
import type { DriverWorld } from "./session/driver-environment.ts";
import type { CodeHere } from "./sessions/driver-world.ts";
import { GivenClaims } from "./sessions/given-claims.ts";
import type { LiveSessionsHost } from "./sessions/live-sessions-host.ts";
import { LiveSessions } from "./sessions/live-sessions.ts";
import { SessionEntries } from "./sessions/session-entries.ts";
import { warmLimits } from "./sessions/warm-sessions.ts";
import { executorsOf } from "./task-placement.ts";
import { SlotWaits } from "./tasks/slot-waits.ts";
import { UnbegunTasks } from "./tasks/unbegun-tasks.ts";
import { compositeTracer } from "./tracers/composite-tracer.ts";
import { DraftSender } from "./tracers/draft-sender.ts";
import { guardedCallersTraceparent, guardedTrace, guardedTraceparent } from "./tracers/guarded-tracer.ts";

const WARM_MS = 30_000;
/** After the grace, aborted handlers have this long to settle: a process ends two seconds after its grace. */
const ABORT_MS = 1_500;

const LOADED_IN_REQUEST =
  "this Node version is not known to Holdfast. If Holdfast is first loaded within a request, agents see the " +
  "AsyncLocalStorage of that request: load it where the program starts (docs/frameworks.md)";

export class RuntimeParts {
  readonly clock: Clock;
  readonly sessions: LiveSessions;
  /** Drives the sessions that a coordinator gives this process. */
  readonly given: GivenClaims;
  readonly requests: SessionRequests;
  readonly runs: RunRequests;
  readonly schedules: Schedules;
  readonly aliveness = new ProcessHold();
  readonly #tracer: AgentTracer;
  readonly #timers: readonly Timers[];
  readonly #committer: GroupCommitter;
  readonly #leases: LeaseKeeper;
  readonly #executor: TaskExecutor;
  readonly #trials: Trials;
  readonly #keeper: ScheduleKeeper | undefined;
  /** Each is called once, when the runtime closes or vanishes. */
  readonly #closers: (() => void | Promise<void>)[];

  /** @throws UsageError when `renewMs` is too long for the lease, or two agents have one name and version. */
  constructor(options: RuntimeOptions) {
    const shared = sharedParts(options);
    const { storage, clock, tracer, committer, timers, idleTimers } = shared;
    const { keeper: leases, claims } = makeClaims(options, shared);
    const slotWaits = new SlotWaits(shared, () => local?.crowd ?? 0);
    const { executor, local } = makeExecutors(options, shared, leases, () => slotWaits.look());
    const trials = makeTrials(options, shared, claims);
    const sessions = makeSessions(options, { ...shared, leases, claims, executor, local, trials, slotWaits });
    this.clock = clock;
    this.sessions = sessions;
    this.#tracer = tracer;
    this.#timers = [timers, idleTimers];
    this.#committer = committer;
    this.#leases = leases;
    this.#executor = executor;
    this.#trials = trials;

    const { dispatched, strictBounds = false } = options;
    const claimAgeMs = dispatched?.claimAgeMs ?? Infinity;
    this.given = new GivenClaims({ ...shared, sessions, claims, claimAgeMs });

    const lookAt = (at: number): void => sessions.due.lookAt(at);
    const know = (agent: Agent): void => sessions.know([agent]);
    const callersTraceparent = guardedCallersTraceparent(tracer);
    const requests = new SessionRequests({ ...shared, lookAt });
    const driven = { ...shared, sessions, claims, trials };
    const runs = new RunRequests({ ...driven, lookAt, know, strictBounds, callersTraceparent });
    this.requests = requests;
    this.runs = runs;
    this.schedules = new Schedules(shared);

    sessions.know(options.agents ?? []);
    dispatched?.knowing?.((versions, current) => {
      sessions.know(versions);
      sessions.agents.chooseElsewhere(versions, current);
    });
    void storage.lost?.then((error) => sessions.storageLost(error));
    this.#closers = [
      storage.subscribe(({ sessionId, awaited }) => sessions.arrived(sessionId, awaited)),
      ...watchCode(shared),
      () => shared.drafts?.close(),
      ...(options.signals ?? []).map((source) => openSource(source, (...asked) => requests.signal(...asked))),
    ];
    this.#keeper = keeperOf(options.schedules, (firing) => ({
      ...shared,
      options: firing,
      agents: sessions.agents,
      know,
      runExisting: (sessionId) => runs.runExisting(sessionId),
      failedToRun: (sessionId, error) => sessions.failedToRun(sessionId, error),
    }));
  }

  /**
   * Begin nothing more, end what runs, then stop waiting.
   *
   * @param graceOver until then running tasks may end. @param isGraceful whether there is a grace.
   */
  async close(graceOver: Promise<void>, isGraceful: boolean): Promise<void> {
    this.#keeper?.close();
    this.#trials.close();
    this.#committer.hurry();
    const abortMs = isGraceful ? ABORT_MS : undefined;
    await this.sessions.close(graceOver, () => this.#executor.close(abortMs));
    await this.#committer.idle();
    this.#leases.close();
    for (const close of this.#closers.splice(0)) await close();
    this.#stopWaiting();
    await this.#tracer.flush?.().catch(() => {});
  }

  /** As a killed process: nothing is released, committed or awaited. */
  vanish(): void {
    this.#keeper?.close();
    this.#trials.close();
    this.sessions.vanish();
    this.#leases.close();
    void this.#executor.close();
    for (const close of this.#closers.splice(0)) void close();
    this.#stopWaiting();
  }

  #stopWaiting(): void {
    for (const timers of this.#timers) timers.close();
    this.aliveness.close();
  }
}

/** The ports of a runtime, and the parts that need no other part. Most parts use these. */
interface SharedParts {
  readonly storage: AgentStorage;
  readonly watchdog: Watchdog | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  readonly development: boolean;
  readonly immediate: Immediate;
  readonly tracer: AgentTracer;
  readonly drafts: DraftSender | undefined;
  readonly trace: DriverWorld["trace"];
  readonly traceparent: DriverWorld["traceparent"];
  readonly warn: (sessionId: string, message: string) => void;
  readonly timers: Timers;
  /** They do not keep the process alive. */
  readonly idleTimers: Timers;
  readonly committer: GroupCommitter;
  readonly loop: SliceLoop;
  readonly code: CodeHere;
  readonly unbegun: UnbegunTasks;
  readonly entries: SessionEntries;
}

function tracerOf(given: AgentTracer | undefined, drafts: DraftSender | undefined): AgentTracer {
  if (given === undefined || drafts === undefined) return given ?? drafts ?? silentTracer;
  return compositeTracer([given, drafts]);
}

/** Ports that are not in the options are those of a Node process. */
function sharedParts(options: RuntimeOptions): SharedParts {
  const { storage, watchdog, immediate = setImmediate } = options;
  const { clock = clockFor(storage), random = systemRandom() } = options;
  const shared = options.showsTexts === true ? storage.drafts : undefined;
  const drafts = shared?.show && new DraftSender({ clock, show: (shown) => shared.show!(shown) });
  const tracer = tracerOf(options.tracer, drafts);
  const committer = new GroupCommitter(storage, clock, immediate);
  const trace = guardedTrace(tracer);
  return {
    storage,
    watchdog,
    clock,
    random,
    limits: { ...LIMITS, ...options.limits },
    development: options.development ?? isDevelopment(),
    immediate,
    tracer,
    drafts,
    trace,
    traceparent: guardedTraceparent(tracer),
    warn: (sessionId, message) => trace?.({ type: "warned", sessionId, at: clock.now(), message }),
    timers: new Timers(clock),
    idleTimers: new Timers(clock, true),
    committer,
    loop: new SliceLoop(committer.flush, watchdog, immediate),
    code: { running: new AsyncLocalStorage(), outsideCalls: new Map() },
    unbegun: new UnbegunTasks(),
    entries: new SessionEntries(),
  };
}

/** @throws UsageError when `renewMs` is too long for the lease. */
function makeClaims(
  { owner, leaseMs = Infinity, renewMs, dispatched }: RuntimeOptions,
  shared: SharedParts,
): LeasedClaims {
  return new LeasedClaims({
    ...shared,
    owner: owner ?? `process ${process.pid} (${shared.random.u32().toString(36)})`,
    leaseMs,
    renewMs,
    claimAgeMs: dispatched?.claimAgeMs,
  });
}

/** @throws ConflictError when two tasks have one name. */
function makeExecutors(
  options: RuntimeOptions,
  shared: SharedParts,
  leases: LeaseKeeper,
  onCrowded: () => void,
): ReturnType<typeof executorsOf> {
  const { storage, clock, limits, watchdog } = shared;
  const signals = new SessionRequests({ ...shared, prices: options.prices });
  return executorsOf(options, clock, limits.payloadChars, {
    checkLease: () => leases.check(),
    overlapMs: limits.cancelGraceMs,
    onCrowded,
    steps: watchdog,
    read: (sessionId) => storage.reader.session(sessionId),
    signal: (...asked) => signals.taskSignal(...asked),
  });
}

function makeTrials(
  { poisonLosses = ALONE_LOSSES_MAX, dispatched }: RuntimeOptions,
  shared: SharedParts,
  claims: Claims,
): Trials {
  const { entries, code } = shared;
  return new Trials({
    ...shared,
    claims,
    lossesMax: poisonLosses,
    isDispatched: dispatched !== undefined,
    live: () => entries.drivers.map(({ sessionId }) => sessionId),
    inSession: () => code.running.getStore() !== undefined,
  });
}

/** The parts that sessions need beside those that most parts use. */
interface SessionParts
  extends SharedParts, Pick<LiveSessionsHost, "claims" | "executor" | "local" | "slotWaits" | "trials"> {
  readonly leases: LeaseKeeper;
}

function makeSessions(options: RuntimeOptions, parts: SessionParts): LiveSessions {
  const { adopt = true, replaceAgents = false, prices, machine, warmMs = WARM_MS, dispatched } = options;
  const { leases } = parts;
  return new LiveSessions({
    ...parts,
    checkLease: () => leases.check(),
    lookEveryMs: leases.renewMs,
    adopt,
    dispatched: dispatched !== undefined,
    replaceAgents,
    prices,
    machine,
    warmMs,
    warm: warmLimits(options),
  });
}

/** Report stray rejections, and in development the calls that an agent must not make. */
function watchCode({
  code: { running, outsideCalls },
  loop,
  development,
  warn,
}: SharedParts): readonly (() => void)[] {
  const rejections = watchStrayRejections(running, (sessionId, reason) => {
    const { message } = toHoldfastError(reason);
    warn(sessionId, `a promise of the agent was rejected and nobody handled it: ${message}`);
  });
  if (!development) return [rejections];
  if (!isNeutralEmpty) process.emitWarning(LOADED_IN_REQUEST);
  const calls = installDevelopmentChecks({
    currentSession: () => (loop.inSlice ? running.getStore()?.sessionId : undefined),
    warn,
    onOutsideCall: (sessionId, line) => void outsideCalls.set(sessionId, line),
  });
  return [rejections, calls];
}

function keeperOf(
  firing: RuntimeOptions["schedules"],
  host: (options: ScheduleOptions) => ScheduleKeeperHost,
): ScheduleKeeper | undefined {
  if (firing === undefined || firing === false) return undefined;
  return new ScheduleKeeper(host(firing === true ? {} : firing));
}
