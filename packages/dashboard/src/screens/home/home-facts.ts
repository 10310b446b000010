// The facts of the home screen, made of the lists that it reads. Pure.

import type { QueuedRun, Runner, Session } from "../../api/types.ts";

const DAY_MS = 86_400_000;
/** How long a session at work may be without news before the screen says so. */
const QUIET_MS = 10 * 60_000;

/** The failed sessions of the last day, the newest first. */
export function failedToday(failed: readonly Session[], now: number): readonly Session[] {
  const end = ({ endedAt, updatedAt }: Session): number => endedAt ?? updatedAt;
  return failed
    .filter((session) => end(session) > now - DAY_MS)
    .toSorted((one, other) => end(other) - end(one));
}

/** Why sessions cannot start, and how many: the reason of most first. */
export function stuckReasons(
  runs: readonly QueuedRun[],
): readonly { readonly reason: string; readonly runs: readonly QueuedRun[] }[] {
  return [...Map.groupBy(runs, ({ blocked = "" }) => blocked)]
    .filter(([reason]) => reason !== "")
    .map(([reason, group]) => ({ reason, runs: group }))
    .toSorted((one, other) => other.runs.length - one.runs.length);
}

export function goneRunners(runners: readonly Runner[]): readonly Runner[] {
  return runners.filter(({ status }) => status === "silent");
}

/** Whether a session is at work and nothing was recorded of it for some time. */
export function isQuiet({ updatedAt }: Session, now: number): boolean {
  return now - updatedAt > QUIET_MS;
}

/** The work of a session, as it reports it. */
export function doingText({ progress, turn }: Session): string {
  const said = typeof progress === "string" ? progress : wordsIn(progress);
  if (said !== undefined && said !== "") return said;
  return turn > 0 ? `turn ${turn.toLocaleString()}` : "";
}

const WORDS = ["progress", "text", "message", "step", "phase"] as const;

function wordsIn(progress: unknown): string | undefined {
  if (typeof progress !== "object" || progress === null) return undefined;
  const fields = progress as Readonly<Record<string, unknown>>;
  const word = WORDS.map((name) => fields[name]).find((value) => typeof value === "string");
  return typeof word === "string" ? word : JSON.stringify(progress);
}

export interface OpenBudgets {
  /** The sessions with a limit of cost. */
  readonly sessions: number;
  readonly unlimited: number;
  readonly spent: number;
  readonly max: number;
}

/** The limits of cost of sessions that have not ended. A child without a limit spends that of a session above it. */
export function openBudgets(sessions: readonly Session[]): OpenBudgets {
  let [limited, unlimited, spent, max] = [0, 0, 0, 0];
  for (const { account, parentSessionId } of sessions) {
    const limit = account?.limits?.maxCostMicroUsd;
    if (limit !== undefined) {
      limited++;
      max += limit;
      spent += account?.spent?.costMicroUsd ?? 0;
    } else if (parentSessionId === undefined) unlimited++;
  }
  return { sessions: limited, unlimited, spent, max };
}

export interface UsedUpPool {
  readonly pool: string;
  readonly sessions: number;
  /** The first known reset. */
  readonly resetsAt?: number;
  /** Whether sessions continue then without a person. */
  readonly continues: boolean;
}

/** The usage limits for which sessions are paused. */
export function usedUpPools(sessions: readonly Session[]): readonly UsedUpPool[] {
  const paused = sessions.filter(({ quota }) => quota !== undefined);
  return [...Map.groupBy(paused, ({ quota }) => quota!.pool)].map(([pool, group]) => {
    const resets = group.flatMap(({ quota }) => quota?.resetsAt ?? []);
    return {
      pool,
      sessions: group.length,
      ...(resets.length === 0 ? {} : { resetsAt: Math.min(...resets) }),
      continues: group.every(({ quota }) => quota?.resumesAt !== undefined),
    };
  });
}
