// `match` decides which runner gets which session: the rules of dispatch as pure functions over waiting polls
// and sessions.
//
//   - A session goes only to a runner that offers its agent and has every demanded label with that value. The
//     runner has the same owner as the session, or none, and has a free slot. A runner never gets more
//     sessions than it has slots (O11).
//   - The session of the highest priority goes first, then the one that has waited longest. A session that
//     has waited for `STARVING_MS` goes before every priority, so that none waits without limit.
//   - The runner that had a session last gets it again if its poll waits. Otherwise the runner with the most
//     free slots gets it, then the one that has waited longest, which spreads the work.
//   rules-4. A session that was lost too often with a runner that held nothing else, without a commit
//       between, is poison. It is paused, and a person decides. A loss beside other sessions makes it a
//       suspect at most.
//   rules-5. A session that no registered runner fits for five minutes fails if it never began, and is paused
//       if it has. The error names the unmet need.
//
//   rules-6. A session that was lost twice in a row is a suspect. It is given alone, so that every counted
//       loss of a suspect happened alone. A runner that starts trials gets no suspect. It is asked to start a
//       process for trials, which gets suspects and nothing else. No other session waits for that. A runner
//       that cannot gets a suspect when it holds nothing, in an answer of its own. While a suspect waits, one
//       such runner that fits is kept until it holds nothing, for `ALONE_MS` at most. It gets nothing else
//       until the suspect has committed, for `TRIAL_MS` at most. A suspect that found no process of its own
//       for `ALONE_MS`, or gets company later, is pardoned first: its losses no longer count. No session
//       waits without limit.
//   rules-8. A session that a superseded runner keeps goes only to the runners that `earlier-code.ts` names.
//       A superseded runner gets no other session.
//   rules-7. A session goes only to a runner that knows its behaviour flags. Where no matching runner knows
//       them, the session waits. Its runners are about to be restarted with a newer Holdfast, so nothing ends
//       for that, and rules-5 does not count it.
//
// The rules know no storage and no connections, and are told the time.

import type { Fitness } from "../store/registry.ts";
import {
  dueAt,
  isAnsweredBy,
  MINUTE_MS,
  NO_CLAIM,
  type Placement,
  type Session,
  type SessionSnapshot,
} from "@holdfast/core";

export { ALONE_LOSSES_MAX, isPoison, isSuspect, SUSPECT_LOSSES } from "@holdfast/core";

/** A poll of a runner that waits for work. */
export interface Offer extends Fitness {
  readonly runnerId: string;
  /** The slots that are free. */
  readonly free: number;
  /** When the poll began to wait. */
  readonly since: number;
  /** The number of sessions that the runner holds. */
  readonly held: number;
  /**
   * Since when the runner holds a suspect that has not committed there. If it holds several, the time of the
   * last one.
   */
  readonly suspectSince?: number;
  /** Whether a runner with newer code has replaced the runner (rules-8). */
  readonly isSuperseded?: boolean;
  /** rules-6. Whether the runner takes suspects alone, or starts such a runner when it is asked. */
  readonly trials?: "only" | "starts";
}

/** A session with something to do that no runner holds. */
export interface Candidate extends Placement {
  readonly sessionId: string;
  readonly agent: string;
  readonly version: string;
  /** Behaviour flags of the session; 0 when absent. */
  readonly flags?: number;
  /** Since when the session has something to do. */
  readonly since: number;
  /** The runner that held the session last. */
  readonly lastRunner?: string;
  /** The journal position of its last checkpoint. */
  readonly checkpointSeq?: number;
  /** rules-8. The only runners that may get it. */
  readonly onlyAt?: ReadonlySet<string>;
  /** The superseded runners that keep it and that it has not diverged from. */
  readonly keepers?: ReadonlySet<string>;
  /** Since when it is known to be a suspect (rules-6). */
  readonly suspectSince?: number;
  /** How often in a row a known suspect was lost. */
  readonly losses?: number;
}

type Flagged = Pick<Candidate, "flags">;

