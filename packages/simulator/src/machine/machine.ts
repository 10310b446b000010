// `Machine`: the simulated machine, with processes that run the real runtime over one storage, and their
// faults.
//
//   - A process is started again some time after its end, and then resumes the sessions that are due.
//   - The claims of a dead process are released before it is started again, as a file's owner does for a cut
//     connection. A process that is paused for longer than a lease loses its claims as well. After the pause
//     it continues for a while without noticing, until its supervisor ends it.
//   - A process that is closed drains within a grace, hands its running attempts over, and releases its
//     claims (C3).
//   - One process may own the storage. When it ends, requests of the others to it are lost, and nobody
//     reaches the storage until another living process owns it. Claims of living processes stay (C4).

import { type AgentStorage, type Change, type Random, STOP_GRACE_MS } from "@holdfast/core";
import { createRuntime, type Agent, type Runtime } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import type { Desk } from "./clients.ts";
import { Connection, type ConnectionFaults } from "../world/connection.ts";
import type { Dice } from "../world/dice.ts";
import type { Effects } from "../programs/effects.ts";
import type { EventLog } from "../world/event-log.ts";
import type { Victims } from "./fault-times.ts";
import { programAgents, programTasks, type ProgramWorld } from "../programs/program-agent.ts";
import type { BeginWatch } from "../world/begin-watch.ts";
import type { Stop, StopWatch } from "../world/stop-watch.ts";
import { ProcessLife, type SimulatedTime } from "../world/process-life.ts";
import { agentOf } from "../programs/program.ts";

/** A pause that is longer costs a process its claims. */
const LEASE_MS = 1_000;
const ZOMBIE_MS_MAX = 3_000;
const RESTART_MS_MAX = 400;
const CLOSE_MS_MAX = 5_000;
/** Graces of an orderly stop: none, one that a task may outlast, and the product's own. */
const GRACES_MS = [0, 0, 300, STOP_GRACE_MS] as const;
const RECOVER_AGAIN_MS = 500;
/** The longest time until another process owns the storage. */
const OWNERLESS_MS_MAX = 300;

/** Where the sessions of a simulation run. */
export interface Site extends Victims {
  /** A receiver for clients' requests, if there is one. */
  desk(): Desk | undefined;
  /** End all faults. */
  heal(): void;
  /** The end of the simulation. */
  dismantle(): void;
  /** A session was claimed and belongs to `owner` now; `before` had not released it. */
  claimed?(sessionId: string, owner: string, before: string | undefined): void;
  /** Epoch milliseconds, by the processes that serve the storage; absent where any clock may jump. */
  now?(): number;
}

export interface MachineOptions {
  readonly time: SimulatedTime;
  readonly storage: AgentStorage;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly effects: Effects;
  readonly stops: StopWatch;
  readonly begins: BeginWatch;
  /** Draws the grace of each orderly stop. */
  readonly stopDice: Dice;
  readonly warmMs: number;
  readonly isScheduled: boolean;
  readonly hasOwner: boolean;
  readonly concurrency: number;
  faults(): ConnectionFaults;
}

/** A process while it lives. */
interface Running {
  readonly index: number;
  readonly life: ProcessLife;
  readonly runtime: Runtime;
  readonly desk: Desk;
  readonly connection: Connection;
  hasLostClaims: boolean;
  /** Somebody whose request to run due sessions has failed tries again soon. */
  isRecoveringSoon: boolean;
  /** The orderly stop under way. */
  stop: Stop | undefined;
}

export class Machine implements Site {
  readonly leaseMs = LEASE_MS;
  readonly #options: MachineOptions;
  readonly #random: Random;
  readonly #running: (Running | undefined)[] = [];
  #lives = 0;
  /** The process that owns the storage. */
  #owner: Running | undefined;

  constructor(options: MachineOptions) {
    this.#options = options;
    this.#random = { u32: options.dice.u32 };
  }

