// How a registered runner stands, as people are told: whether it is there, when it was last heard of, how much it holds.
//
//   runner-standing-1. It is silent when nothing was heard of it for a lease, if this coordinator is who heard of it
//       last. What others hear is written once a minute at most: by that it is silent after `QUIET_MS`. A time that was
//       written before this coordinator began says nothing of now: the runner is silent until it is heard of again,
//       here or elsewhere.
//   runner-standing-2. What it holds is what storage says: a lease that has passed is nobody's.
//
// It decides nothing: dispatch gives to whoever polls.

import { QUIET_MS, type StoredRunner } from "../store/registry.ts";
import type { ServiceHost } from "./service-host.ts";

export type StandingHost = Pick<ServiceHost, "clock" | "dispatcher" | "leaseMs" | "registry">;

export const RUNNER_STATUSES = ["online", "draining", "silent"] as const;

interface Standing {
  readonly status: (typeof RUNNER_STATUSES)[number];
  /** For how long nothing was heard of it. */
  readonly quietMs: number;
}

/** runner-standing-1. */
export function standingOf(
  { clock, dispatcher, leaseMs, registry }: StandingHost,
  runner: StoredRunner,
): Standing {
  const { runnerId, seenAt, draining } = runner;
  const quietMs = Math.max(0, Math.min(dispatcher.quietFor(runnerId), clock.now() - seenAt));
  const isHeardHere = registry.isHeardHere(runner) || dispatcher.quietFor(runnerId) < Infinity;
  const isOld = !isHeardHere && seenAt <= registry.beganAt;
  const isSilent = isOld || quietMs >= (registry.isHeardHere(runner) ? leaseMs : QUIET_MS);
  return { status: isSilent ? "silent" : draining === true ? "draining" : "online", quietMs };
}

/** runner-standing-2. */
export async function heldBy(
  { clock, storage }: Pick<ServiceHost, "clock" | "storage">,
  { runnerId, maxRuns }: StoredRunner,
): Promise<number> {
  return (await storage.heldClaims({ now: clock.now(), limit: maxRuns, owner: runnerId })).length;
}