/** The properties of a session that a runner must fit. */
export type Needs = Pick<Candidate, "agent" | "version" | "owner" | "demands">;

/** A session and the runner that gets it. */
export interface Match {
  readonly sessionId: string;
  readonly runnerId: string;
  /** rules-6. The runner holds nothing else, and gets nothing else. */
  readonly isAlone: boolean;
  /** Whether another runner takes the session back if it diverges from this runner's code. */
  readonly mayReturn: boolean;
}

/** rules-6. A runner that cannot take what it fits, for a suspect. */
export interface Trial {
  readonly runnerId: string;
  readonly suspect: Candidate;
  /** Whether the runner is kept for the suspect, or is to start a process for it. */
  readonly type: "kept" | "wanted";
}

/** How long a session waits for a runner that fits. */
export const NO_MATCH_MS = 5 * MINUTE_MS;
/** A session that has waited this long goes before every priority. */
export const STARVING_MS = 10 * MINUTE_MS;
/** rules-6. How long a runner is kept for a waiting suspect. */
export const ALONE_MS = 60_000;
/** rules-6. How long a runner is kept for the suspect that it holds. */
export const TRIAL_MS = 5 * MINUTE_MS;

const NO_RUNNER: ReadonlySet<string> = new Set();

/**
 * Gives sessions to waiting polls, in the order in which the sessions take their turn.
 *
 * @param onTrial called for each suspect that waits for a runner of its own. Must not throw.
 */
export function match(
  polls: readonly Offer[],
  candidates: readonly Candidate[],
  now: number,
  onTrial: (trial: Trial) => void = () => {},
): readonly Match[] {
  const free = new Map(
    polls.map((offer) => [offer.runnerId, isKept(offer, now) ? 0 : Math.max(0, offer.free)]),
  );
  let left = [...free.values()].reduce((sum, slots) => sum + slots, 0);
  const take = ({ runnerId }: Offer, slots = free.get(runnerId)!): void => {
    free.set(runnerId, free.get(runnerId)! - slots);
    left -= slots;
  };
  let isKeeping = false;
  const matches: Match[] = [];
  const give = ({ sessionId, keepers = NO_RUNNER }: Candidate, offer: Offer, isAlone: boolean): void => {
    const { runnerId } = offer;
    const mayReturn = keepers.size > (keepers.has(runnerId) ? 1 : 0);
    matches.push({ sessionId, runnerId, isAlone, mayReturn });
    take(offer, isAlone ? undefined : 1);
  };
  for (const candidate of inOrder(candidates, now)) {
    if (left === 0) break;
    // mutant: suspect-not-alone
    if (candidate.suspectSince !== undefined) {
      const untouched = polls.filter(
        // mutant: trial-beside-others
        ({ runnerId, free: slots, trials }) =>
          trials !== "starts" && slots > 0 && free.get(runnerId) === slots,
      );
      const empty = untouched.filter(({ held }) => held === 0);
      const alone = bestOf(empty, candidate, free);
      if (alone !== undefined) {
        give(candidate, alone, true);
        continue;
      }
      const starter = emptiestOf(
        polls.filter(({ trials }) => trials === "starts"),
        candidate,
      );
      if (starter !== undefined) onTrial({ type: "wanted", runnerId: starter.runnerId, suspect: candidate });
      if (now - candidate.suspectSince < ALONE_MS) {
        const ordinary = untouched.filter(({ trials }) => trials === undefined);
        const kept = isKeeping || starter !== undefined ? undefined : emptiestOf(ordinary, candidate);
        if (kept === undefined) continue;
        isKeeping = true;
        onTrial({ type: "kept", runnerId: kept.runnerId, suspect: candidate });
        take(kept);
        continue;
      }
    }
    const offer = bestOf(polls, candidate, free);
    if (offer !== undefined) give(candidate, offer, false);
  }
  return matches;
}

