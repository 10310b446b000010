// A fleet: runners on machines of their own, coordinators, and the network between them, over one storage; and what goes wrong
// with them, until it is told to stop.
//
// Who asks from outside asks a coordinator, over the same network.

import type { AgentStorage } from "@holdfast/core";
import type { Desk } from "../clients.ts";
import type { ConnectionFaults } from "../connection.ts";
import type { Dice } from "../dice.ts";
import type { Effects } from "../effects.ts";
import type { EventLog } from "../event-log.ts";
import type { Site } from "../machine.ts";
import type { SimulatedTime } from "../process-life.ts";
import type { Scheduler } from "../scheduler.ts";
import type { Swarm } from "../swarm.ts";
import type { SessionAccount, Violated } from "../watched-storage.ts";
import { Calls } from "./calls.ts";
import { CoordinatorNode, type Coordinator } from "./coordinator-node.ts";
import type { FleetSwarm } from "./fleet-swarm.ts";
import { Network } from "./network.ts";
import { RunnerNode } from "./runner-node.ts";
import { WorkWatch } from "./work-watch.ts";

const HOUR_MS = 60 * 60_000;
/** What those outside wait for an answer: they ask again before. */
const CLIENT_TIMEOUT_MS = 5_000;
const OUTSIDE = "user";

export interface FleetOptions {
  readonly scheduler: Scheduler;
  readonly storage: AgentStorage;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly effects: Effects;
  readonly swarm: Swarm;
  readonly fleetSwarm: FleetSwarm;
  readonly violated: Violated;
  /** Epoch milliseconds by the storage's clock. */
  wall(): number;
  drawLateness(): number;
  storageFaults(): ConnectionFaults;
  accounts(): Iterable<SessionAccount>;
  isMinimal(sessionId: string): boolean;
}

