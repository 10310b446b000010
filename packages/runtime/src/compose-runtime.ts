// `composeRuntime`: makes the parts of a runtime from its options and connects them.
//
// The parts name each other only inside functions, which are called when all parts exist.

import { AsyncLocalStorage } from "node:async_hooks";
import {
  LIMITS,
  toHoldfastError,
  type AgentStorage,
  type AgentTracer,
  type Clock,
  type CommitBatch,
  type Limits,
  type Random,
  type TaskExecutor,
} from "@holdfast/core";
import { ALONE_LOSSES_MAX, isProof, UNKNOWN_VERSION } from "@holdfast/core/internal";
import type { Agent } from "./agents/define.ts";
import type { RuntimeOptions, ScheduleOptions } from "./api/runtime-api.ts";
import { installDevelopmentChecks } from "./isolation/development-checks.ts";
import { watchStrayRejections } from "./isolation/stray-rejections.ts";
import { GroupCommitter } from "./loop/group-committer.ts";
import { boundHere, isNeutralEmpty, neutral } from "./loop/neutral-context.ts";
import { SliceLoop, type Immediate } from "./loop/slice-loop.ts";
import { Timers } from "./loop/timers.ts";
import { clockFor, isDevelopment, sha256, silentTracer, systemRandom } from "./node/node-ports.ts";
import { RunRequests } from "./requests/run-requests.ts";
import { openSource, SessionRequests } from "./requests/session-requests.ts";
import { ScheduleKeeper, type ScheduleKeeperHost } from "./schedules/schedule-keeper.ts";
import { Schedules } from "./schedules/schedules.ts";
import type { DriverWorld } from "./session/driver-environment.ts";
import type { RunningCode } from "./tasks/task-session.ts";
import { UnbegunTasks } from "./tasks/unbegun-tasks.ts";
import { arrivalsHere } from "./session/inbox.ts";
import { LeasedClaims } from "./claims/leased-claims.ts";
import { Trials } from "./claims/trials.ts";
import { DueSessions } from "./sessions/due-sessions.ts";
import { GivenClaims } from "./sessions/given-claims.ts";
import type { LeaseKeeper } from "./claims/lease-keeper.ts";
import { LiveSessions } from "./sessions/live-sessions.ts";
import { SessionEntries } from "./sessions/session-entries.ts";
import { warmLimits } from "./sessions/warm-sessions.ts";
import { executorsOf } from "./task-placement.ts";
import { awaitConversation, KeptConversations } from "./tasks/conversation.ts";
import { guardedCallersTraceparent, guardedTrace, guardedTraceparent } from "./tracers/guarded-tracer.ts";

const WARM_MS = 30_000;

const LOADED_IN_REQUEST =
  "this Node version is not known to Holdfast. If Holdfast is first loaded within a request, agents see the " +
  "AsyncLocalStorage of that request: load it where the program starts (docs/frameworks.md)";

/** The parts that `LocalRuntime` calls. */
export interface RuntimeParts {
  readonly storage: AgentStorage;
  readonly clock: Clock;
  readonly tracer: AgentTracer;
  readonly executor: TaskExecutor;
  readonly timers: readonly Timers[];
  readonly leases: LeaseKeeper;
  readonly committer: GroupCommitter;
  readonly sessions: LiveSessions;
  readonly trials: Trials;
  readonly given: GivenClaims;
  readonly due: DueSessions;
  readonly requests: SessionRequests;
  readonly runs: RunRequests;
  readonly schedules: Schedules;
  readonly leaving: { atCheckpoints: boolean };
  readonly keeper: ScheduleKeeper | undefined;
  /** Each is called once, when the runtime closes or vanishes. */
  readonly closers: (() => void | Promise<void>)[];
}

/** The ports of a runtime: those in the options, otherwise those of a Node process. */
interface Ports {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: Limits;
  readonly tracer: AgentTracer;
  readonly owner: string;
  readonly development: boolean;
  readonly immediate: Immediate;
}

