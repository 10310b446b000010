// A runner of a fleet: the real runtime over the port of a fleet, on a machine of its own with its own clocks.
//
//   M1. A process that ended is started again as the same runner some time later. Nobody releases what it held.
//   M2. A pause ends by itself; what went on in the process goes on, knowing nothing of it.

import { createRuntime, type Runtime } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import type { Random } from "@holdfast/core";
import type { Dice } from "../dice.ts";
import type { Effects } from "../effects.ts";
import type { EventLog } from "../event-log.ts";
import { ProcessLife, type SimulatedTime } from "../process-life.ts";
import { programAgents, programTasks, type ProgramWorld } from "../program-agent.ts";
import type { Calls, Server } from "./calls.ts";
import type { Coordinator } from "./coordinator-node.ts";
import { RunnerStorage } from "./runner-storage.ts";
import type { Worker, WorkWatch } from "./work-watch.ts";

const RESTART_MS_MAX = 3_000;
const CLOSE_MS_MAX = 20_000;

export interface RunnerHost {
  readonly time: SimulatedTime;
  readonly calls: Calls;
  readonly coordinators: readonly [Server<Coordinator>, ...Server<Coordinator>[]];
  readonly dice: Dice;
  readonly log: EventLog;
  readonly effects: Effects;
  readonly watch: WorkWatch;
  readonly warmMs: number;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly maxRuns: number;
  /** A life of it has ended, leaving what it held. */
  died(runnerId: string): void;
}

interface Living {
  readonly life: ProcessLife;
  readonly worker: Worker;
  readonly storage: RunnerStorage;
  readonly runtime: Runtime;
  isClosing: boolean;
}

export class RunnerNode {
  readonly runnerId: string;
  readonly #host: RunnerHost;
  readonly #random: Random;
  #lives = 0;
  #living: Living | undefined;

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
    // Not from within one of its calls, which go on until they return.
    time.scheduler.after(0, undefined, () => vanishRuntime(living.runtime));
    this.#host.died(this.runnerId);
    time.scheduler.after(dice.between(1, RESTART_MS_MAX), undefined, () => this.#start());
  }

  /** Ctrl-C: it takes nothing more, and gives back what it holds. */
  close(): void {
    const living = this.#living;
    if (living === undefined || living.life.isPaused || living.isClosing) return;
    const { life, storage, runtime } = living;
    this.#host.log.add(life.name, "closes");
    living.isClosing = true;
    storage.stopPolling();
    life.after(CLOSE_MS_MAX, () => this.#living === living && this.kill("does not close in time"));
    void runtime
      .close()
      .then(() => storage.deregister().catch(() => {}))
      .then(() => this.#living === living && this.kill("has closed"));
  }

  pause(ms: number): void {
    const living = this.#living;
    if (living === undefined || living.life.isPaused) return;
    const { log, time } = this.#host;
    log.add(living.life.name, `is paused for ${ms} ms`);
    living.life.pause();
    time.scheduler.after(ms, undefined, () => this.#goOn(living));
  }

  heal(): void {
    if (this.#living !== undefined) this.#goOn(this.#living);
  }

  dismantle(): void {
    if (this.#living === undefined) return;
    this.#living.life.end();
    vanishRuntime(this.#living.runtime);
  }

  #goOn({ life, worker }: Living): void {
    if (!life.isAlive || !life.isPaused) return;
    this.#host.log.add(life.name, "goes on");
    worker.wokeAt = this.#host.time.scheduler.now;
    life.goOn();
  }

  #start(): void {
    const { time, calls, coordinators, dice, log, watch, warmMs, concurrency, leaseMs, maxRuns } = this.#host;
    const { runnerId } = this;
    const life = new ProcessLife(`${runnerId}.${++this.#lives}`, time);
    log.add(life.name, "starts");
    const worker: Worker = { life, runnerId, wokeAt: -Infinity };
    const world = this.#world(life);
    const tasks = programTasks(world);
    const agents = programAgents(world, tasks);
    const storage = new RunnerStorage({
      runnerId,
      life,
      calls,
      coordinators,
      dice,
      log,
      agents: agents.map(({ name }) => name),
      maxRuns,
      live: () => runtime.live,
    });
    const runtime: Runtime = createRuntime({
      storage,
      agents,
      tasks,
      clock: { ...life.clock, now: () => storage.now() },
      random: this.#random,
      immediate: life.immediate,
      owner: runnerId,
      leaseMs,
      development: false,
      warmMs,
      concurrency,
      tracer: { trace: (event) => watch.trace(worker, event) },
    });
    this.#living = { life, worker, storage, runtime, isClosing: false };
    void storage.run();
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
