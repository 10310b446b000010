// `startRunner` starts a runner: a process on a machine that runs sessions and tasks for a coordinator.
//
//   registered ─► polling: the runtime drives the given claims, over `dispatched-storage.ts`
//              ─► draining: nothing new is taken, what only waits is let go of, what is at work may finish (runner-5)
//              ─► over: the rest is handed back, and the runner deregisters
//
//   - A runner continues while the coordinator is away. It ends only when it is stopped, drained, or refused
//     for good.
//   - A runner never holds more than `maxRuns` sessions (O6). It releases sessions that only wait when it
//     needs room for others.
//   - A claim whose release does not reach the coordinator ends with its lease.
//   - The coordinator's clock decides the time. This machine's clock only measures what has passed since its
//     last answer (S3).
//   runner-5. A runner that the coordinator drains finishes its running work without a time limit. A runner
//       that is stopped, also while it drains, begins nothing more, and gives running tasks its grace.
//   runner-6. A runner whose code was replaced says so with each poll. Once the coordinator has answered such
//       a poll, the runner releases sessions for the newer code: at a checkpoint, or when they only wait. It
//       takes back the sessions that diverge there, and drains when no session of its code is left.
//   - Agents of the catalogue are offered beside the runner's own. A change of them is another registration,
//     which announces their schemas and the agents that the runner refuses. Sessions of an earlier version
//     stay held.
//   runner-8. A session that was lost repeatedly with its runner is tried in a process of its own. It is a
//       runner for trials, which the owner of this runner starts. Its death takes no other session with it.

import { setImmediate } from "node:timers";
import {
  type Clock,
  defined,
  HoldfastError,
  mintId,
  type Random,
  type SharedDrafts,
  STOP_GRACE_MS,
  storageWith,
  toHoldfastError,
} from "@holdfast/core";
import { RunnerService, type PollResponse } from "@holdfast/proto";
import {
  createRuntime,
  systemClock,
  systemRandom,
  type Agent,
  type CloseOptions,
  type Runtime,
  type TaskDefinition,
} from "@holdfast/runtime";
import { CoordinatorConnection, RemoteStorage } from "@holdfast/storage/remote";
import { nodeWarning } from "@holdfast/system";
import { CLAIM_AGE_MS, givenBy } from "./polls/claims.ts";
import { DispatchedStorage, sentWith } from "./dispatched-storage.ts";
import { keepCatalogue, type CatalogueOffers } from "./catalogue-sync.ts";
import { serveHealth, type Health, type HealthServer } from "./health.ts";
import type { Runner, RunnerOptions } from "./runner-api.ts";
import { releasing } from "./polls/releases.ts";
import { Supersession } from "./polls/supersession.ts";
import { isPassing, pause, pauseMs, PollLoop, type Command, type Poll } from "./polls/poll-loop.ts";
import { WorkAnswers } from "./polls/work-answers.ts";
import { coordinatorQueue, queuedTasks } from "./queued-tasks.ts";
import { checkNames, nameProcess, offersOf, register, type Offers, type Registered } from "./registration.ts";
import type { RunnerEvent } from "./runner-event.ts";
import { taskAgent } from "./task-agent.ts";
import { TokenFile, tokenInMemory, type TokenStore } from "./token-file.ts";

/** How long a poll may take in addition to its wait. */
const ANSWER_MS = 10_000;