function portsOf(options: RuntimeOptions): Ports {
  const random = options.random ?? systemRandom();
  return {
    clock: options.clock ?? clockFor(options.storage),
    random,
    limits: { ...LIMITS, ...options.limits },
    development: options.development ?? isDevelopment(),
    immediate: options.immediate ?? setImmediate,
    tracer: options.tracer ?? silentTracer,
    owner: options.owner ?? `process ${process.pid} (${random.u32().toString(36)})`,
  };
}

/** @throws UsageError when `renewMs` is too long for the lease, or two agents have one name and version. */
export function composeRuntime(options: RuntimeOptions): RuntimeParts {
  const { storage, watchdog, dispatched, adopt = true, leaseMs = Infinity, renewMs } = options;
  const ports = portsOf(options);
  const { clock, random, limits, tracer, owner, immediate } = ports;
  const code: CodeHere = { running: new AsyncLocalStorage(), outsideCalls: new Map() };
  const timers = new Timers(clock);
  const idleTimers = new Timers(clock, true);
  const committer = new GroupCommitter(storage, clock, immediate);
  const entries = new SessionEntries();
  const unbegun = new UnbegunTasks();
  const { keeper: leases, claims } = new LeasedClaims({
    storage,
    committer,
    clock,
    watchdog,
    unbegun,
    entries,
    owner,
    leaseMs,
    renewMs,
    claimAgeMs: dispatched?.claimAgeMs,
  });
  const checkLease = (): void => leases.check();
  const { executor, local } = executorsOf(options, clock, limits.payloadChars, {
    checkLease,
    overlapMs: limits.cancelGraceMs,
    steps: watchdog,
    read: (sessionId) => options.storage.reader.session(sessionId),
    signal: (...asked) => requests.taskSignal(...asked),
  });
  const leaving = { atCheckpoints: false };
  const mayReplace = options.replaceAgents ?? false;
  const world: DriverWorld = makeWorld(options, ports, {
    leavesAtCheckpoint: () => leaving.atCheckpoints,
    timers,
    committer,
    executor,
    checkLease,
    unbegun,
    code,
    sessions: () => sessions,
    noteWaiting: (sessionId, bytes) => {
      trials.over(sessionId);
      due.noteWaiting(sessionId, bytes);
      if (mayReplace) queueMicrotask(() => sessions.renew(sessionId)); // Not while its driver handles the commit.
    },
    committed: (batch) => {
      if (isProof(batch)) trials.over(batch.sessionId);
    },
  });
  const warn = (sessionId: string, message: string): void =>
    world.trace?.({ type: "warned", sessionId, at: clock.now(), message });
  const trials = new Trials({
    storage,
    committer,
    claims,
    clock,
    timers,
    lossesMax: options.poisonLosses ?? ALONE_LOSSES_MAX,
    isDispatched: dispatched !== undefined,
    live: () => entries.drivers.map(({ sessionId }) => sessionId),
    inSession: () => code.running.getStore() !== undefined,
    warn,
  });
  const lookAt = (at: number): void => due.lookAt(at);
  const sessions = new LiveSessions({
    storage,
    committer,
    world,
    claims,
    entries,
    adopt,
    dispatched: dispatched !== undefined,
    watchdog,
    trials,
    lookAt,
    local,
    replaceAgents: mayReplace,
    forget: (sessionId) => due.forget(sessionId),
    warn,
  });
  const due: DueSessions = new DueSessions({
    storage,
    clock,
    timers,
    idleTimers,
    sessions,
    claims,
    trials,
    warmMs: options.warmMs ?? WARM_MS,
    warm: warmLimits(options),
    adopt,
    lookEveryMs: leases.renewMs,
    warn,
  });
  const given = new GivenClaims({
    clock,
    timers,
    sessions,
    claims,
    claimAgeMs: dispatched?.claimAgeMs ?? Infinity,
  });
  const know = (agent: Agent): void => sessions.know([agent]);
  const storing = { storage, committer, clock, random, limits };
  const requests: SessionRequests = new SessionRequests({ ...storing, lookAt, prices: options.prices });
  const strictBounds = options.strictBounds ?? false;
  const runs = new RunRequests({
    ...storing,
    sessions,
    claims,
    trials,
    lookAt,
    know,
    warn,
    watchdog,
    strictBounds,
    callersTraceparent: guardedCallersTraceparent(tracer),
  });
  sessions.know(options.agents ?? []);
  dispatched?.knowing?.(know);
  void storage.lost?.then((error) => sessions.storageLost(error));
  const closers = [
    storage.subscribe(({ sessionId, awaited }) => sessions.arrived(sessionId, awaited)),
    ...watchCode(code, world, warn),
    ...(options.signals ?? []).map((source) => openSource(source, (...asked) => requests.signal(...asked))),
  ];
  const keeper = keeperOf(options.schedules, (firing) => ({
    ...storing,
    options: firing,
    agents: sessions.agents,
    know,
    runExisting: (sessionId) => runs.runExisting(sessionId),
    failedToRun: (sessionId, error) => sessions.failedToRun(sessionId, error),
    warn,
  }));
  return {
    storage,
    clock,
    tracer,
    executor,
    timers: [timers, idleTimers],
    leases,
    committer,
    sessions,
    trials,
    given,
    due,
    requests,
    runs,
    schedules: new Schedules(storing),
    leaving,
    keeper,
    closers,
  };
}