/** rules-6. Whether the runner is kept for the suspect that it holds. */
export function isKept({ held, suspectSince }: Pick<Offer, "held" | "suspectSince">, now: number): boolean {
  return suspectSince !== undefined && held === 1 && now - suspectSince < TRIAL_MS;
}

/** rules-6. The fitting runner that holds least. It stays the same while it does. */
function emptiestOf(polls: readonly Offer[], candidate: Candidate): Offer | undefined {
  const fitting = polls.filter((offer) => mayGet(offer, candidate));
  return fitting.toSorted((a, b) => a.held - b.held || (a.runnerId < b.runnerId ? -1 : 1))[0];
}

function inOrder(candidates: readonly Candidate[], now: number): readonly Candidate[] {
  const rank = ({ since, priority = 0 }: Candidate): number =>
    // mutant: priority-starves
    now - since >= STARVING_MS ? Infinity : priority;
  return candidates.toSorted((a, b) => {
    const [rankA, rankB] = [rank(a), rank(b)];
    if (rankA !== rankB) return rankB - rankA;
    return a.since - b.since || (a.sessionId < b.sessionId ? -1 : 1);
  });
}

/** A runner that holds a suspect comes last (rules-6). */
function bestOf(
  polls: readonly Offer[],
  candidate: Candidate,
  free: ReadonlyMap<string, number>,
): Offer | undefined {
  let best: Offer | undefined;
  for (const offer of polls) {
    const slots = free.get(offer.runnerId)!;
    if (slots === 0 || !mayGet(offer, candidate)) continue;
    if (offer.runnerId === candidate.lastRunner && offer.suspectSince === undefined) return offer;
    const most = best === undefined ? 0 : free.get(best.runnerId)!;
    const isFreer = slots > most || (slots === most && offer.since < best!.since);
    const isSpared =
      best !== undefined && (best.suspectSince === undefined) !== (offer.suspectSince === undefined);
    if (best === undefined || (isSpared ? offer.suspectSince === undefined : isFreer)) best = offer;
  }
  return best;
}

function mayGet(offer: Offer, candidate: Candidate): boolean {
  if (offer.trials === "only" && candidate.suspectSince === undefined) return false; // rules-6.
  // mutant: superseded-gets-new
  const isAllowed = candidate.onlyAt?.has(offer.runnerId) ?? offer.isSuperseded !== true; // rules-8.
  return isAllowed && takes(offer, candidate);
}

/** Whether a runner could run the session. */
export function takes(runner: Fitness, candidate: Candidate): boolean {
  return fits(runner, candidate) && knowsFlags(runner, candidate);
}

/** Whether a runner may get a session, except for its slots. */
export function fits(runner: Fitness, needs: Needs): boolean {
  // mutant: demand-ignored
  return offers(runner, needs) && isOwnersOf(runner, needs) && meets(runner, needs);
}

/** rules-7. A runner that does not say its flags knows none. */
function knowsFlags({ behaviourFlags = 0 }: Fitness, { flags = 0 }: Flagged): boolean {
  return flags <= behaviourFlags; // Flags are given out from the lowest bit on.
}

function offers({ agents }: Fitness, { agent, version }: Needs): boolean {
  const versions = agents.get(agent);
  return versions !== undefined && (versions.size === 0 || versions.has(version));
}

function isOwnersOf({ owner }: Fitness, needs: Needs): boolean {
  return owner === undefined || owner === needs.owner;
}

function meets({ labels }: Fitness, { demands = {} }: Needs): boolean {
  return Object.entries(demands).every(
    ([label, value]) => Object.hasOwn(labels, label) && labels[label] === value,
  );
}

