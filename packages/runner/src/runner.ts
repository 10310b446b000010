// A process on a machine that runs sessions and tasks for a coordinator.
//
//   registered ─► polling: what is given is run by a runtime over `dispatched-storage.ts`
//              ─► draining: nothing new is taken, what only waits is let go of, what is at work may finish (runner-5)
//              ─► over: the rest is aborted and handed back, and the runner deregisters
//
//   runner-1. It goes on for ever while the coordinator is away, and ends only when it is stopped, drained, or refused
//       for good.
//   runner-2. It never holds more than `maxRuns` sessions (O6): one that only waits makes room for one that does something.
//   runner-3. What it cannot hand back, because nobody hears it, runs out by its lease.
//   runner-4. What time it is its coordinator says; this machine's clock only counts what has passed since (S3).
//   runner-5. Told by the coordinator to drain, it finishes what is at work, however long that takes: nobody is in a
//       hurry. Stopped, also while it drains, it gives that its grace.

import {
  HoldfastError,
  mintId,
  toHoldfastError,
  UsageError,
  type AgentTracer,
  type Clock,
  type Random,
} from "@holdfast/core";
import { RunnerService, type PollResponse } from "@holdfast/proto";
import {
  createRuntime,
  systemClock,
  systemRandom,
  type Agent,
  type Runtime,
  type TaskDefinition,
  type Watchdog,
} from "@holdfast/runtime";
import { CoordinatorConnection, RemoteStorage, type ConnectionOptions } from "@holdfast/storage/remote";
import { hostname as osHostname } from "node:os";
import { CLAIM_AGE_MS, DispatchedStorage, givenBy, sentWith } from "./dispatched-storage.ts";
import { serveHealth, type Health, type HealthServer } from "./health.ts";
import { pause, PollLoop, type Command, type Poll } from "./poll-loop.ts";
import { coordinatorQueue, queuedTasks } from "./queued-tasks.ts";
import { nameProcess, register, type Offers, type Registered } from "./registration.ts";
import { taskAgent } from "./task-agent.ts";
import { TokenFile } from "./token-file.ts";

/** What is between two commits finishes; what takes longer is handed back at once, as whoever stops a machine is in a hurry. */
const GRACE_MS = 1_000;
/** Of a grace that is given, so much is kept for what is aborted: a command that ignores SIGTERM ends after two seconds. */
const ABORT_MS = 3_000;
const MAX_RUNS = 32;
/** What a poll may take beyond what it waits. */
const ANSWER_MS = 10_000;

export interface RunnerOptions extends Omit<ConnectionOptions, "token"> {
  /** A registration token for the first time; afterwards none is needed. A runner's own token does, too. */
  readonly token?: string;
  /** Where the runner's own token is kept. */
  readonly stateFolder: string;
  /** The project's folder: with the URL and the name it says which runner this is. */
  readonly workspace: string;
  /** What people call it; tells runners of one project on one machine apart. */
  readonly name?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- a list of agents of any input and output has no other type.
  readonly agents?: readonly Agent<any, any>[];
  /** Tasks that are done here for sessions of other runners, too. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the same for tasks.
  readonly tasks?: readonly TaskDefinition<any, any>[];
  /** What sessions may demand. `machine`, `hostname` and `runner` every runner has. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly hostname?: string;
  /** Sessions held at once. */
  readonly maxRuns?: number;
  /** How long what is at work may take to finish when the runner is stopped. */
  readonly graceMs?: number;
  /** How often claims are renewed; at most a third of the coordinator's lease. Default: what the coordinator says. */
  readonly renewMs?: number;
  /** How long a poll waits. Default: what the coordinator says. */
  readonly pollTimeoutMs?: number;
  /** Serve `/healthz` on this port of this machine; not by default. */
  readonly healthPort?: number;
  /** Told of what happens. Must not throw. */
  readonly log?: (event: RunnerEvent) => void;
  readonly tracer?: AgentTracer;
  readonly watchdog?: Watchdog;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Give up registering. */
  readonly signal?: AbortSignal;
}

