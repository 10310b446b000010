// `Fleet`: runners on machines of their own and coordinators over one storage, the network between them, and
// their faults until `heal`.
//
// Clients outside the fleet send their requests to a coordinator over the same network.

import { type AgentStorage, HOUR_MS, type Session } from "@holdfast/core";
import type { Desk } from "../machine/clients.ts";
import type { ConnectionFaults } from "../world/connection.ts";
import type { Dice } from "../world/dice.ts";
import type { Effects } from "../programs/effects.ts";
import type { EventLog } from "../world/event-log.ts";
import type { Site } from "../machine/machine.ts";
import type { SimulatedTime } from "../world/process-life.ts";
import type { Scheduler } from "../world/scheduler.ts";
import type { Swarm } from "../world/swarm.ts";
import type { Violated } from "../world/account-checks.ts";
import type { BeginWatch } from "../world/begin-watch.ts";
import type { StopWatch } from "../world/stop-watch.ts";
import type { SessionAccount } from "../world/watched-storage.ts";
import { Calls } from "./calls.ts";
import { CoordinatorNode, type Coordinator } from "./coordinator-node.ts";
import type { FleetSwarm } from "./fleet-swarm.ts";
import { History } from "./history.ts";
import { Network } from "./network.ts";
import { RunnerNode } from "./runner-node.ts";
import { WorkWatch } from "./work-watch.ts";

/** The time-out of a client's request; the client repeats the request earlier. */
const CLIENT_TIMEOUT_MS = 5_000;
const OUTSIDE = "user";
const LOOK_MS = 2_000;
/** The name of the wall clock that the coordinators use. */
const STORE = "store";

export interface FleetOptions {
  readonly scheduler: Scheduler;
  readonly storage: AgentStorage;
  readonly dice: Dice;
  readonly log: EventLog;
  readonly effects: Effects;
  readonly swarm: Swarm;
  readonly fleetSwarm: FleetSwarm;
  readonly stops: StopWatch;
  readonly begins: BeginWatch;
  /** Draws the grace of each orderly stop. */
  readonly stopDice: Dice;
  /** Draws the outages. */
  readonly outageDice: Dice;
  /** Draws which steps block. */
  readonly blockDice: Dice;
  readonly violated: Violated;
  /** Epoch milliseconds. */
  wall(): number;
  drawLateness(): number;
  storageFaults(): ConnectionFaults;
  accounts(): Iterable<SessionAccount>;
  claimOf(sessionId: string): SessionAccount;
  isMinimal(sessionId: string): boolean;
}

