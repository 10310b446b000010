// `simulate`: runs one seed, which is a random set of programs under random faults, on the real core and
// runtime, over simulated time.
//
// Phases. *Safety*: the faults of the seed's swarm are on, and every answer of storage is compared with all
// before it. *Liveness*: the faults are healed. Within any 60 simulated seconds some session must change,
// until all have ended or wait for a signal that nobody sends. They have ten minutes for that, and the time
// of their attempts.
// Then each session is judged by its program.
//
//   simulation-1. Everything is decided by the seed: the same seed gives the same log, to the byte.
//   - The first violation ends it.

import { type AgentStorage, decodeJson, type Session, storageWith } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { Clients, type Subject } from "./machine/clients.ts";
import { BeginWatch } from "./world/begin-watch.ts";
import type { ConnectionFaults } from "./world/connection.ts";
import { Dice } from "./world/dice.ts";
import { Effects } from "./programs/effects.ts";
import { EventLog } from "./world/event-log.ts";
import { Fleet, type FleetOptions } from "./fleet/fleet.ts";
import { drawFleetSwarm, swarmOfFleet, type FleetSwarm } from "./fleet/fleet-swarm.ts";
import { isAtRest, judge, judgeSpending } from "./machine/judge.ts";
import { Machine, type Site } from "./machine/machine.ts";
import { Nemesis } from "./machine/fault-times.ts";
import { drawPlainProgram, drawProgram, expectedOf } from "./programs/nodes.ts";
import type { SimulatedTime } from "./world/process-life.ts";
import type { Program } from "./programs/program.ts";
import { Scheduler } from "./world/scheduler.ts";
import { drawSwarm, losesAttempts, type Swarm } from "./world/swarm.ts";
import { StopWatch } from "./world/stop-watch.ts";
import { WatchedStorage } from "./world/watched-storage.ts";

const BEGINS_AT = 1_700_000_000_000;
/** The maximum simulated time without a change of any session; after it the remaining sessions are stuck. */
const LIVENESS_MS = 60_000;
/**
 * The maximum simulated time until all sessions are at rest, besides that of their attempts. One slot may
 * have to run the attempts of all sessions, one after the other.
 */
const LIVENESS_MS_MAX = 600_000;
const STEPS_MAX = 300_000;

export interface SimulationOptions {
  /** Opens an empty storage, by default in memory. Its calls must take effect before they return their promise. */
  readonly openStorage?: () => AgentStorage;
}

export interface Violation {
  /** The promise that was broken; docs/internals/promises.md has its words. */
  readonly promise: string;
  readonly what: string;
}

export interface SimulationReport {
  readonly seed: number;
  /** The first one; none when all went as it must. */
  readonly violation: Violation | undefined;
  readonly sessions: number;
  readonly steps: number;
  /** Milliseconds of simulated time. */
  readonly simulatedMs: number;
  /** The last lines of what happened, or all. */
  log(count?: number): string[];
}

/** Run one seed to its end. Never throws for what the seed finds. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<SimulationReport> {
  return new Simulation(seed, options).run();
}

/** Streams of one seed, so that drawing more of one thing does not change another. */
const STREAM = {
  swarm: 1,
  programs: 2,
  schedule: 3,
  storage: 4,
  machine: 5,
  clients: 6,
  nemesis: 7,
  tasks: 8,
  fleet: 9,
  stops: 10,
  outages: 11,
  blocks: 12,
} as const;

/** Whether a seed is of several machines and a network, instead of one machine: every fifth is. */
export function isFleet(seed: number): boolean {
  return seed % 5 === 4;
}

class Simulation {
  readonly #seed: number;
  readonly #swarm: Swarm;
  readonly #scheduler: Scheduler;
  readonly #log: EventLog;
  readonly #inner: AgentStorage;
  readonly #watched: WatchedStorage;
  readonly #effects: Effects;
  readonly #watches: { readonly stops: StopWatch; readonly begins: BeginWatch };
  readonly #site: Site;
  readonly #clients: Clients;
  readonly #nemesis: Nemesis;
  /** By session id; children are added when they are created. */
  readonly #subjects = new Map<string, Subject>();
  readonly #bornOf = new Set<string>();
  #wallOffsetMs = 0;
  #wallOffsetMaxMs = 0;
  #isHealed = false;
  /** When a session's row changed last. */
  #changedAt = 0;
  #violation: Violation | undefined;

