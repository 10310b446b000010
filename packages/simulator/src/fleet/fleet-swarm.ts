// What a fleet is made of, and what goes wrong in it: drawn anew for each seed, beside what every simulation draws.

import type { Dice } from "../world/dice.ts";
import type { Swarm } from "../world/swarm.ts";
import type { NetworkFaults } from "./network.ts";

/** As in `Swarm`: probabilities per occasion, times in milliseconds, rates as means between two occurrences; 0 is never. */
export interface FleetSwarm extends NetworkFaults {
  readonly runners: number;
  readonly coordinators: number;
  readonly leaseMs: number;
  /** Of each runner. */
  readonly maxRuns: number;
  /** How long the faults go on. */
  readonly safetyMs: number;
  /** A coordinator is not told of something that arrived. */
  readonly noticeLost: number;
  readonly cutEveryMs: number;
  readonly runnerKillEveryMs: number;
  readonly runnerPauseEveryMs: number;
  readonly runnerCloseEveryMs: number;
  readonly coordinatorKillEveryMs: number;
  readonly coordinatorPauseEveryMs: number;
  readonly runnerClockJumpEveryMs: number;
  /** Of the wall clock that the only coordinator goes by. Several go by their database's, which does not jump here. */
  readonly storeClockJumpEveryMs: number;
  /** How far a runner's clocks are from the right rate. */
  readonly clockDrift: number;
}

export function drawFleetSwarm(dice: Dice): FleetSwarm {
  const rate = (...everyMs: [number, ...number[]]): number => (dice.chance(0.35) ? dice.pick(everyMs) : 0);
  const probability = (...strengths: [number, ...number[]]): number =>
    dice.chance(0.35) ? dice.pick(strengths) : 0;
  const runners = dice.pick([2, 2, 3, 4]);
  const coordinators = dice.pick([1, 1, 1, 2, 3]);
  return {
    runners,
    coordinators,
    leaseMs: dice.pick([6_000, 15_000]),
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
  };
}

/** What every simulation draws, as it is meant in a fleet: its processes are the runners, and the clock that is right is storage's. */
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