export class Fleet implements Site {
  readonly count: number;
  readonly leaseMs: number;
  readonly #watch: WorkWatch;
  readonly #history: History;
  readonly #options: FleetOptions;
  readonly #network: Network;
  readonly #calls: Calls;
  readonly #coordinators: readonly [CoordinatorNode, ...CoordinatorNode[]];
  readonly #runners: readonly RunnerNode[];
  /** The offsets of the runners' wall clocks and of the coordinators' from the correct time, in milliseconds. */
  readonly #offsets = new Map<string, number>();
  #timesSet = 0;
  #isHealed = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { scheduler, dice, log, fleetSwarm, violated, accounts, isMinimal } = options;
    this.count = fleetSwarm.runners;
    this.leaseMs = fleetSwarm.leaseMs;
    this.#watch = new WorkWatch({
      scheduler,
      violated,
      accounts,
      isMinimal,
      now: () => this.now(),
      timesSet: () => this.#timesSet,
      leaseMs: this.leaseMs,
    });
    this.#history = new History(violated);
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
    this.#lookForResults();
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
      grantWindow: (...asked) => ask("grant window", (desk) => desk.grantWindow(...asked)),
      releaseLost: (...asked) => ask("release lost", (desk) => desk.releaseLost(...asked)),
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

  /** Does nothing: coordinators find due sessions without a request. */
  recover(): void {}

  /** A claim was stored: the session now belongs to `owner`. */
  claimed(sessionId: string, owner: string, before: string | undefined): void {
    const isRunner = this.#runners.some(({ runnerId }) => runnerId === before); // Others hold it for a moment, to ask.
    this.#watch.claimed(sessionId, owner, isRunner ? before : undefined);
  }

  /** Epoch milliseconds: the latest time of any coordinator. */
  now(): number {
    return Math.max(...this.#coordinators.map((coordinator) => coordinator.now()));
  }

  /** The clocks are corrected too, except that the coordinators' clock is never set back. */
  heal(): void {
    this.#isHealed = true;
    this.#watch.healed();
    this.#network.heal();
    const storeMs = Math.max(0, this.#offsets.get(STORE) ?? 0);
    this.#offsets.clear();
    this.#offsets.set(STORE, storeMs);
    this.#timesSet++;
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

  /** The dead runner's requests may still arrive when messages are slow or coordinators pause. */
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
      wall: () => wall() + (this.#offsets.get(isRunner ? name : STORE) ?? 0),
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
      history: this.#history,
      begins: () => this.#watch.coordinatorBegins(),
      renewed: (owner, sessionIds, at) => this.#watch.renewed(owner, sessionIds, at),
      carriesOver: () => void this.#timesSet++,
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
      stops: this.#options.stops,
      begins: this.#options.begins,
      stopDice: this.#options.stopDice,
      warmMs: swarm.warmMs,
      concurrency: swarm.concurrency,
      leaseMs: fleetSwarm.leaseMs,
      maxRuns: fleetSwarm.maxRuns,
      stepBlocksMs: fleetSwarm.blockEveryMs === 0 ? undefined : fleetSwarm.stepBlocksMs,
      claimOf: (sessionId) => this.#options.claimOf(sessionId),
      violated,
      died: () => this.#died(runnerId),
    });
  }

  /** Read a random session's row again and again. */
  #lookForResults(): void {
    const { scheduler, dice, accounts } = this.#options;
    scheduler.after(dice.between(1, 2 * LOOK_MS), undefined, () => {
      const [first, ...others] = [...accounts()].map(({ sessionId }) => sessionId);
      if (first !== undefined) void this.#readResult(dice.pick([first, ...others]));
      this.#lookForResults();
    });
  }

  async #readResult(sessionId: string): Promise<void> {
    const { scheduler, dice } = this.#options;
    const askedAt = scheduler.now;
    try {
      const session = await this.#calls.call<Coordinator, Session | undefined>({
        from: OUTSIDE,
        life: undefined,
        to: dice.pick(this.#coordinators),
        what: `read ${sessionId}`,
        timeoutMs: CLIENT_TIMEOUT_MS,
        ask: (coordinator) => coordinator.read(sessionId),
      });
      if (session !== undefined) this.#history.resultRead(session, askedAt, scheduler.now);
    } catch {
      // There was no answer.
    }
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
    this.#every(fleetSwarm.storeClockJumpEveryMs, () => this.#jump(STORE));
    if (fleetSwarm.outageEveryMs > 0) this.#awaitOutage();
    this.#every(fleetSwarm.blockEveryMs, () => this.#block(), this.#options.blockDice);
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

  #block(): void {
    const { blockDice, fleetSwarm } = this.#options;
    const { leaseMs } = fleetSwarm;
    const ms = blockDice.pick([leaseMs + blockDice.between(1, leaseMs), 3 * leaseMs, 5 * leaseMs]);
    this.#runnerOf(blockDice.between(0, this.count - 1)).block(ms);
  }

  #awaitOutage(): void {
    const { scheduler, outageDice, fleetSwarm } = this.#options;
    scheduler.after(outageDice.between(1, 2 * fleetSwarm.outageEveryMs), undefined, () => {
      if (this.#isHealed) return;
      scheduler.after(this.#outage(), undefined, () => this.#awaitOutage());
    });
  }

  /** Sessions wake and work is queued meanwhile, as clients reach coordinators that run. @returns how long it lasts. */
  #outage(): number {
    const { outageDice: dice, fleetSwarm, log } = this.#options;
    const ms = fleetSwarm.leaseMs + dice.between(1, 2 * fleetSwarm.leaseMs);
    const all = this.#runners.map(({ runnerId }) => runnerId) as [string, ...string[]];
    const runners = dice.pick([all, [dice.pick(all)]]);
    const coordinators = this.#coordinators.map(({ name }) => name);
    log.add("fleet", `has an outage of ${ms} ms`);
    switch (dice.pick(["silence", "answers", "stopped"])) {
      case "silence":
        this.#cutBoth(runners, coordinators, ms);
        break;
      case "answers":
        this.#network.cut(coordinators, runners, ms);
        break;
      case "stopped":
        for (const coordinator of this.#coordinators) coordinator.kill("is stopped", ms);
    }
    return ms;
  }

  #cutBoth(some: readonly string[], others: readonly string[], ms: number): void {
    this.#network.cut(some, others, ms);
    this.#network.cut(others, some, ms);
  }

  #jump(whose: string): void {
    const { dice, log } = this.#options;
    // The coordinators' time follows each step forward, so its steps add up. Nobody relies on a runner's
    // clock.
    const from = whose === STORE ? (this.#offsets.get(STORE) ?? 0) : 0;
    const offset = from + dice.pick([-from, dice.between(-HOUR_MS, HOUR_MS), dice.between(-2_000, 2_000)]);
    log.add(whose, `its wall clock is ${offset} ms from the right time`);
    this.#offsets.set(whose, offset);
    if (whose === STORE) this.#timesSet++;
  }

  #every(meanMs: number, strike: () => void, dice = this.#options.dice): void {
    if (meanMs === 0) return;
    const { scheduler } = this.#options;
    scheduler.after(dice.between(1, 2 * meanMs), undefined, () => {
      if (this.#isHealed) return;
      strike();
      this.#every(meanMs, strike, dice);
    });
  }
}
