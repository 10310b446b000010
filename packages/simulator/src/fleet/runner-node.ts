// `RunnerNode`: a runner of a fleet, with the real runtime over a fleet's storage port, on a machine with its
// own clocks.
//
//   - An ended process is started again as the same runner some time later. Nobody releases its claims.
//   - A pause ends after its time, and the process then continues without noticing it.
//   - A runner that is stopped takes no new session, drains within a grace, hands its running attempts over,
//     releases what it holds and leaves (C3).
//   - While a step blocks the event loop, the watchdog's thread renews the leases. Other sessions wait, and
//     lose nothing. The thread ends the process when the step blocks for longer than it may.

import { BEHAVIOUR_FLAGS, defined, isEnded, type Random, STOP_GRACE_MS } from "@holdfast/core";
import { RunnerService, type PollResponse } from "@holdfast/proto";
import {
  CLAIM_AGE_MS,
  DispatchedStorage,
  givenBy,
  sentWith,
  PollLoop,
  type Poll,
} from "@holdfast/runner/internal";
import { createRuntime, type Runtime, type Watchdog } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { RemoteStorage, type CoordinatorConnection } from "@holdfast/storage/remote";
import type { Client } from "@connectrpc/connect";
import type { Dice } from "../world/dice.ts";
import type { Effects } from "../programs/effects.ts";
import type { EventLog } from "../world/event-log.ts";
import { ProcessLife, type SimulatedTime } from "../world/process-life.ts";
import { programAgents, programTasks, type ProgramWorld } from "../programs/program-agent.ts";
import type { Violated } from "../world/account-checks.ts";
import type { SessionAccount } from "../world/watched-storage.ts";
import type { BeginWatch } from "../world/begin-watch.ts";
import type { Stop, StopWatch } from "../world/stop-watch.ts";
import type { Calls, Server } from "./calls.ts";
import type { Coordinator } from "./coordinator-node.ts";
import { SimulatedWatchdog } from "./simulated-watchdog.ts";
import { RunnerConnection } from "./runner-connection.ts";
import type { Worker, WorkWatch } from "./work-watch.ts";

const RESTART_MS_MAX = 3_000;
const AGAIN_MS = 500;
const CLOSE_MS_MAX = 20_000;
/** Graces of an orderly stop: none, one that a task may outlast, and the product's own. */
const GRACES_MS = [0, 1_000, STOP_GRACE_MS] as const;
const POLL_WAIT_MS = 30_000;
const ANSWER_MS = 10_000;

export interface RunnerHost {
  readonly time: SimulatedTime;
  readonly calls: Calls;
  readonly coordinators: readonly [Server<Coordinator>, ...Server<Coordinator>[]];
  readonly dice: Dice;
  readonly log: EventLog;
  readonly effects: Effects;
  readonly watch: WorkWatch;
  readonly stops: StopWatch;
  readonly begins: BeginWatch;
  /** Draws the grace of each orderly stop. */
  readonly stopDice: Dice;
  readonly warmMs: number;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly maxRuns: number;
  /** How long a step may block the event loop; absent where none does. */
  readonly stepBlocksMs: number | undefined;
  /** The claim of a session, as its storage has it. */
  claimOf(sessionId: string): SessionAccount;
  readonly violated: Violated;
  /** A life of the runner has ended without releasing its claims. */
  died(runnerId: string): void;
}

interface Living {
  readonly life: ProcessLife;
  readonly worker: Worker;
  readonly runtime: Runtime;
  readonly loop: PollLoop<PollResponse>;
  readonly runners: Client<typeof RunnerService>;
  readonly connection: RunnerConnection;
  readonly watchdog: SimulatedWatchdog | undefined;
  /** The sessions that the process drives now. */
  readonly driven: ReadonlySet<string>;
  /** The orderly stop under way. */
  stop: Stop | undefined;
}

export class RunnerNode {
  readonly runnerId: string;
  readonly #host: RunnerHost;
  readonly #random: Random;
  #lives = 0;
  #polls = 0;
  #living: Living | undefined;
  #isHealed = false;

  constructor(runnerId: string, host: RunnerHost) {
    this.runnerId = runnerId;
    this.#host = host;
    this.#random = { u32: host.dice.u32 };
    this.#start();
  }