/** The need of a session that no registered runner meets; `undefined` when one of them fits (rules-5). */
export function unmetBy(runners: readonly Fitness[], needs: Needs): string | undefined {
  if (runners.some((runner) => fits(runner, needs))) return undefined;
  const agent = `the agent "${needs.agent}"`;
  const named = runners.filter(({ agents }) => agents.has(needs.agent));
  if (named.length === 0) return `no registered runner offers ${agent}`;
  const offering = named.filter((runner) => offers(runner, needs));
  if (offering.length === 0) return `no registered runner offers version "${needs.version}" of ${agent}`;
  const allowed = offering.filter((runner) => isOwnersOf(runner, needs));
  if (allowed.length === 0) return `every runner that offers ${agent} belongs to another user`;
  const demands = Object.entries(needs.demands ?? {});
  const unmet = demands.filter(([label, value]) => !allowed.some(({ labels }) => labels[label] === value));
  const text = (unmet.length === 0 ? demands : unmet).map(([label, value]) => `${label}=${value}`).join(", ");
  return `no registered runner has ${unmet.length === 0 ? "all of " : ""}${text}`;
}

/** A registered runner, and what may keep it from taking a session now. */
export interface KnownRunner extends Fitness {
  readonly isFull: boolean;
  readonly isDraining: boolean;
  readonly isSilent: boolean;
  /** How long the runner has been silent. */
  readonly quietMs: number;
  /** rules-6. Whether the runner takes suspects alone. */
  readonly isForTrials?: boolean;
  /** rules-6. The suspect that the runner holds alone, or is kept for. */
  readonly keptFor?: Suspect;
}

/** rules-6. A session that was lost so often in a row. */
export interface Suspect {
  readonly sessionId: string;
  readonly losses: number;
  /** Whether its runner runs it already. */
  readonly isTried: boolean;
}

/**
 * The reason why no runner has taken a due session, for people.
 *
 * @param losses how often in a row a known suspect was lost.
 */
export function whyNotTaken(
  runners: readonly KnownRunner[],
  needs: Needs & Flagged,
  losses?: number,
): string {
  const ordinary = runners.filter(({ isForTrials }) => isForTrials !== true);
  const unmet = unmetBy(ordinary, needs);
  if (unmet !== undefined) return unmet;
  const fitting = ordinary.filter((runner) => fits(runner, needs) && knowsFlags(runner, needs));
  if (fitting.length === 0)
    return `every matching runner is of an older Holdfast and does not know the session's behaviour flags (${needs.flags})`;
  const taking = fitting.filter(({ isDraining, isSilent }) => !isDraining && !isSilent);
  if (taking.length === 0) {
    if (fitting.some(({ isSilent }) => !isSilent)) return "every matching runner is draining or silent";
    const quietMs = Math.min(...fitting.map((runner) => runner.quietMs));
    return `every matching runner is silent; the last call of one was ${Math.round(quietMs / 1_000)} s ago`;
  }
  if (losses !== undefined)
    return `it was lost with its runner ${losses} times in a row, and waits for a process that holds nothing else`;
  if (taking.every(({ isFull }) => isFull)) return "every matching runner is full";
  const open = taking.filter(({ isFull }) => !isFull);
  if (open.every(({ keptFor }) => keptFor !== undefined)) {
    const { sessionId, losses: times, isTried } = open[0]!.keptFor!;
    const doing = isTried ? "tries" : "is about to try";
    return `the runner ${doing} session ${sessionId} alone, which was lost with its runner ${times} times in a row`;
  }
  return "a matching runner has a free slot and will claim this session or one ahead of it in the queue";
}

/**
 * Since when a due session has something to do, as its row says. Every coordinator computes the same time.
 */
export function dueSince({ status, createdAt, updatedAt, wakeAt }: DueRow, now: number): number {
  if (status === "submitted") return createdAt;
  return wakeAt !== undefined && wakeAt <= now ? Math.max(updatedAt, wakeAt) : updatedAt;
}

type DueRow = Pick<Session, "status" | "createdAt" | "updatedAt" | "wakeAt">;

/**
 * Whether a session that was just claimed still has something to do: it may have been due only when storage
 * was asked.
 */
export function hasSomethingToDo({ session, signals }: SessionSnapshot, now: number): boolean {
  const isAnswered = signals.some(({ name }) => isAnsweredBy(session.waits, name));
  return dueAt(session, NO_CLAIM, isAnswered) <= now;
}