/**
 * Registers at a coordinator and runs the sessions that it gives. Resolves when registered, however long that
 * takes.
 */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const {
    stateFolder,
    workspace,
    name = "default",
    clock: machineClock = systemClock,
    random = systemRandom(),
  } = options;
  checkNames(options);
  const warning = nodeWarning();
  if (warning !== undefined) process.emitWarning(warning);
  const offers = offersOf(options);
  const log = options.log ?? (() => {});
  const connection = new CoordinatorConnection({
    ...options,
    clock: machineClock,
    token: options.token ?? "",
  });
  // The coordinator's clock decides the time.
  const clock: Clock = { ...machineClock, now: () => connection.time.now() };
  const identity = { url: connection.url, project: workspace, name };
  const tokens = stateFolder === undefined ? tokenInMemory() : new TokenFile(stateFolder, identity);
  const signal = options.signal ?? new AbortController().signal;
  const registering = {
    connection,
    tokens,
    token: options.token,
    process: nameProcess(random),
    renewMs: options.renewMs,
    pollTimeoutMs: options.pollTimeoutMs,
    clock,
    random,
    signal,
    lost: (error: HoldfastError) => log({ type: "lost", error }),
    lowered: (askedMs: number, renewMs: number) => log({ type: "renewed_more_often", askedMs, renewMs }),
  };
  try {
    log({ type: "connecting", url: connection.url });
    const registered = await register({ ...registering, offers });
    log({ type: "registered", runnerId: registered.runnerId });
    const parts: Parts = {
      options,
      offers,
      known: { know: () => {} },
      connection,
      tokens,
      registered,
      process: registering.process,
      clock,
      random,
      log,
      registerAgain: (until) => register({ ...registering, offers: parts.offers, signal: until }),
    };
    const runner = new CoordinatedRunner(parts);
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
  /** The present offers of the runner. */
  offers: Offers;
  /** Makes the agents of the catalogue known to the runtime. */
  readonly known: { know(agents: readonly Agent[], current: readonly Agent[]): void };
  readonly connection: CoordinatorConnection;
  readonly tokens: TokenStore;
  readonly registered: Registered;
  readonly process: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: (event: RunnerEvent) => void;
  /** Registers with the offers of now. */
  registerAgain(signal: AbortSignal): Promise<unknown>;
}

class CoordinatedRunner implements Runner {
  readonly runnerId: string;
  readonly #parts: Parts;
  readonly #storage: DispatchedStorage;
  readonly #runtime: Runtime;
  readonly #loop: PollLoop<PollResponse>;
  readonly #giveUp = new AbortController();
  readonly #over = Promise.withResolvers<HoldfastError | undefined>();
  #health: HealthServer | undefined;
  /** Resolves when the runner was stopped and its runtime is closed. */
  readonly #closed = Promise.withResolvers<void>();
  #status: Health["status"] = "ok";
  #stopping: Promise<void> | undefined;
  #onFewer = (): void => {};
  #isLooking = false;
  /** runner-6. */
  readonly #supersession = new Supersession();
  readonly #workAnswers: WorkAnswers;

