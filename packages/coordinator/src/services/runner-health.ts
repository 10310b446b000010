// `healthOf` says for people the health of a registered runner: whether it is silent, when it was last heard
// of, and how much it holds.
//
//   - If this coordinator was the last to hear of a runner, the runner is silent after a lease without
//     contact. Other coordinators write contacts once a minute at most, so a runner of theirs is silent after
//     `QUIET_MS`. A contact that was written before this coordinator began proves nothing. Such a runner is
//     silent until a coordinator hears of it again.
//   - Storage says what a runner holds. A session whose lease has passed has no holder.
//
// This file decides nothing. Dispatch gives sessions to any runner that polls.

import { QUIET_MS, type StoredRunner } from "../store/registry.ts";
import type { ServiceHost } from "./service-host.ts";

export type HealthHost = Pick<ServiceHost, "clock" | "dispatcher" | "leaseMs" | "registry">;

export const RUNNER_STATUSES = ["online", "draining", "silent"] as const;

interface RunnerHealth {
  readonly status: (typeof RUNNER_STATUSES)[number];
  /** How long the runner has been silent. */
  readonly quietMs: number;
}

export function healthOf(
  { clock, dispatcher, leaseMs, registry }: HealthHost,
  runner: StoredRunner,
): RunnerHealth {
  const { runnerId, seenAt, draining, superseded } = runner;
  const quietMs = Math.max(0, Math.min(dispatcher.quietFor(runnerId), clock.now() - seenAt));
  const isSeenHere = registry.isSeenHere(runner) || dispatcher.quietFor(runnerId) < Infinity;
  const isOld = !isSeenHere && seenAt <= registry.beganAt;
  const isSilent = isOld || quietMs >= (registry.isSeenHere(runner) ? leaseMs : QUIET_MS);
  return {
    status: isSilent ? "silent" : draining === true || superseded === true ? "draining" : "online",
    quietMs,
  };
}

export async function heldBy(
  { clock, storage }: Pick<ServiceHost, "clock" | "storage">,
  { runnerId, maxRuns }: StoredRunner,
): Promise<number> {
  return (await storage.heldClaims({ now: clock.now(), limit: maxRuns, owner: runnerId })).length;
}