export class Fleet implements Site {
  readonly count: number;
  readonly leaseMs: number;
  readonly #watch: WorkWatch;
  readonly #options: FleetOptions;
  readonly #network: Network;
  readonly #calls: Calls;
  readonly #coordinators: readonly [CoordinatorNode, ...CoordinatorNode[]];
  readonly #runners: readonly RunnerNode[];
  /** How far the clocks of runners are from the storage's. */
  readonly #offsets = new Map<string, number>();
  #isHealed = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { scheduler, dice, log, fleetSwarm, violated, accounts, isMinimal, wall } = options;
    this.count = fleetSwarm.runners;
    this.leaseMs = fleetSwarm.leaseMs;
    this.#watch = new WorkWatch({ scheduler, violated, accounts, isMinimal, wall, leaseMs: this.leaseMs });
    this.#network = new Network({
      scheduler,
      dice,
      log,
      faults: () =>
        this.#isHealed ? { delayMs: fleetSwarm.delayMs, dropped: 0, duplicated: 0, slow: 0 } : fleetSwarm,
    });
    this.#calls = new Calls(this.#network, scheduler);
    const [first, ...others] = Array.from({ length: fleetSwarm.coordinators }, (_, i) =>
      this.#coordinator(`c${i}`),
    );
    this.#coordinators = [first!, ...others];
    this.#runners = Array.from({ length: fleetSwarm.runners }, (_, i) => this.#runner(`r${i}`));
    this.#unleash();
  }

  desk(): Desk {
    const { dice } = this.#options;
    const coordinator = dice.pick(this.#coordinators);
    const ask = <T>(what: string, of: (desk: Desk) => Promise<T>): Promise<T> =>
      this.#calls.call<Coordinator, T>({
        from: OUTSIDE,
        life: undefined,
        to: coordinator,
        what,
        timeoutMs: CLIENT_TIMEOUT_MS,
        ask: ({ desk }) => of(desk),
      });
    return {
      name: `${OUTSIDE}>${coordinator.name}`,
      start: (...asked) => ask("start", (desk) => desk.start(...asked)),
      signal: (...asked) => ask("signal", (desk) => desk.signal(...asked)),
      answer: (...asked) => ask("answer", (desk) => desk.answer(...asked)),
      cancel: (...asked) => ask("cancel", (desk) => desk.cancel(...asked)),
      pause: (...asked) => ask("pause", (desk) => desk.pause(...asked)),
      unpause: (...asked) => ask("unpause", (desk) => desk.unpause(...asked)),
      setBudget: (...asked) => ask("set budget", (desk) => desk.setBudget(...asked)),
    };
  }

  kill(index: number, why: string): void {
    this.#runnerOf(index).kill(why);
  }

  close(index: number): void {
    this.#runnerOf(index).close();
  }

  pause(index: number, ms: number): void {
    this.#runnerOf(index).pause(ms);
  }

  /** Coordinators look by themselves. */
  recover(): void {}

  /** What claims say when it is stored: whose it is now. */
  claimed(sessionId: string, owner: string): void {
    this.#watch.claimed(sessionId, owner);
  }

  /** All clocks are right, too. */
  heal(): void {
    this.#isHealed = true;
    this.#network.heal();
    this.#offsets.clear();
    for (const node of [...this.#coordinators, ...this.#runners]) node.heal();
  }

  dismantle(): void {
    for (const node of [...this.#coordinators, ...this.#runners]) node.dismantle();
  }

  #runnerOf(index: number): RunnerNode {
    const runner = this.#runners[index];
    if (runner === undefined) throw new Error(`there is no runner ${index}`);
    return runner;
  }

  /** What it sent may still be under way where messages or those they reach are slow. */
  #died(runnerId: string): void {
    const { slow, coordinatorPauseEveryMs } = this.#options.fleetSwarm;
    if (slow === 0 && coordinatorPauseEveryMs === 0) this.#watch.died(runnerId);
  }

  #time(name: string): SimulatedTime {
    const { scheduler, dice, fleetSwarm, wall, drawLateness } = this.#options;
    const isRunner = name.startsWith("r");
    return {
      scheduler,
      rate: isRunner ? 1 + dice.pick([-1, 0, 1]) * fleetSwarm.clockDrift : 1,
      wall: () => wall() + (this.#offsets.get(name) ?? 0),
      drawLateness,
    };
  }

  #coordinator(name: string): CoordinatorNode {
    const { storage, dice, log, fleetSwarm, storageFaults } = this.#options;
    return new CoordinatorNode(name, {
      time: this.#time(name),
      storage,
      dice,
      log,
      leaseMs: fleetSwarm.leaseMs,
      faults: storageFaults,
      isNoticeLost: () => !this.#isHealed && fleetSwarm.noticeLost > 0 && dice.chance(fleetSwarm.noticeLost),
    });
  }

  #runner(runnerId: string): RunnerNode {
    const { dice, log, effects, swarm, fleetSwarm, violated } = this.#options;
    return new RunnerNode(runnerId, {
      time: this.#time(runnerId),
      calls: this.#calls,
      coordinators: this.#coordinators,
      dice,
      log,
      effects,
      watch: this.#watch,
      warmMs: swarm.warmMs,
      concurrency: swarm.concurrency,
      leaseMs: fleetSwarm.leaseMs,
      maxRuns: fleetSwarm.maxRuns,
      violated,
      died: () => this.#died(runnerId),
    });
  }

  // ---- what goes wrong ---------------------------------------------------------------------------------------------

  #unleash(): void {
    const { dice, fleetSwarm } = this.#options;
    const { leaseMs } = fleetSwarm;
    const runner = (): RunnerNode => this.#runnerOf(dice.between(0, this.count - 1));
    const coordinator = (): CoordinatorNode => dice.pick(this.#coordinators);
    const pauseMs = (): number =>
      dice.pick([100, 2_000, leaseMs + 1, leaseMs + dice.between(0, 1_000), 3 * leaseMs]);
    this.#every(fleetSwarm.cutEveryMs, () => this.#cut());
    this.#every(fleetSwarm.coordinatorKillEveryMs, () => coordinator().kill("is killed"));
    this.#every(fleetSwarm.coordinatorPauseEveryMs, () => coordinator().pause(pauseMs()));
    this.#every(fleetSwarm.runnerClockJumpEveryMs, () => this.#jump(runner().runnerId));
  }

  #cut(): void {
    const { dice, fleetSwarm } = this.#options;
    const runners = this.#runners.map(({ runnerId }) => runnerId) as [string, ...string[]];
    const coordinators = this.#coordinators.map(({ name }) => name) as [string, ...string[]];
    const ms = dice.pick([300, 4_000, fleetSwarm.leaseMs, 2 * fleetSwarm.leaseMs]);
    const runner = dice.pick(runners);
    const coordinator = dice.pick(coordinators);
    switch (dice.pick(["one_way", "other_way", "symmetric", "runner", "coordinator"])) {
      case "one_way":
        return this.#network.cut([runner], [coordinator], ms);
      case "other_way":
        return this.#network.cut([coordinator], [runner], ms);
      case "symmetric":
        return this.#cutBoth([runner], [coordinator], ms);
      case "runner":
        return this.#cutBoth([runner], coordinators, ms);
      case "coordinator":
        return this.#cutBoth([coordinator], [...runners, OUTSIDE], ms);
    }
  }

  #cutBoth(some: readonly string[], others: readonly string[], ms: number): void {
    this.#network.cut(some, others, ms);
    this.#network.cut(others, some, ms);
  }

  #jump(runnerId: string): void {
    const { dice, log } = this.#options;
    const offset = dice.pick([0, dice.between(-HOUR_MS, HOUR_MS), dice.between(-2_000, 2_000)]);
    log.add(runnerId, `its wall clock is ${offset} ms from the right time`);
    this.#offsets.set(runnerId, offset);
  }

  #every(meanMs: number, strike: () => void): void {
    if (meanMs === 0) return;
    const { scheduler, dice } = this.#options;
    scheduler.after(dice.between(1, 2 * meanMs), undefined, () => {
      if (this.#isHealed) return;
      strike();
      this.#every(meanMs, strike);
    });
  }
}