  constructor(parts: Parts) {
    const { connection, registered, clock, random, options } = parts;
    this.#parts = parts;
    this.runnerId = registered.runnerId;
    this.#storage = new DispatchedStorage(
      new RemoteStorage(connection),
      () => this.#fewer(),
      (...answered) => this.#supersession.kept.committed(...answered),
    );
    const ending = this.#giveUp.signal;
    const tokenOf = (sessionId: string): number | undefined => this.#storage.tokenOf(sessionId);
    options.environments?.connect(
      releasing({ connection, clock, random, signal: ending, tokenOf }),
      options.secrets,
    );
    const show: SharedDrafts["show"] = async (shown) => {
      const drafts = shown.map(({ sessionId, draft }) => ({
        sessionId,
        ...(draft === undefined ? {} : { draft: { ...draft, task: BigInt(draft.task) } }),
      }));
      const { runnerId } = this;
      const runners = connection.client(RunnerService);
      return (await runners.showDrafts({ runnerId, drafts }, { timeoutMs: ANSWER_MS })).watched;
    };
    this.#workAnswers = new WorkAnswers(options.work, (answer) => {
      const { runnerId } = this;
      const runners = connection.client(RunnerService);
      return connection.ask(() => runners.answerCommand({ runnerId, ...answer }, { timeoutMs: ANSWER_MS }));
    });
    const tasks = options.tasks ?? [];
    this.#runtime = createRuntime({
      storage: storageWith(this.#storage, { drafts: { show } }),
      agents: [...(options.agents ?? []), ...tasks.map((task) => taskAgent(task as TaskDefinition))],
      tasks,
      queue: queuedTasks({ queue: coordinatorQueue(connection), clock, random }),
      clock,
      random,
      owner: this.runnerId,
      leaseMs: registered.leaseMs,
      renewMs: registered.renewMs,
      adopt: true,
      showsTexts: true,
      dispatched: { claimAgeMs: CLAIM_AGE_MS, knowing: (know) => (parts.known.know = know) },
      machine: parts.offers.labels["machine"] ?? parts.offers.hostname,
      ...defined({
        tracer: options.tracer,
        secrets: options.environments ?? options.secrets,
        watchdog: options.watchdog,
      }),
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

  get ended(): Promise<HoldfastError | undefined> {
    return this.#over.promise;
  }

  async start(healthPort: number | undefined): Promise<void> {
    if (healthPort !== undefined) this.#health = await serveHealth(healthPort, () => this.health());
    const { begin, catalogueAgents: agentsOf } = this.#parts.options;
    const { connection, clock } = this.#parts;
    const { signal } = this.#giveUp;
    const offer = (offers: CatalogueOffers): Promise<void> => this.#offerAlso(offers);
    if (agentsOf !== undefined) await keepCatalogue({ connection, clock, agentsOf, offer, signal });
    if (begin === undefined) this.#loop.start();
    else void begin.then(() => this.#loop.start());
    this.#parts.log({ type: "started", healthPort: this.#health?.port });
  }

  health(): Health {
    const { runnerId } = this;
    return { status: this.#status, runnerId, held: this.#storage.held, maxRuns: this.#parts.offers.maxRuns };
  }

  async trialEnded(runnerId: string): Promise<void> {
    const { connection, clock, random } = this.#parts;
    const { signal } = this.#giveUp;
    const report = { runnerId, processEnded: true };
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        await connection.ask(() =>
          connection.client(RunnerService).deregister(report, { timeoutMs: ANSWER_MS }),
        );
        return;
      } catch (thrown) {
        if (!isPassing(toHoldfastError(thrown))) return; // Its leases pass.
        await pause(pauseMs(failures, random), clock, signal);
      }
    }
  }

  supersede(): Promise<void> {
    if (this.#supersession.announce()) this.#loop.replace();
    return this.#supersession.known;
  }

  get running(): number {
    return this.#runtime.running;
  }

  stop({ graceMs = this.#parts.options.graceMs ?? STOP_GRACE_MS }: CloseOptions = {}): Promise<void> {
    const stopping = this.#finish(undefined); // No session is taken any more.
    this.#runtime.close({ graceMs }).then(this.#closed.resolve, this.#closed.reject);
    return stopping;
  }

  // ---- polling -----------------------------------------------------------------------------------------------------

  #free(): number {
    if (this.#stopping !== undefined) return 0;
    const { maxRuns } = this.#parts.offers;
    if (this.#storage.held >= maxRuns) this.#runtime.releaseWaiting();
    return Math.max(0, maxRuns - this.#storage.held);
  }

  /**
   * Looks once for all changes of one answer, after their callers were notified: a session may only wait by
   * then.
   */
  #fewer(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(() => {
      this.#isLooking = false;
      this.#parts.options.environments?.prune();
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
      agents: offers.agents.map(({ name, version }) => ({ name, version })),
      taskKinds: [...offers.taskKinds],
      waitMs: this.#supersession.waitMs(pollTimeoutMs),
      process,
      withArrivals: true,
      startsTrials: this.#parts.options.startTrial !== undefined, // runner-8.
      ...defined({ ackPollId }),
      ...this.#supersession.pollPart,
    };
    const call = { signal, timeoutMs: pollTimeoutMs + ANSWER_MS };
    const poll = () => connection.client(RunnerService).poll(request, call);
    return connection.time.asking(() => connection.ask(poll));
  }

  /** A runner that is ending does not register again, because that would end the drain. */
  async #offerAlso({ agents: more, current, refused, environmentsOf }: CatalogueOffers): Promise<void> {
    const { options, registerAgain, known } = this.#parts;
    if (this.#stopping !== undefined) return;
    known.know(more, current);
    for (const agent of more) if (environmentsOf?.(agent) !== undefined) options.environments?.allow(agent);
    this.#parts.offers = offersOf({
      ...options,
      agents: [...(options.agents ?? []), ...more],
      refusedAgents: refused,
      ...defined({ environmentsOf }),
    });
    await registerAgain(this.#giveUp.signal);
    this.#loop.replace();
  }

  #take({ claims, arrivals, commands, left }: PollResponse): readonly string[] {
    if (this.#supersession.answered(left)) this.#leave();
    for (const claim of claims) {
      const given = givenBy(claim, this.#parts.connection.time);
      const { sessionId, agent, nextSeq } = given.snapshot.session;
      // The token does not tell: a storage counts tokens over all sessions, and a lost claim may have
      // recorded nothing.
      const runType = nextSeq === 0 ? "start_session" : "resume_session";
      const runId = `run_${sessionId}.${claim.token}`;
      this.#parts.log({ type: "received", runId, runType, sessionId, agent: agent.name });
      this.#storage.hold(sessionId, given.token);
      this.#parts.options.environments?.given(sessionId, agent);
      this.#supersession.kept.received(given.snapshot);
      this.#runtime.drive(given);
    }
    for (const notice of arrivals) this.#storage.arrived(notice, sentWith(notice));
    for (const command of commands) this.#obey(command);
    if (left.length > 0) this.#fewer();
    return commands.map(({ commandId }) => commandId);
  }

  #obey(command: Command): void {
    const { type, sessionId } = command;
    const { options, tokens } = this.#parts;
    const token = tokens.read();
    if (type === "stop" && sessionId !== undefined) this.#runtime.abandon(sessionId);
    else if (type === "try" && sessionId !== undefined && token !== undefined)
      options.startTrial?.({ sessionId, token }); // runner-8.
    else if (type === "drain") void this.#finish(undefined);
    else if (type === "read_work" || type === "merge_work") void this.#workAnswers.answer(command);
    // Other commands belong to later versions. They are acknowledged without effect, so that they are not
    // sent again.
  }

  /** runner-6. The coordinator knows that newer code has replaced the code here. */
  #leave(): void {
    const { kept } = this.#supersession;
    this.#parts.log({ type: "superseded", kept: kept.all.length });
    this.#onFewer = () => {
      this.#runtime.releaseWaiting({ atCheckpoints: true });
      if (this.#storage.held === 0 && kept.isEmpty) void this.#finish(undefined);
    };
    this.#onFewer();
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  #finish(error: HoldfastError | undefined): Promise<void> {
    this.#stopping ??= this.#drain(error).catch((thrown: unknown) =>
      this.#over.resolve(toHoldfastError(thrown)),
    );
    return this.#stopping;
  }

  async #drain(error: HoldfastError | undefined): Promise<void> {
    const { log, connection, tokens } = this.#parts;
    this.#status = "draining";
    this.#supersession.stopped();
    log({ type: "draining", held: this.#storage.held });
    this.#loop.withdraw();
    if (error === undefined) await Promise.race([this.#untilNothingIsHeld(), this.#closed.promise]);
    this.#giveUp.abort();
    await this.#loop.stop();
    await this.#runtime.close();
    await this.#workAnswers.idle(); // A merge that is cut off leaves files of the project half changed.
    // If the coordinator cannot be reached, it removes this runner after a while.
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
    this.#over.resolve(error);
  }

  /** runner-5. Sessions that begin to wait are released. */
  #untilNothingIsHeld(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onFewer = () => {
      this.#runtime.releaseWaiting();
      if (this.#storage.held === 0) resolve();
    };
    this.#onFewer();
    return promise;
  }
}