export type RunnerEvent =
  | { readonly type: "connecting"; readonly url: string }
  | { readonly type: "registered"; readonly runnerId: string }
  | { readonly type: "started"; readonly healthPort: number | undefined }
  | { readonly type: "received"; readonly sessionId: string; readonly agent: string }
  | { readonly type: "lost"; readonly error: HoldfastError }
  | { readonly type: "back" }
  | { readonly type: "draining"; readonly held: number }
  | { readonly type: "stopped"; readonly error: HoldfastError | undefined };

export interface Runner {
  readonly runnerId: string;
  health(): Health;
  /** Finish or hand back what is held, and deregister. Twice is once. */
  stop(): Promise<void>;
  /** When it has stopped; with the error when the coordinator refused it. Never rejects. */
  readonly ended: Promise<HoldfastError | undefined>;
}

/** What a terminal would not show as it is: it could hide a line, or forge one. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** @throws UsageError for a text that a coordinator refuses, before anything is asked. */
function checkNames({ name, hostname, labels = {} }: RunnerOptions): void {
  const texts = { name, hostname, ...labels };
  for (const [what, text] of Object.entries(texts)) {
    if (text === undefined || !CONTROL.test(text)) continue;
    const isLabel = Object.hasOwn(labels, what);
    throw new UsageError(
      `${isLabel ? `the label ${what}` : `the runner's ${what}`} has a control character`,
      {
        at: isLabel ? "labels" : what,
        got: JSON.stringify(text),
        expected: "one line of text, without control characters",
        fix: "leave the character out",
      },
    );
  }
}

/** Register at a coordinator, and run what it gives. Resolves when registered, however long that takes. */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const {
    url,
    stateFolder,
    workspace,
    name = "default",
    clock: machineClock = systemClock,
    random = systemRandom(),
  } = options;
  checkNames(options);
  const offers = offersOf(options);
  const log = options.log ?? (() => {});
  const connection = new CoordinatorConnection({
    ...options,
    clock: machineClock,
    token: options.token ?? "",
  });
  const clock: Clock = { ...machineClock, now: () => connection.time.now() }; // runner-4.
  const tokens = new TokenFile(stateFolder, { url: connection.url, project: workspace, name });
  const signal = options.signal ?? new AbortController().signal;
  const registering = {
    connection,
    tokens,
    token: options.token,
    offers,
    process: nameProcess(random),
    renewMs: options.renewMs,
    pollTimeoutMs: options.pollTimeoutMs,
    clock,
    random,
    signal,
    lost: (error: HoldfastError) => log({ type: "lost", error }),
  };
  try {
    log({ type: "connecting", url });
    const registered = await register(registering);
    log({ type: "registered", runnerId: registered.runnerId });
    const runner = new CoordinatedRunner({
      options,
      offers,
      connection,
      tokens,
      registered,
      process: registering.process,
      clock,
      random,
      log,
      registerAgain: (until) => register({ ...registering, signal: until }),
    });
    await runner.start(options.healthPort);
    return runner;
  } catch (error) {
    tokens.close();
    connection.close();
    throw error;
  }
}

interface Parts {
  readonly options: RunnerOptions;
  readonly offers: Offers;
  readonly connection: CoordinatorConnection;
  readonly tokens: TokenFile;
  readonly registered: Registered;
  readonly process: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: (event: RunnerEvent) => void;
  registerAgain(signal: AbortSignal): Promise<unknown>;
}

class CoordinatedRunner implements Runner {
  readonly runnerId: string;
  readonly ended: Promise<HoldfastError | undefined>;
  readonly #parts: Parts;
  readonly #storage: DispatchedStorage;
  readonly #runtime: Runtime;
  readonly #loop: PollLoop<PollResponse>;
  readonly #giveUp = new AbortController();
  readonly #end: (error: HoldfastError | undefined) => void;
  #health: HealthServer | undefined;
  /** Its grace is over. */
  readonly #hurry = new AbortController();
  /** When a grace that was given is over, by the monotonic clock. */
  #endsAt: number | undefined;
  #status: Health["status"] = "ok";
  #stopping: Promise<void> | undefined;
  #onFewer = (): void => {};
  #isLooking = false;

