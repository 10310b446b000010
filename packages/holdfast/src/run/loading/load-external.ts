// `loadNamedExternal`: the external agent that a command names.

import type { Agent } from "@holdfast/runtime";
import { agentPlaces } from "../../agents/agent-places.ts";
import { loadExternalAgent } from "../../agents/external-agents.ts";
import { refuseDoubledName } from "@holdfast/machine/programs";

export interface Naming {
  /** The name has the mark of external agents, so that it is not that of an agent file. */
  readonly isMarked: boolean;
  /** A session that has begun names it. */
  readonly isOfSession: boolean;
}

/** @throws HoldfastError `agent_invalid` for a name that an agent file has, too, and as `loadExternalAgent`. */
export async function loadNamedExternal(
  name: string,
  options: Parameters<typeof loadExternalAgent>[1],
  { isMarked, isOfSession }: Naming,
): Promise<Agent> {
  if (!isMarked) refuseDoubledName(name, agentPlaces(options));
  return loadExternalAgent(name, options, isOfSession);
}
