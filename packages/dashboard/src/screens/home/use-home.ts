// `useHome`: the lists of the home screen, each read on its own, so that a slow one delays no other.
//
//   - It asks at most four times, for at most so many rows, beside the inbox, which every screen has.

import { sumCosts, type PlainSessionCost } from "@holdfast/proto/view";
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import { listPath } from "../../api/session-list.ts";
import type { About, QueuedRun, SessionPage } from "../../api/types.ts";
import { useRunners } from "../../api/use-runners.ts";
import { LIVE } from "../../parts/use-changes.ts";

export const WORKING_MAX = 100;
const RUNS_MAX = 100;
export const COSTS_MAX = 200;
const COSTS_REFRESH_MS = 15_000;

export function useHome({ isLocal, kind }: About) {
  const working = useQuery({
    queryKey: ["home", "working"],
    queryFn: () => call<SessionPage>("GET", listPath({ status: "working", limit: WORKING_MAX })),
    meta: LIVE,
  });
  const queue = useQuery({
    queryKey: ["home", "queue"],
    queryFn: () =>
      call<{ readonly runs: readonly QueuedRun[]; readonly nextCursor?: string }>(
        "GET",
        `/v1/runs?status=queued&limit=${RUNS_MAX}`,
      ),
    enabled: !isLocal, // A local database has no runners.
    meta: LIVE,
  });
  const runners = useRunners(!isLocal && kind === "admin");
  const costs = useQuery({
    queryKey: ["home", "costs"],
    queryFn: async () => {
      const { costs: read, nextCursor } = await call<{
        readonly costs: readonly PlainSessionCost[];
        readonly nextCursor?: string;
      }>("GET", `/v1/costs?limit=${COSTS_MAX}`);
      return { sums: sumCosts(read, today()), hasOlder: nextCursor !== undefined };
    },
    refetchInterval: COSTS_REFRESH_MS,
  });
  return { working, queue, runners, costs };
}

export type HomeReads = ReturnType<typeof useHome>;

/** The day of UTC, as costs have it. */
function today(): string {
  return new Date().toISOString().slice(0, "2026-11-27".length);
}
