// `Swarm`: the faults of a simulation and their strengths. Each seed draws its own mix, because a fixed mix
// hides some defects.

import type { Dice } from "./dice.ts";

/** Probabilities are per occasion, times in milliseconds, rates are means between two occurrences; 0 is never. */
export interface Swarm {
  readonly processes: number;
  readonly sessions: number;
  /** The time during which faults occur. */
  readonly safetyMs: number;
  /** The time of a request to storage, and of its reply; 0 answers at once. */
  readonly latencyMs: number;
  readonly timersLateMs: number;
  /** A storage call is refused and has no effect. */
  readonly refused: number;
  /** A commit is applied, but its caller receives an error that storage was unavailable. */
  readonly replyLost: number;
  /** The process dies at a commit, before or after it is applied. */
  readonly crashAtCommit: number;
  readonly outageEveryMs: number;
  /** The disk is full: commits are refused for good, reads work. */
  readonly fullEveryMs: number;
  readonly killEveryMs: number;
  readonly closeEveryMs: number;
  readonly pauseEveryMs: number;
  readonly clockJumpEveryMs: number;
  /** A person has due sessions run, as a command does. */
  readonly recoverEveryMs: number;
  /** An attempt fails although its node does not say so; only for tasks with `isPatient`. */
  readonly taskFails: number;
  /** An attempt never ends before it is aborted; only for tasks with a time-out. */
  readonly taskHangs: number;
  readonly taskMs: number;
  /** A signal is sent once more after it was acknowledged. */
  readonly signalTwice: number;
  readonly signalDelayMs: number;
  /** A session is cancelled. */
  readonly cancelled: number;
  /** A session is paused, for a while. */
  readonly paused: number;
  readonly warmMs: number;
  readonly concurrency: number;
  /** A session that depends on no other session is forked. */
  readonly forked: number;
  /** A schedule starts sessions, every few seconds. */
  readonly isScheduled: boolean;
  /** Groups that storage takes at once: their requests and replies overtake each other. */
  readonly groupsMax: number;
  /** A process owns the storage, and the others reach it through that process. */
  readonly hasOwner: boolean;
}

export function drawSwarm(dice: Dice): Swarm {
  const rate = (...everyMs: [number, ...number[]]): number => (dice.chance(0.4) ? dice.pick(everyMs) : 0);
  const probability = (...strengths: [number, ...number[]]): number =>
    dice.chance(0.4) ? dice.pick(strengths) : 0;
  const swarm = {
    processes: dice.pick([1, 1, 1, 2, 3]),
    sessions: dice.pick([1, 1, 2, 3]),
    safetyMs: dice.pick([500, 500, 500, 3_000, 3_000, 3_000, 20_000, 20_000, 20_000, 60_000]),
    latencyMs: dice.pick([0, 0, 1, 5, 50]),
    timersLateMs: dice.pick([0, 0, 2, 40]),
    refused: probability(0.02, 0.1, 0.4),
    replyLost: probability(0.02, 0.1, 0.4),
    crashAtCommit: probability(0.02, 0.1),
    outageEveryMs: rate(1_000, 10_000),
    fullEveryMs: dice.chance(0.2) ? dice.pick([1_000, 10_000]) : 0,
    killEveryMs: rate(30, 300, 3_000),
    closeEveryMs: rate(100, 2_000),
    pauseEveryMs: rate(200, 5_000),
    clockJumpEveryMs: rate(100, 2_000),
    recoverEveryMs: rate(50, 1_000),
    taskFails: probability(0.1, 0.5),
    taskHangs: probability(0.1, 0.5),
    taskMs: dice.pick([0, 0, 5, 100, 1_000]),
    signalTwice: probability(0.3, 0.9),
    signalDelayMs: dice.pick([0, 10, 300, 3_000]),
    cancelled: probability(0.3, 0.9),
    paused: probability(0.2, 0.9),
    warmMs: dice.pick([5, 100, 30_000]),
    concurrency: dice.pick([1, 3, 256]),
    forked: dice.pick([0, 0.5, 1]),
    isScheduled: dice.chance(0.1),
    groupsMax: dice.pick([1, 1, 1, 4]),
    hasOwner: false,
  };
  const hasOwner = swarm.processes > 1 && dice.chance(0.4);
  return hasOwner ? { ...swarm, ...FAULTS_OF_OWNERS, hasOwner } : swarm;
}

/**
 * Where a process owns the storage, nothing but the end of a process may cost an attempt (C4), so no other
 * such fault is on.
 */
const FAULTS_OF_OWNERS: Partial<Swarm> = { outageEveryMs: 0, fullEveryMs: 0, pauseEveryMs: 0, refused: 0 };

/** Whether the faults of this swarm can cost an attempt: then effects may happen more than once before their commit. */
export function losesAttempts(swarm: Swarm): boolean {
  const { crashAtCommit, killEveryMs, closeEveryMs, pauseEveryMs, outageEveryMs, fullEveryMs } = swarm;
  const { refused, replyLost, recoverEveryMs, processes } = swarm;
  const rates = [crashAtCommit, killEveryMs, closeEveryMs, pauseEveryMs, outageEveryMs, fullEveryMs];
  return processes > 1 || [...rates, refused, replyLost, recoverEveryMs].some((rate) => rate > 0);
}