  /** The desk of a live process that is not paused, if there is one. */
  desk(): Desk | undefined {
    return this.#pick()?.desk;
  }

  #pick(): Running | undefined {
    const [first, ...others] = this.#running.filter((each) => each?.life.isPaused === false) as Running[];
    return first === undefined ? undefined : this.#options.dice.pick([first, ...others]);
  }

  start(index: number): void {
    const { time, storage, dice, log, warmMs, concurrency, isScheduled } = this.#options;
    const life = new ProcessLife(`p${index}.${++this.#lives}`, time);
    log.add(life.name, "starts");
    const connection = new Connection(life, {
      storage,
      dice,
      log,
      scheduler: time.scheduler,
      faults: () => this.#faults(),
      claimed: (sessionId, token) => this.#options.begins.received(sessionId, token, life.name),
      failed: () => {
        this.#options.stops.failed(life.name, time.scheduler.now);
        running.stop?.spoil();
      },
      crash: () => this.kill(index, "crashes at a commit"),
    });
    const world = this.#world(life);
    const tasks = programTasks(world);
    const agents = new Map(programAgents(world, tasks).map((agent) => [agent.name, agent]));
    const runtime = createRuntime({
      storage: connection,
      agents: [...agents.values()],
      tasks,
      clock: life.clock,
      random: this.#random,
      immediate: life.immediate,
      owner: life.name,
      development: false,
      tracer: {
        trace: (event) => {
          if (event.type === "session_released") this.#options.stops.released(life.name, event.sessionId);
        },
      },
      warmMs,
      concurrency,
      schedules: isScheduled,
    });
    const running: Running = {
      index,
      life,
      runtime,
      desk: deskOf(life.name, runtime, agents),
      connection,
      hasLostClaims: false,
      isRecoveringSoon: false,
      stop: undefined,
    };
    this.#running[index] = running;
    if (this.#options.hasOwner) {
      life.onEnd(this.#options.stops.lives(life.name));
      this.#owner ??= running;
    }
    this.#recover(running);
  }

  #faults(): ConnectionFaults {
    const faults = this.#options.faults();
    return this.#options.hasOwner && this.#owner === undefined ? { ...faults, refused: 1 } : faults;
  }

  #ownerEnds(): void {
    const { stopDice, time, log } = this.#options;
    this.#owner = undefined;
    for (const running of this.#running) running?.connection.breakOff();
    time.scheduler.after(stopDice.between(1, OWNERLESS_MS_MAX), undefined, () => {
      const [first, ...others] = this.#running.filter((each) => each !== undefined);
      if (this.#owner !== undefined || first === undefined) return;
      this.#owner = stopDice.pick([first, ...others]);
      log.add(this.#owner.life.name, "owns the storage");
    });
  }

  recover(): void {
    const some = this.#pick();
    if (some !== undefined) this.#recover(some);
  }

  kill(index: number, why: string): void {
    const running = this.#running[index];
    if (running === undefined) return;
    this.#options.log.add(running.life.name, why);
    this.#end(running);
    // Deferred, because a call of the runtime may be in progress, and continues until it returns.
    this.#options.time.scheduler.after(0, undefined, () => vanishRuntime(running.runtime));
  }

  close(index: number): void {
    const running = this.#running[index];
    if (running === undefined || running.life.isPaused || running.stop !== undefined) return;
    const { stops, stopDice, log, time } = this.#options;
    const { life } = running;
    const graceMs = stopDice.pick(GRACES_MS);
    log.add(life.name, `closes with a grace of ${graceMs} ms`);
    running.stop = stops.stops(life.name, life.name, time.scheduler.now);
    const giveUp = life.after(graceMs + CLOSE_MS_MAX, () => this.kill(index, "does not close in time"));
    void running.runtime.close({ graceMs }).then(() => {
      giveUp();
      if (!life.isAlive) return;
      running.stop?.over();
      this.kill(index, "has closed");
    });
  }

  pause(index: number, ms: number): void {
    const running = this.#running[index];
    if (running === undefined || running.life.isPaused) return;
    const { log, time } = this.#options;
    log.add(running.life.name, `is paused for ${ms} ms`);
    running.stop?.spoil();
    running.life.pause();
    time.scheduler.after(LEASE_MS, undefined, () => {
      if (!running.life.isAlive || !running.life.isPaused) return;
      this.#release(running); // As the owner of a file does for a cut connection.
      running.hasLostClaims = true;
      this.recover(); // Somebody else takes over.
    });
    time.scheduler.after(ms, undefined, () => this.#unpause(running));
  }

  heal(): void {
    for (const running of this.#running) if (running !== undefined) this.#unpause(running);
  }

  dismantle(): void {
    for (const running of this.#running) {
      if (running === undefined) continue;
      running.life.end();
      vanishRuntime(running.runtime);
    }
  }

  get count(): number {
    return this.#running.length;
  }

  #recover(running: Running): void {
    const { life, runtime } = running;
    runtime.recover().catch(() => {
      // One retry serves all that failed: an outage would gather thousands, each with requests of its own.
      if (running.isRecoveringSoon) return;
      running.isRecoveringSoon = true;
      life.after(RECOVER_AGAIN_MS, () => {
        running.isRecoveringSoon = false;
        this.#recover(running);
      });
    });
  }

  #unpause(running: Running): void {
    const { life, index } = running;
    const { dice, log, time } = this.#options;
    if (!life.isAlive || !life.isPaused) return;
    log.add(life.name, "continues");
    life.unpause();
    if (!running.hasLostClaims) return;
    time.scheduler.after(dice.between(0, ZOMBIE_MS_MAX), life, () =>
      this.kill(index, "is ended: its claims are gone"),
    );
  }

  #end(running: Running): void {
    const { dice, time } = this.#options;
    const { index, life, connection } = running;
    life.end();
    this.#running[index] = undefined;
    if (this.#owner === running) this.#ownerEnds();
    const detectedMs = dice.between(0, 20);
    time.scheduler.after(detectedMs, undefined, () => {
      connection.cut();
      this.#release(running); // As the owner of a file does for a cut connection.
    });
    time.scheduler.after(detectedMs + dice.between(1, RESTART_MS_MAX), undefined, () => this.start(index));
  }

  #release({ connection, life }: Running): void {
    const releases: Change[] = [...connection.claims].map(([sessionId, token]) => ({
      type: "release_claim",
      sessionId,
      token,
    }));
    connection.claims.clear();
    this.#options.log.add(life.name, `loses ${releases.length} claims`);
    if (releases.length > 0) void this.#options.storage.commit(releases, this.#options.time.wall());
  }

  #world(life: ProcessLife): ProgramWorld {
    const { effects } = this.#options;
    return {
      begin: ({ sessionId, taskId, attempt }, node, behaviour) =>
        effects.begin({ sessionId, taskId, attempt, life: life.name, owner: life.name }, node, behaviour),
      sleep: (ms) => life.sleep(ms),
      ended: ({ sessionId }, node, end) => effects.ended(sessionId, node, end),
    };
  }
}

function deskOf(name: string, runtime: Runtime, agents: ReadonlyMap<string, Agent>): Desk {
  return {
    name,
    runtime,
    putSchedule: (input, timing) =>
      runtime.schedule({ ...timing, start: { agent: agents.get(agentOf(input))!, input } }),
    start: (program, options) => runtime.start(agents.get(agentOf(program))!, program, options),
    signal: (...asked) => runtime.signal(...asked),
    answer: (...asked) => runtime.answer(...asked),
    cancel: (...asked) => runtime.cancel(...asked),
    pause: (...asked) => runtime.pause(...asked),
    unpause: (...asked) => runtime.unpause(...asked),
    setBudget: (...asked) => runtime.setBudget(...asked),
    grantWindow: (...asked) => runtime.grantWindow(...asked),
    releaseLost: (...asked) => runtime.releaseLost(...asked),
  };
}
