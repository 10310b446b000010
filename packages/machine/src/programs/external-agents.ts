// The agents of external programs (`externalAgentOf`), their names, and the adapter of each (`protocolOf`).

import { dirname, join } from "node:path";
import {
  findProfile,
  findUsableProfile,
  readProfileAgents,
  readProfiles,
  type AgentPlaces,
  type AgentProfile,
  type ProjectRules,
} from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import {
  AcpAgent,
  externalAgent,
  InstalledAgents,
  knownAgent,
  profileAgent,
  takeProfile,
  type ChosenProgram,
  type ExternalAgentProtocol,
} from "@holdfast/programs";
import {
  hasOwnAdapter,
  INCLUDED_NAMES,
  isIncluded,
  permissionModesOf,
} from "@holdfast/programs/included-programs";
import type { Agent } from "@holdfast/runtime";
import { installedAgentsFolder } from "./external-agent-names.ts";
import { sessionFolder } from "../session-folder.ts";

export interface ExternalPlace {
  readonly places: AgentPlaces;
  /** The folder that sessions work in, unless they have that of their parent. */
  readonly folder: string;
}

interface ExternalParts {
  readonly protocol: ExternalAgentProtocol;
  readonly projectRules: ProjectRules;
  readonly deleteSession: ((sessionId: string) => Promise<boolean>) | undefined;
  /** Called with the agent before the agents that it may start are made: they may start each other. */
  readonly made: (agent: Agent) => void;
  /** The agent that it may start. */
  readonly startable: (name: string) => Agent;
}

export function externalAgentOf(
  name: string,
  place: ExternalPlace,
  { protocol, projectRules, deleteSession, made, startable }: ExternalParts,
): Agent {
  const { places, folder } = place;
  const { agents: own, deletesSessions } =
    readProfileAgents(places).find((file) => file.name === name)?.profile ?? {};
  const mayDelete = deleteSession !== undefined && (own === undefined || deletesSessions === true);
  const agents: Agent[] = [];
  const agent = externalAgent(protocol, {
    folder,
    permissionModes: permissionModesOf(name),
    projectRules,
    profile: (profile) => findProfile(profile, places),
    profileKeys: ofProfilesFor(name, places, ({ keys = [] }) => keys),
    mirrors: mirrorsOf(places),
    keepsPrograms: true,
    agents,
    startsByProfile: own === undefined,
    ...(mayDelete ? { deleteSession } : {}),
    place: async (task, workspace) => (await sessionFolder({ workspace }, folder, places, task)).path,
  });
  made(agent);
  for (const started of own ?? startedByProfiles(name, places))
    if (isStartable(started, place)) agents.push(startable(started));
  return agent;
}

/** The names of the agents that a profile of the user lets sessions of this agent start. */
function startedByProfiles(name: string, places: AgentPlaces): ReadonlySet<string> {
  return new Set(ofProfilesFor(name, places, ({ agents = [] }) => agents));
}

/** A part of the profiles that sessions of this agent may ask for. */
function ofProfilesFor(
  name: string,
  places: AgentPlaces,
  part: (profile: AgentProfile) => readonly string[],
): readonly string[] {
  return readProfiles(places).flatMap(({ profile }) =>
    profile !== null && (profile.agent === undefined || profile.agent === name) ? part(profile) : [],
  );
}

/** An agent that cannot be made is refused where a session asks for it. */
function isStartable(name: string, place: ExternalPlace): boolean {
  if (!externalNames(place.places).includes(name)) return false;
  try {
    protocolOf(name, place);
    return true;
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    return false;
  }
}

/**
 * The choice of a profile for this agent. Its session reads the profile once more.
 *
 * @throws HoldfastError for a profile that cannot be used with this agent.
 */
export function chosenByProfile(profile: string, agent: string, place: ExternalPlace): ChosenProgram {
  const { places } = place;
  const startable = [...startedByProfiles(agent, places)].filter((name) => isStartable(name, place));
  const found = findProfile(profile, places);
  const { intended } = takeProfile(
    found,
    protocolOf(agent, place),
    permissionModesOf(agent),
    mirrorsOf(places),
    startable,
  );
  return intended;
}

/** The folder for copies of the programs' own files. */
export function mirrorsOf({ trustFile }: Pick<AgentPlaces, "trustFile">): string {
  return join(dirname(trustFile), "external-sessions");
}

/** The agents that profiles of the user describe, those of a registry, and the programs that Holdfast knows. */
export function externalNames(places: AgentPlaces): readonly string[] {
  const own = [...readProfileAgents(places).map(({ name }) => name), ...installedAgents(places).names()];
  return [...new Set(own.filter((name) => !isIncluded(name))), ...INCLUDED_NAMES];
}

export function installedAgents({ env }: Pick<AgentPlaces, "env">): InstalledAgents {
  return new InstalledAgents(installedAgentsFolder({ env }));
}

export function isOfProfile(name: string, places: Pick<AgentPlaces, "home">): boolean {
  return readProfileAgents(places).some((profile) => profile.name === name);
}

/**
 * The adapter of an external program. A profile of the user counts more than an installed agent of its name,
 * and an installed agent more than a program on the PATH.
 *
 * @throws HoldfastError for a profile that cannot be used.
 */
export function protocolOf(name: string, { places, folder }: ExternalPlace): ExternalAgentProtocol {
  const place = { environment: places.env, folder };
  // No registry replaces an agent with an adapter of its own.
  const own = hasOwnAdapter(name) ? knownAgent(name, place) : undefined;
  if (own !== undefined) return own;
  if (!isIncluded(name) && isOfProfile(name, places))
    return profileAgent(findUsableProfile(name, places), place);
  const store = installedAgents(places);
  const installed = store.get(name);
  if (installed !== undefined) return new AcpAgent({ facts: store.facts(installed), ...place });
  return knownAgent(name, place) ?? profileAgent(findUsableProfile(name, places), place);
}
