// A run of a coordinator, for programs.

import { defined } from "@holdfast/core";
import type { Run } from "@holdfast/proto";

export type RunJson = ReturnType<typeof runJson>;

/** The agent of a run is told as that of a session. */
export function runJson(run: Run) {
  const { runId, sessionId, agent, agentVersion, status, demands, priority, owner, blocked, holder } = run;
  const { since, token, leaseUntil, runnerName, blockedUntil, endedAt, outcome } = run;
  return {
    runId,
    sessionId,
    agent: { name: agent, version: agentVersion },
    status,
    demands,
    priority,
    ...defined({ owner }),
    ...(since === undefined ? {} : { since: Number(since) }),
    ...defined({ blocked }),
    ...(blockedUntil === undefined ? {} : { blockedUntil: Number(blockedUntil) }),
    ...defined({ holder, runnerName }),
    ...(token === undefined ? {} : { token: Number(token) }),
    ...(leaseUntil === undefined ? {} : { leaseUntil: Number(leaseUntil) }),
    ...(endedAt === undefined ? {} : { endedAt: Number(endedAt) }),
    ...defined({ outcome }),
  };
}
