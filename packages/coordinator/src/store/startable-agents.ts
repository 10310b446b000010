// `startableAgents` lists the agents that a caller can start, from the runners that take the caller's sessions.

import type { DescribedAgent, StoredRunner } from "./registry.ts";

export interface StartableAgent extends DescribedAgent {
  readonly versions: string[];
  readonly runners: number;
}

/** @param owner the user whose sessions are meant, or `undefined` for an admin, whose sessions belong to nobody or to any user. */
export function startableAgents(
  runners: readonly StoredRunner[],
  owner: string | undefined,
): readonly StartableAgent[] {
  const agents = new Map<string, { runners: number; versions: Set<string>; takesAny: boolean }>();
  const descriptions = new Map<string, DescribedAgent>();
  for (const runner of runners) {
    if (runner.draining === true || runner.superseded === true) continue;
    if (owner !== undefined && runner.owner !== undefined && runner.owner !== owner) continue;
    for (const description of runner.descriptions ?? []) descriptions.set(description.name, description);
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
      ...descriptions.get(name),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
