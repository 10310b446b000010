// `useAgentStats`: the runs, failures and cost of each agent in the last day, of the newest sessions.

import { addCosts, NO_COST, type Cost } from "@holdfast/proto/view";
import { useQuery } from "@tanstack/react-query";
import { call } from "../../api/client.ts";
import { listPath } from "../../api/session-list.ts";
import type { Session, SessionPage } from "../../api/types.ts";

const SESSIONS_MAX = 500;
const REFRESH_MS = 10_000;
const DAY_MS = 86_400_000;

export interface AgentStats {
  readonly runs: number;
  readonly failed: number;
  /** The cost of its own calls. */
  readonly cost: Cost;
}

export function useAgentStats(isEnabled: boolean) {
  return useQuery({
    queryKey: ["agent stats"],
    queryFn: async () => {
      const { sessions, nextCursor } = await call<SessionPage>("GET", listPath({ limit: SESSIONS_MAX }));
      const since = Date.now() - DAY_MS;
      const oldest = sessions.at(-1)?.createdAt ?? 0;
      // Older sessions of the day may be behind the page.
      return { by: statsOf(sessions, since), isCut: nextCursor !== undefined && oldest >= since };
    },
    enabled: isEnabled,
    refetchInterval: REFRESH_MS,
  });
}

/** @param since only sessions that were created at this time or later. */
export function statsOf(sessions: readonly Session[], since: number): ReadonlyMap<string, AgentStats> {
  const by = new Map<string, AgentStats>();
  for (const { agent, status, cost, createdAt } of sessions) {
    if (createdAt < since) continue;
    const before = by.get(agent) ?? { runs: 0, failed: 0, cost: NO_COST };
    by.set(agent, {
      runs: before.runs + 1,
      failed: before.failed + (status === "failed" ? 1 : 0),
      cost: cost === undefined ? before.cost : addCosts(before.cost, cost),
    });
  }
  return by;
}
