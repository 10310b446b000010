// `startableAgents` lists the agents that a caller can start, from the runners that take the caller's sessions.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StartableAgentSchema } from "@holdfast/proto";
import type { StoredRunner } from "./registry.ts";

/** @param owner the user whose sessions are meant, or `undefined` for an admin, whose sessions belong to nobody or to any user. */
export function startableAgents(
  runners: readonly StoredRunner[],
  owner: string | undefined,
): readonly MessageInitShape<typeof StartableAgentSchema>[] {
  const agents = new Map<string, { runners: number; versions: Set<string>; takesAny: boolean }>();
  for (const runner of runners) {
    if (runner.draining === true || runner.superseded === true) continue;
    if (owner !== undefined && runner.owner !== undefined && runner.owner !== owner) continue;
    const seen = new Set<string>();
    for (const { name, version } of runner.agents) {
      const agent = agents.get(name) ?? { runners: 0, versions: new Set(), takesAny: false };
      agents.set(name, agent);
      if (version === undefined) agent.takesAny = true;
      else agent.versions.add(version);
      if (!seen.has(name)) agent.runners++;
      seen.add(name);
    }
  }
  return [...agents]
    .map(([name, found]) => ({
      name,
      versions: found.takesAny ? [] : [...found.versions].toSorted(),
      runners: found.runners,
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
