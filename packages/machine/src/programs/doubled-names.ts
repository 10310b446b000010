// `refuseDoubledName`, `doublesOf`: a name that an agent file and an external agent share.
//
//   - Neither of the two goes before the other, because a new file or a new program would else change what a
//     known command starts.
//   - A file of a project that the user has not trusted, or not with its content, is not read, so it doubles
//     no name.

import { join } from "node:path";
import { listAgents, type AgentPlaces, type ListedAgent } from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import { isIncluded } from "@holdfast/programs/included-programs";
import { agentSourceText } from "../agent-source.ts";
import { installedAgentsFolder } from "./external-agent-names.ts";
import { externalNames, isOfProfile } from "./external-agents.ts";

/** @throws HoldfastError `agent_invalid` that names both. @param name that of an external agent */
export function refuseDoubledName(name: string, places: AgentPlaces): void {
  const files = listAgents(places).filter((file) => file.name === name && isRead(file));
  const [first] = files;
  if (first === undefined) return;
  const marked = agentSourceText({ kind: "program", name });
  throw new HoldfastError("agent_invalid", `an agent file and an external agent have the name ${name}`, {
    at: [...files.map(({ path }) => path), externalPlace(name, places)].join(", "),
    expected: "one agent of this name",
    fix: `name the file by its path (${first.path}), or the external agent as ${marked}; for \`agents\` of a file, rename one of them`,
  });
}

/** The external agents that share their names with agent files: their places by the names. */
export function doublesOf(listed: readonly ListedAgent[], places: AgentPlaces): ReadonlyMap<string, string> {
  const read = new Set(listed.filter(isRead).map(({ name }) => name));
  const names = externalNames(places).filter((name) => read.has(name));
  return new Map(names.map((name) => [name, externalPlace(name, places)]));
}

function isRead({ status }: Pick<ListedAgent, "status">): boolean {
  return status !== "untrusted" && status !== "unapproved" && status !== "hidden";
}

/** The file or folder of an external agent. A program of this machine has none. */
function externalPlace(name: string, places: AgentPlaces): string {
  const { home, env } = places;
  if (isIncluded(name)) return agentSourceText({ kind: "program", name });
  return home !== undefined && isOfProfile(name, places)
    ? join(home, ".holdfast", "profiles", `${name}.yaml`)
    : join(installedAgentsFolder({ env }), name);
}
