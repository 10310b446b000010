// `startableAgents` lists the agents that a caller can start, from the runners that take the caller's
// sessions.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { StartableAgentSchema } from "@holdfast/proto";
import { defined, type JsonText } from "@holdfast/core";
import type { StoredRunner } from "./registry.ts";

const encoder = new TextEncoder();

/**
 * @param owner the user whose sessions are meant, or `undefined` for an admin, whose sessions belong to
 *   nobody or to any user.
 */
export function startableAgents(
  runners: readonly StoredRunner[],
  owner: string | undefined,
): readonly MessageInitShape<typeof StartableAgentSchema>[] {
  const agents = new Map<string, Found>();
  for (const runner of runners.toSorted((a, b) => a.registeredAt - b.registeredAt)) {
    if (runner.draining === true || runner.superseded === true) continue;
    if (owner !== undefined && runner.owner !== undefined && runner.owner !== owner) continue;
    const seen = new Set<string>();
    for (const { name, version, inputSchema, description, tags } of runner.agents) {
      const agent = agents.get(name) ?? {
        runners: 0,
        versions: new Set(),
        takesAny: false,
        inputSchema: undefined,
        description: undefined,
        tags: undefined,
      };
      Object.assign(agent, { inputSchema, description, tags }); // The runner that registered last comes last.
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
      ...(found.inputSchema === undefined ? {} : { inputSchema: encoder.encode(found.inputSchema) }),
      ...defined({ description: found.description }),
      ...(found.tags === undefined ? {} : { tags: [...found.tags] }),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

interface Found {
  runners: number;
  readonly versions: Set<string>;
  takesAny: boolean;
  inputSchema: JsonText | undefined;
  description: string | undefined;
  tags: readonly string[] | undefined;
}
