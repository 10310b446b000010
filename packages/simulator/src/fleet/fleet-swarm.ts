// `FleetSwarm`: the size of a fleet and its faults, drawn for each seed in addition to the draws of every
// simulation.

import { LIMITS } from "@holdfast/core";
import type { Dice } from "../world/dice.ts";
import type { Swarm } from "../world/swarm.ts";
import type { NetworkFaults } from "./network.ts";

/**
 * Units as in `Swarm`: a probability per occasion, a time in milliseconds, a rate as the mean interval, where
 * 0 is never.
 */
export interface FleetSwarm extends NetworkFaults {
  readonly runners: number;
  readonly coordinators: number;
  readonly leaseMs: number;
  /** The number of sessions that each runner may run at a time. */
  readonly maxRuns: number;
  /** The time during which faults occur. */
  readonly safetyMs: number;
  /** A coordinator does not receive the notice of an arrival. */
  readonly noticeLost: number;
  readonly cutEveryMs: number;
  readonly runnerKillEveryMs: number;
  readonly runnerPauseEveryMs: number;
  readonly runnerCloseEveryMs: number;
  readonly coordinatorKillEveryMs: number;
  readonly coordinatorPauseEveryMs: number;
  readonly runnerClockJumpEveryMs: number;
  /**
   * Steps of the wall clock of a single coordinator. Several coordinators use their database's clock, which
   * does not jump here.
   */
  readonly storeClockJumpEveryMs: number;
  /** How far a runner's clocks are from the right rate. */
  readonly clockDrift: number;
  /** Runners get no answer of any coordinator for longer than a lease. */
  readonly outageEveryMs: number;
  /** A step blocks the event loop of its runner for longer than a lease. */
  readonly blockEveryMs: number;
  /** How long a step may block, if it has no time-out. */
  readonly stepBlocksMs: number;
}

/** @param outageDice, blockDice of their own, so that a seed without these faults is what it was before there were any. */
export function drawFleetSwarm(dice: Dice, outageDice: Dice, blockDice: Dice): FleetSwarm {
  const rate = (...everyMs: [number, ...number[]]): number => (dice.chance(0.35) ? dice.pick(everyMs) : 0);
  const probability = (...strengths: [number, ...number[]]): number =>
    dice.chance(0.35) ? dice.pick(strengths) : 0;
  const runners = dice.pick([2, 2, 3, 4]);
  const coordinators = dice.pick([1, 1, 1, 2, 3]);
  const leaseMs = dice.pick([6_000, 15_000]);
  const swarm = {
    runners,
    coordinators,
    leaseMs,
    maxRuns: dice.pick([1, 2, 20, 20]),
    safetyMs: dice.pick([2_000, 20_000, 40_000, 90_000]),
    delayMs: dice.pick([0, 1, 20, 300]),
    dropped: probability(0.01, 0.05, 0.3),
    duplicated: probability(0.05, 0.3),
    slow: probability(0.01, 0.05),
    noticeLost: probability(0.3, 1),
    cutEveryMs: rate(2_000, 15_000),
    runnerKillEveryMs: rate(1_000, 8_000),
    runnerPauseEveryMs: rate(3_000, 15_000),
    runnerCloseEveryMs: rate(2_000, 15_000),
    coordinatorKillEveryMs: rate(500, 6_000, 20_000),
    coordinatorPauseEveryMs: rate(3_000, 20_000),
    runnerClockJumpEveryMs: rate(500, 5_000),
    clockDrift: dice.pick([0, 0, 0.01]),
    storeClockJumpEveryMs: coordinators > 1 ? 0 : rate(500, 5_000, 20_000),
    outageEveryMs: outageDice.chance(0.35) ? outageDice.pick([1_000, 5_000, 20_000]) : 0,
    blockEveryMs: blockDice.chance(0.3) ? blockDice.pick([500, 5_000]) : 0,
    stepBlocksMs: blockDice.pick([2 * leaseMs, LIMITS.stepBlocksMs]),
  };
  if (swarm.outageEveryMs + swarm.blockEveryMs === 0) return swarm;
  return { ...swarm, safetyMs: Math.max(swarm.safetyMs, OUTLASTED * swarm.leaseMs) };
}

/** The leases that pass before the faults end, so that an outage or a blocked step comes to its own end. */
const OUTLASTED = 6;

/** A simulation's draws, adapted to a fleet: the processes are its runners, and the correct clock is storage's. */
export function swarmOfFleet(swarm: Swarm, fleet: FleetSwarm | undefined): Swarm {
  if (fleet === undefined) return swarm;
  return {
    ...swarm,
    processes: fleet.runners,
    safetyMs: fleet.safetyMs,
    killEveryMs: fleet.runnerKillEveryMs,
    closeEveryMs: fleet.runnerCloseEveryMs,
    pauseEveryMs: fleet.runnerPauseEveryMs,
    clockJumpEveryMs: 0,
    recoverEveryMs: 0,
  };
}