  kill(why: string): void {
    const living = this.#living;
    if (living === undefined) return;
    const { log, time, dice } = this.#host;
    log.add(living.life.name, why);
    this.#living = undefined;
    living.life.end();
    // Deferred, because a call of the runtime may be in progress, and continues until it returns.
    time.scheduler.after(0, undefined, () => vanishRuntime(living.runtime));
    this.#host.died(this.runnerId);
    time.scheduler.after(dice.between(1, RESTART_MS_MAX), undefined, () => this.#start());
  }

  close(): void {
    const living = this.#living;
    if (living === undefined || living.life.isPaused || living.stop !== undefined) return;
    const { life, runtime, loop, runners, connection } = living;
    const { runnerId } = this;
    const { log, stops, stopDice, time } = this.#host;
    const graceMs = stopDice.pick(GRACES_MS);
    log.add(life.name, `closes with a grace of ${graceMs} ms`);
    const stop = stops.stops(life.name, runnerId, time.scheduler.now);
    living.stop = stop;
    loop.withdraw();
    const isHere = (): boolean => this.#living === living;
    life.after(graceMs + CLOSE_MS_MAX, () => isHere() && this.kill("does not close in time"));
    const end = async (): Promise<void> => {
      await runtime.close({ graceMs });
      if (connection.isAsking) stop.spoil();
      stop.over();
      await loop.stop();
      await runners.deregister({ runnerId, process: processOf(life) }, { timeoutMs: 2_000 }).catch(() => {});
      if (isHere()) this.kill("has closed");
    };
    void end();
  }

  pause(ms: number): void {
    const living = this.#living;
    if (living === undefined || living.life.isPaused) return;
    const { log, time } = this.#host;
    log.add(living.life.name, `is paused for ${ms} ms`);
    living.stop?.spoil();
    living.life.pause();
    time.scheduler.after(ms, undefined, () => this.#unpause(living));
  }

  block(ms: number): void {
    const living = this.#living;
    living?.watchdog?.whenBlockable(() => this.#blocks(living, ms));
  }

  #blocks(living: Living, ms: number): void {
    const { log, time, violated, leaseMs } = this.#host;
    const { life, stop } = living;
    const watchdog = living.watchdog!;
    if (!life.isAlive || stop !== undefined || this.#isHealed) return;
    const { limitMs, blockable } = watchdog;
    log.add(life.name, `a step blocks it for ${ms} ms, and may for ${limitMs} ms`);
    // A step may outlive its session here, which the process has let go of.
    const held = blockable
      .filter((sessionId) => living.driven.has(sessionId))
      .map((sessionId) => this.#host.claimOf(sessionId))
      .filter(isHeldBy(this.runnerId));
    life.pause();
    watchdog.block();
    time.scheduler.after(ms, undefined, () => {
      if (!life.isAlive || !life.isPaused) return;
      if (held.length > 0 && ms > limitMs + 2 * leaseMs)
        violated("O5", `${life.name} goes on, and its step blocked it for ${ms} of ${limitMs} ms`);
      // It may have let go of some in the turn in which the step began.
      for (const { sessionId, row, owner } of held.filter((each) => living.driven.has(each.sessionId)))
        if (row !== undefined && !isEnded(row.status) && owner !== undefined && owner !== this.runnerId)
          violated("O5", `${sessionId}: ${owner} holds it, and a step of ${life.name} has only blocked`);
      this.#unpause(living);
    });
  }

  heal(): void {
    this.#isHealed = true;
    if (this.#living !== undefined) this.#unpause(this.#living);
  }

  dismantle(): void {
    if (this.#living === undefined) return;
    this.#living.life.end();
    vanishRuntime(this.#living.runtime);
  }

  #unpause({ life, worker }: Living): void {
    if (!life.isAlive || !life.isPaused) return;
    this.#host.log.add(life.name, "continues");
    worker.wokeAt = this.#host.time.scheduler.now;
    life.unpause();
  }

  #start(): void {
    const { time, calls, coordinators, log, watch, warmMs, concurrency, leaseMs, maxRuns, violated } =
      this.#host;
    const { runnerId } = this;
    const life = new ProcessLife(`${runnerId}.${++this.#lives}`, time);
    log.add(life.name, "starts");
    const renewedAgoMs = (): number | undefined => watchdog?.renewedAgoMs();
    const driven = new Set<string>();
    const worker: Worker = { life, runnerId, wokeAt: -Infinity, renewedAgoMs };
    const world = this.#world(life);
    const tasks = programTasks(world);
    const agents = programAgents(world, tasks);
    const connection = new RunnerConnection({
      runnerId,
      life,
      calls,
      coordinators,
      log,
      now: () => time.scheduler.now,
      failed: () => {
        this.#host.stops.failed(life.name, time.scheduler.now);
        living.stop?.spoil();
      },
    });
    const watchdog =
      this.#host.stepBlocksMs === undefined
        ? undefined
        : new SimulatedWatchdog({
            scheduler: time.scheduler,
            life,
            stepBlocksMs: this.#host.stepBlocksMs,
            renew: connection.renewInThread,
            end: () => this.kill("is ended by its watchdog"),
          });
    const clock = { ...life.clock, now: () => connection.time.now() };
    const runners: Client<typeof RunnerService> = connection.client(RunnerService);
    const remote = new RemoteStorage(connection as unknown as CoordinatorConnection);
    const fewer = (): void => life.immediate(() => loop.slotFreed());
    const storage = new DispatchedStorage(remote, fewer);
    const runtime = createRuntime({
      storage,
      agents,
      tasks,
      clock,
      random: this.#random,
      immediate: life.immediate,
      owner: runnerId,
      leaseMs,
      adopt: true,
      dispatched: { claimAgeMs: CLAIM_AGE_MS },
      development: false,
      warmMs,
      concurrency,
      tracer: {
        trace: (event) => {
          if (event.type === "session_started") driven.add(event.sessionId);
          if (event.type === "session_ended" || event.type === "session_released")
            driven.delete(event.sessionId);
          if (event.type === "session_released") this.#host.stops.released(life.name, event.sessionId);
          watch.trace(worker, event);
        },
      },
      ...(watchdog === undefined ? {} : { watchdog: watchdog as unknown as Watchdog }),
    });
    const offered = agents.map(({ name, version }) => ({ name, version, tags: [], requiredVariables: [] }));
    const loop = new PollLoop<PollResponse>({
      clock,
      random: this.#random,
      newId: () => `${life.name}-${++this.#polls}`,
      free: () => {
        if (living.stop !== undefined) return 0;
        if (storage.held >= maxRuns) runtime.releaseWaiting();
        return Math.max(0, maxRuns - storage.held);
      },
      poll: ({ pollId, number, ackPollId, ackCommandIds, free }: Poll, signal) =>
        connection.time.asking(() =>
          connection.ask(() =>
            runners.poll(
              {
                runnerId,
                pollId,
                process: processOf(life),
                number: BigInt(number),
                ackCommandIds: [...ackCommandIds],
                free,
                agents: offered,
                taskKinds: [],
                waitMs: POLL_WAIT_MS,
                withArrivals: true,
                ...defined({ ackPollId }),
              },
              { signal, timeoutMs: POLL_WAIT_MS + ANSWER_MS },
            ),
          ),
        ),
      take: ({ claims, arrivals, commands }) => {
        for (const claim of claims) {
          this.#host.begins.received(claim.sessionId, Number(claim.token), life.name);
          storage.hold(claim.sessionId, Number(claim.token));
          runtime.drive(givenBy(claim, connection.time));
        }
        for (const notice of arrivals) storage.arrived(notice, sentWith(notice));
        return commands.map(({ commandId }) => commandId);
      },
      register: () => register(),
      lost: () => {},
      back: () => {},
      refused: (error) => {
        // A late registration of the process before it may have reached a coordinator first. Its supervisor
        // starts it again.
        if (error.code === "duplicate_runner") this.kill("is told that another process is this runner");
        else violated("O3", `${life.name} was refused: ${error.message}`);
      },
    });
    const register = async (): Promise<void> => {
      const runner = {
        protocol: 1,
        hostname: runnerId,
        behaviourFlags: BEHAVIOUR_FLAGS,
        project: "",
        process: processOf(life),
        labels: {},
        refusedAgents: [],
        agents: offered,
      };
      await connection.time.asking(() =>
        connection.ask(() => runners.register({ ...runner, taskKinds: [], maxRuns })),
      );
    };
    const living: Living = {
      life,
      worker,
      runtime,
      loop,
      runners,
      connection,
      watchdog,
      driven,
      stop: undefined,
    };
    this.#living = living;
    const begin = (): void =>
      void register().then(
        () => loop.start(),
        () => life.after(AGAIN_MS, begin),
      );
    begin();
  }

  #world(life: ProcessLife): ProgramWorld {
    const { effects } = this.#host;
    return {
      begin: ({ sessionId, taskId, attempt }, node, behaviour) =>
        effects.begin({ sessionId, taskId, attempt, life: life.name, owner: this.runnerId }, node, behaviour),
      sleep: (ms) => life.sleep(ms),
      ended: ({ sessionId }, node, end) => effects.ended(sessionId, node, end),
    };
  }
}

function isHeldBy(runnerId: string): (account: SessionAccount) => boolean {
  return ({ owner }) => owner === runnerId;
}

/** As long as a coordinator wants it. */
function processOf({ name }: ProcessLife): string {
  return name.padEnd(32, ".");
}