  constructor(parts: Parts) {
    const { connection, registered, clock, random, options } = parts;
    this.#parts = parts;
    this.runnerId = registered.runnerId;
    const { promise, resolve } = Promise.withResolvers<HoldfastError | undefined>();
    this.ended = promise;
    this.#end = resolve;
    this.#storage = new DispatchedStorage(new RemoteStorage(connection), clock, () => this.#fewer());
    const tasks = options.tasks ?? [];
    this.#runtime = createRuntime({
      storage: this.#storage,
      agents: [...(options.agents ?? []), ...tasks.map((task) => taskAgent(task as TaskDefinition))],
      tasks,
      queue: queuedTasks({ queue: coordinatorQueue(connection), clock, random }),
      clock,
      random,
      owner: this.runnerId,
      leaseMs: registered.leaseMs,
      renewMs: registered.renewMs,
      adopt: true,
      dispatched: { claimAgeMs: CLAIM_AGE_MS },
      machine: parts.offers.labels["machine"] ?? parts.offers.hostname,
      ...(options.tracer === undefined ? {} : { tracer: options.tracer }),
      ...(options.watchdog === undefined ? {} : { watchdog: options.watchdog }),
    });
    this.#loop = new PollLoop({
      clock,
      random,
      newId: () => mintId("run", clock.now(), () => random.u32()),
      free: () => this.#free(),
      poll: (poll, signal) => this.#poll(poll, signal),
      take: (answer) => this.#take(answer),
      register: async () => void (await parts.registerAgain(this.#giveUp.signal)),
      lost: (error) => {
        if (this.#status === "ok") this.#status = "away";
        parts.log({ type: "lost", error });
      },
      back: () => {
        if (this.#status === "away") this.#status = "ok";
        parts.log({ type: "back" });
      },
      refused: (error) => void this.#finish(error),
    });
  }

  async start(healthPort: number | undefined): Promise<void> {
    if (healthPort !== undefined) this.#health = await serveHealth(healthPort, () => this.health());
    this.#loop.start();
    this.#parts.log({ type: "started", healthPort: this.#health?.port });
  }

  health(): Health {
    const { runnerId } = this;
    return { status: this.#status, runnerId, held: this.#storage.held, maxRuns: this.#parts.offers.maxRuns };
  }

  stop(): Promise<void> {
    const { options, clock } = this.#parts;
    const { graceMs } = options;
    if (graceMs !== undefined) this.#endsAt ??= clock.monotonic() + graceMs;
    const workMs = graceMs === undefined ? GRACE_MS : graceMs - Math.min(graceMs / 2, ABORT_MS);
    void pause(workMs, clock, this.#giveUp.signal).then(() => this.#hurry.abort());
    return this.#finish(undefined);
  }

  // ---- what is asked and told --------------------------------------------------------------------------------------

  /** runner-2. */
  #free(): number {
    if (this.#stopping !== undefined) return 0;
    const { maxRuns } = this.#parts.offers;
    if (this.#storage.held >= maxRuns) this.#runtime.letGo();
    return Math.max(0, maxRuns - this.#storage.held);
  }

  /** Once for all that was answered together, and after who asked for it has heard: a session may only wait now. */
  #fewer(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(() => {
      this.#isLooking = false;
      this.#loop.slotFreed();
      this.#onFewer();
    });
  }

  #poll(
    { pollId, number, ackPollId, ackCommandIds, free }: Poll,
    signal: AbortSignal,
  ): Promise<PollResponse> {
    const { connection, offers, registered, process } = this.#parts;
    const { pollTimeoutMs } = registered;
    const request = {
      runnerId: this.runnerId,
      pollId,
      number: BigInt(number),
      ackCommandIds: [...ackCommandIds],
      free,
      agents: offers.agents.map((agent) => ({ ...agent })),
      taskKinds: [...offers.taskKinds],
      waitMs: pollTimeoutMs,
      process,
      withArrivals: true,
      ...(ackPollId === undefined ? {} : { ackPollId }),
    };
    const call = { signal, timeoutMs: pollTimeoutMs + ANSWER_MS };
    return connection.time.asking(() =>
      connection.ask(() => connection.client(RunnerService).poll(request, call)),
    );
  }

  #take({ claims, arrivals, commands }: PollResponse): readonly string[] {
    for (const claim of claims) {
      const given = givenBy(claim, this.#parts.connection.time);
      this.#parts.log({
        type: "received",
        sessionId: given.sessionId,
        agent: given.snapshot.session.agent.name,
      });
      this.#storage.give(given);
    }
    for (const notice of arrivals) this.#storage.arrived(notice, sentWith(notice));
    for (const command of commands) this.#obey(command);
    return commands.map(({ commandId }) => commandId);
  }

  #obey({ type, sessionId }: Command): void {
    if (type === "stop" && sessionId !== undefined) this.#runtime.abandon(sessionId);
    else if (type === "drain") void this.#finish(undefined);
    // Others are of a later version, which this one is as good as deaf to: acknowledged, they are not sent again.
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  #finish(error: HoldfastError | undefined): Promise<void> {
    this.#stopping ??= this.#drain(error).catch((thrown: unknown) => this.#end(toHoldfastError(thrown)));
    return this.#stopping;
  }

  async #drain(error: HoldfastError | undefined): Promise<void> {
    const { log, connection, tokens, clock } = this.#parts;
    this.#status = "draining";
    log({ type: "draining", held: this.#storage.held });
    this.#loop.withdraw();
    if (error === undefined) await this.#untilNothingIsHeld();
    this.#giveUp.abort();
    await this.#loop.stop();
    const left = this.#endsAt === undefined ? undefined : Math.max(0, this.#endsAt - clock.monotonic());
    await this.#runtime.close(left === undefined ? {} : { graceMs: left });
    // Nobody may be there to hear it: then it is removed after a while (runner-3).
    const { runnerId } = this;
    const leaving = { runnerId, process: this.#parts.process };
    if (error === undefined)
      await connection
        .ask(() => connection.client(RunnerService).deregister(leaving, { timeoutMs: 2_000 }))
        .catch(() => {});
    await this.#storage.close();
    await this.#health?.close();
    tokens.close();
    this.#status = "stopped";
    log({ type: "stopped", error });
    this.#end(error);
  }

  /** runner-5. What comes to wait is let go of. */
  #untilNothingIsHeld(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#hurry;
    signal.addEventListener("abort", () => resolve(), { once: true });
    this.#onFewer = () => {
      this.#runtime.letGo();
      if (this.#storage.held === 0 || signal.aborted) resolve();
    };
    this.#onFewer();
    return promise;
  }
}

function offersOf(options: RunnerOptions): Offers {
  const { maxRuns = MAX_RUNS, labels = {}, agents = [], tasks = [] } = options;
  if (!Number.isSafeInteger(maxRuns) || maxRuns < 1)
    throw new UsageError(`a runner cannot hold ${maxRuns} sessions`, { expected: "a whole number above 0" });
  if (agents.length + tasks.length === 0)
    throw new UsageError("a runner without agents and tasks has nothing to do", {
      fix: "give it files of agents, with --agents FILE",
    });
  const offered = new Map<string, { name: string; version: string }>();
  const add = (agent: Agent): void => {
    const key = JSON.stringify([agent.name, agent.version]);
    if (offered.has(key)) return;
    offered.set(key, { name: agent.name, version: agent.version });
    for (const child of agent.agents) add(child);
  };
  for (const agent of agents) add(agent);
  return {
    ...(options.name === undefined ? {} : { name: options.name }),
    hostname: options.hostname ?? osHostname(),
    project: options.workspace,
    labels,
    agents: [...offered.values()],
    taskKinds: tasks.map((task) => task.name),
    maxRuns,
  };
}