  constructor(seed: number, { openStorage = () => new MemoryStorage() }: SimulationOptions) {
    const dice = (stream: keyof typeof STREAM) => new Dice(seed, STREAM[stream]);
    this.#seed = seed;
    const fleetDice = dice("fleet");
    const outageDice = dice("outages");
    const blockDice = dice("blocks");
    const fleetSwarm = isFleet(seed) ? drawFleetSwarm(fleetDice, outageDice, blockDice) : undefined;
    this.#swarm = swarmOfFleet(drawSwarm(dice("swarm")), fleetSwarm);
    this.#scheduler = new Scheduler(dice("schedule"));
    const scheduler = this.#scheduler;
    this.#log = new EventLog(() => scheduler.now);
    const log = this.#log;
    this.#inner = storageWith(openStorage(), { groupsMax: this.#swarm.groupsMax });
    const violated = (promise: string, what: string): void => this.#violated(promise, what);
    const stops = new StopWatch(violated, (sessionId) => this.#watched.account(sessionId));
    const begins = new BeginWatch(violated);
    this.#watches = { stops, begins };
    this.#watched = new WatchedStorage(this.#inner, violated, {
      recorded: (sessionId, record) => {
        stops.recorded(sessionId, record);
        begins.recorded(sessionId, this.#watched.account(sessionId).token, record);
      },
      servedAt: () => this.#site.now?.(),
      refused: (sessionId) => stops.refused(sessionId),
      changed: (row) => {
        this.#changedAt = scheduler.now;
        stops.changed(row.sessionId, row.status === "paused");
        this.#clients.look(row);
      },
      born: (row) => {
        stops.born(row.sessionId);
        this.#born(row);
      },
      claimed: (sessionId, ...claimed) => {
        begins.claimed(sessionId, this.#watched.account(sessionId).token);
        this.#site.claimed?.(sessionId, ...claimed);
      },
    });
    this.#effects = new Effects({
      dice: dice("tasks"),
      log,
      violated,
      begun: ({ sessionId, taskId, attempt, life }) => {
        const task = Number(taskId.slice(sessionId.length + 1));
        stops.began({ sessionId, task, attempt, life });
        begins.began(sessionId, task, attempt);
      },
      faults: () => (this.#isHealed ? { ...this.#swarm, taskFails: 0, taskHangs: 0 } : this.#swarm),
      isOver: ({ sessionId, taskId, owner: asked }) => {
        const { owner, outcomes } = this.#watched.account(sessionId);
        return owner === asked && outcomes.has(Number(taskId.slice(sessionId.length + 1)));
      },
    });
    const time = this.#time(dice("machine"));
    this.#site =
      fleetSwarm === undefined
        ? this.#machine(time, dice("storage"), dice("stops"))
        : this.#fleet(time, { dice: fleetDice, outageDice, blockDice, stopDice: dice("stops") }, fleetSwarm);
    const site = this.#site;
    const shared = { scheduler, log, swarm: this.#swarm };
    this.#clients = new Clients({
      ...shared,
      isDistant: fleetSwarm !== undefined,
      desk: () => site.desk(),
      dice: dice("clients"),
    });
    this.#nemesis = new Nemesis({
      ...shared,
      victims: site,
      dice: dice("nemesis"),
      jumpTo: (offsetMs) => this.#jumpTo(offsetMs),
    });
    const programs = dice("programs");
    for (let i = 0; i < this.#swarm.sessions; i++) {
      const program = drawProgram(programs, `${i}`);
      const subject = {
        sessionId: `s${i}`,
        program,
        expected: expectedOf(program),
        fails: false,
        isFork: false,
      };
      this.#subjects.set(subject.sessionId, subject);
      this.#clients.begin(subject);
    }
    if (this.#swarm.isScheduled) this.#clients.schedule(drawPlainProgram(programs, "scheduled"));
  }

  #machine(time: SimulatedTime, dice: Dice, stopDice: Dice): Site {
    const { warmMs, isScheduled, hasOwner, concurrency, processes } = this.#swarm;
    const machine = new Machine({
      time,
      storage: this.#watched.storage,
      dice,
      log: this.#log,
      effects: this.#effects,
      ...this.#watches,
      stopDice,
      warmMs,
      isScheduled,
      hasOwner,
      concurrency,
      faults: () => this.#connectionFaults(),
    });
    for (let i = 0; i < processes; i++) machine.start(i);
    return machine;
  }

  #fleet(
    { wall, drawLateness }: SimulatedTime,
    dice: Pick<FleetOptions, "dice" | "outageDice" | "blockDice" | "stopDice">,
    fleetSwarm: FleetSwarm,
  ): Site {
    return new Fleet({
      scheduler: this.#scheduler,
      storage: this.#watched.storage,
      ...dice,
      log: this.#log,
      effects: this.#effects,
      ...this.#watches,
      swarm: this.#swarm,
      fleetSwarm,
      violated: (promise, what) => this.#violated(promise, what),
      accounts: () => this.#watched.accounts.values(),
      claimOf: (sessionId) => this.#watched.account(sessionId),
      isMinimal: (sessionId) => this.#watched.account(sessionId).row?.persistence !== undefined,
      wall,
      drawLateness,
      storageFaults: () => this.#connectionFaults(),
    });
  }

  async run(): Promise<SimulationReport> {
    await this.#until(() => this.#scheduler.now >= this.#swarm.safetyMs || this.#isAtRest());
    this.#heal();
    const endAt = this.#scheduler.now + LIVENESS_MS_MAX - this.#effects.attemptsMs;
    this.#changedAt = this.#scheduler.now;
    await this.#until(
      () =>
        this.#isAtRest() ||
        this.#nextAt > Math.min(this.#changedAt + LIVENESS_MS, endAt + this.#effects.attemptsMs),
    );
    const verdict = {
      storage: this.#inner,
      effects: this.#effects,
      isExact: !losesAttempts(this.#swarm),
      violated: (promise: string, what: string) => this.#violated(promise, what),
    };
    for (const subject of this.#subjects.values()) {
      if (this.#violation !== undefined) break;
      await judge(subject, this.#watched.accounts.get(subject.sessionId), verdict);
    }
    if (this.#violation === undefined) judgeSpending(this.#watched.accounts, verdict.violated);
    this.#site.dismantle();
    await this.#inner.close();
    return {
      seed: this.#seed,
      violation: this.#violation,
      sessions: this.#subjects.size,
      steps: this.#scheduler.steps,
      simulatedMs: this.#scheduler.now,
      log: (count) => this.#log.tail(count),
    };
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (this.#violation === undefined && !isSo()) {
      if (!(await this.#scheduler.step())) return;
      if (this.#scheduler.steps > STEPS_MAX) this.#violated("L3", `no rest after ${STEPS_MAX} steps`);
    }
  }

  get #nextAt(): number {
    return this.#scheduler.nextAt ?? Infinity;
  }

  #isAtRest(): boolean {
    return (
      !this.#clients.isBusy &&
      [...this.#subjects.values()].every((subject) =>
        isAtRest(this.#watched.accounts.get(subject.sessionId)?.row, subject),
      )
    );
  }

  /** S5. Note a new child or fork, or the session of a schedule. Its program is its input. */
  #born({ sessionId, input, depth, parent, resumedFrom, fork }: Session): void {
    if (this.#subjects.has(sessionId)) return;
    const program = decodeJson(input) as Program;
    if (depth === 0) {
      const isFork = fork !== undefined;
      this.#log.add("-", `${sessionId} is ${isFork ? "forked" : "fired"}`);
      this.#subjects.set(sessionId, {
        sessionId,
        program,
        expected: expectedOf(program),
        fails: false,
        isFork,
      });
      return;
    }
    const attempt = Number(resumedFrom ?? 0) + 1;
    const name = `${program.key} of ${parent?.sessionId ?? "nobody"}, attempt ${attempt}`;
    if (this.#bornOf.has(name)) this.#violated("S5", `${sessionId} was asked for before: ${name}`);
    this.#bornOf.add(name);
    const fails = program.end.type === "fails" && attempt <= program.end.times;
    const subject = { sessionId, program, expected: expectedOf(program), fails, isFork: false };
    this.#log.add("-", `${sessionId} is born`, () => name);
    this.#subjects.set(sessionId, subject);
    this.#clients.serve(subject);
  }

  /** End all faults. The wall clock jumps to its latest offset so far, so that no planned time is hours away. */
  #heal(): void {
    this.#log.add("-", "healed");
    this.#isHealed = true;
    this.#clients.unschedule();
    this.#nemesis.stop();
    this.#jumpTo(this.#wallOffsetMaxMs);
    this.#site.heal();
  }

  #connectionFaults(): ConnectionFaults {
    const { latencyMs } = this.#swarm;
    if (this.#isHealed) return { latencyMs, refused: 0, replyLost: 0, crashAtCommit: 0, isFull: false };
    const isFull = this.#nemesis.isStorageFull;
    return { ...this.#swarm, isFull, ...(this.#nemesis.isStorageAway ? { refused: 1 } : {}) };
  }

  #jumpTo(offsetMs: number): void {
    if (offsetMs === this.#wallOffsetMs) return;
    this.#log.add("-", `the wall clock jumps by ${offsetMs - this.#wallOffsetMs} ms`);
    this.#wallOffsetMs = offsetMs;
    this.#wallOffsetMaxMs = Math.max(this.#wallOffsetMaxMs, offsetMs);
  }

  #violated(promise: string, what: string): void {
    this.#log.add("-", `VIOLATED ${promise}`, () => what);
    this.#violation ??= { promise, what };
  }

  #time(dice: Dice): SimulatedTime {
    const { timersLateMs } = this.#swarm;
    return {
      scheduler: this.#scheduler,
      wall: () => BEGINS_AT + this.#scheduler.now + this.#wallOffsetMs,
      drawLateness: () => (timersLateMs === 0 ? 0 : dice.between(0, timersLateMs)),
    };
  }
}