/** The code of sessions that runs in this process. */
interface CodeHere {
  readonly running: AsyncLocalStorage<RunningCode>;
  /** The line at which each session's agent last made a non-deterministic call. */
  readonly outsideCalls: Map<string, string>;
}

/** The parts that drivers use. */
interface WorldParts extends Pick<
  DriverWorld,
  "timers" | "executor" | "checkLease" | "unbegun" | "noteWaiting" | "leavesAtCheckpoint"
> {
  readonly committer: GroupCommitter;
  readonly code: CodeHere;
  readonly sessions: () => LiveSessions;
  /** Called when a batch of a session is stored. */
  readonly committed: (batch: CommitBatch) => void;
}

function makeWorld(
  { storage, dispatched, watchdog, prices, machine }: RuntimeOptions,
  { clock, random, limits, tracer, development, immediate }: Ports,
  { committer, code, sessions, committed, ...parts }: WorldParts,
): DriverWorld {
  const { running, outsideCalls } = code;
  const kept = new KeptConversations(storage);
  return {
    ...parts,
    loop: new SliceLoop(committer.flush, watchdog, immediate),
    immediate,
    clock,
    hash: sha256,
    limits,
    development,
    random: () => random.u32(),
    submit: (change, onResult, onError) =>
      committer.submit({
        change,
        onResult: (result) => {
          if (change.type === "commit_batch" && result.status === "committed") committed(change);
          onResult(result);
        },
        onError,
      }),
    arrivals: (sessionId, after) => arrivalsHere(storage, sessionId, after),
    find: (sessionId) => storage.reader.session(sessionId),
    conversation: (...asked) =>
      awaitConversation({ storage, kept, clock, unstored: (...of) => sessions().unstored(...of) }, ...asked),
    prices,
    describeAgent: (name) => {
      const elsewhere = dispatched === undefined ? undefined : { name, version: UNKNOWN_VERSION };
      return sessions().agents.describe(name) ?? elsewhere;
    },
    machine,
    agentNames: () => sessions().agents.names,
    acceptInput: (name, version, input) => sessions().agents.acceptInput(name, version, input),
    spawned: (sessionIds) => sessions().children.spawned(sessionIds),
    settled: (payers) => sessions().settlements.settled(payers),
    asked: (...asked) => sessions().settlements.asked(...asked),
    trace: guardedTrace(tracer),
    traceparent: guardedTraceparent(tracer),
    enter: (whose, fn) => neutral(() => running.run(whose, fn)),
    bound: (whose, closure) => boundHere((task) => running.run(whose, closure, task)),
    whereabouts: (sessionId) => ({
      task: running.getStore()?.task,
      outsideCall: outsideCalls.get(sessionId),
    }),
    departed: (driver, departure) => {
      outsideCalls.delete(driver.sessionId);
      kept.forget(driver.sessionId);
      sessions().departed(driver, departure);
    },
  };
}

/** Report stray rejections, and in development the calls that an agent must not make. */
function watchCode(
  { running, outsideCalls }: CodeHere,
  { loop, development }: DriverWorld,
  warn: (sessionId: string, message: string) => void,
): readonly (() => void)[] {
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
