// Makes the agents of external programs for the commands that run agents (`loadExternalAgent`), and lists their programs.

import { dirname, join } from "node:path";
import {
  AcpAgent,
  externalAgent,
  InstalledAgents,
  knownAgent,
  permissionModesOf,
  profileAgent,
  takeProfile,
  type ChosenProgram,
  type ExternalAgentCapabilities,
  type ExternalAgentProtocol,
} from "@holdfast/programs";
import {
  findProfile,
  findUsableProfile,
  readProfileAgents,
  readProfiles,
  type AgentPlaces,
  type AgentProfile,
} from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import type { Io } from "../frame/command.ts";
import { agentPlaces, type AgentSearch } from "./agent-places.ts";
import { EXTERNAL_AGENT_NAMES, installedAgentsFolder, isIncluded } from "./external-agent-names.ts";
import { namedSecrets } from "../secrets/supplied-secrets.ts";
import { deleteStarted } from "./workspaces/delete-started.ts";
import { keyReachText } from "./key-reach-text.ts";
import { projectRulesOf } from "./kept-rules.ts";
import { sessionFolder } from "./workspaces/session-folder.ts";

/** One agent for each program and folder, because the tasks of a process are known by their names. */
const known = new Map<string, Agent>();

/**
 * The agent of an external program, after a look at the program.
 *
 * @param io `profile` is the name of a profile, which may choose the program.
 * @param isContinued the session has begun, and checks the program itself.
 * @throws HoldfastError when the program is missing or too old, or the profile cannot be used with this agent.
 */
export async function loadExternalAgent(
  name: string,
  { profile, ...io }: AgentSearch & { readonly profile?: string | undefined },
  isContinued: boolean,
): Promise<Agent> {
  const chosen = profile === undefined ? undefined : checkedProfile(profile, name, io);
  if (!isContinued) await protocolOf(name, io).find(chosen);
  return externalAgentOf(name, io);
}

/** The agent of an external program. Its sessions look for the program, and work in the current folder or in that of their parent. */
export function externalAgentOf(name: string, io: AgentSearch): Agent {
  const protocol = protocolOf(name, io);
  const key = `${name} ${io.cwd} ${io.servesOthers === true}`;
  const places = agentPlaces(io);
  const made = known.get(key);
  if (made !== undefined) return made;
  const { agents: own, deletesSessions } =
    readProfileAgents(places).find((file) => file.name === name)?.profile ?? {};
  const agents: Agent[] = [];
  const agent = externalAgent(protocol, {
    folder: io.cwd,
    permissionModes: permissionModesOf(name),
    projectRules: projectRulesOf(places),
    profile: (profile) => findProfile(profile, places),
    profileKeys: ofProfilesFor(name, places, ({ keys = [] }) => keys),
    mirrors: mirrorsOf(places),
    agents,
    startsByProfile: own === undefined,
    ...(own === undefined || deletesSessions === true
      ? { deleteSession: (id) => deleteStarted(id, io) }
      : {}),
    place: async (task, workspace) => (await sessionFolder({ workspace }, io.cwd, places, task)).path,
  });
  known.set(key, agent); // Agents may start each other.
  for (const started of own ?? startedByProfiles(name, places)) agents.push(...startableOf(started, io));
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
function startableOf(name: string, io: AgentSearch): readonly Agent[] {
  if (!externalNames(io).includes(name)) return [];
  try {
    return [externalAgentOf(name, io)];
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    return [];
  }
}

/** @throws HoldfastError for a profile that cannot be used with this agent. Its session reads the profile once more. */
function checkedProfile(profile: string, agent: string, io: Pick<Io, "cwd" | "env">): ChosenProgram {
  const places = agentPlaces(io);
  const startable = [...startedByProfiles(agent, places)].filter((name) => startableOf(name, io).length > 0);
  const found = findProfile(profile, places);
  return takeProfile(found, protocolOf(agent, io), permissionModesOf(agent), mirrorsOf(places), startable)
    .intended;
}

/** The folder for copies of the programs' own files. */
export function mirrorsOf({ trustFile }: Pick<AgentPlaces, "trustFile">): string {
  return join(dirname(trustFile), "external-sessions");
}

export interface ExternalProgram {
  readonly name: string;
  readonly status: "ready" | "missing" | "refused";
  /** The version and abilities, or the problem. */
  readonly found: string;
  readonly fix?: string;
}

/** The programs that Holdfast can run as agents, whether they are there, and their abilities. */
export async function findExternalPrograms(io: Io): Promise<readonly ExternalProgram[]> {
  // Which program would get a stored key does not depend on its value.
  const stored = (await namedSecrets(io)).map(({ name }) => [name, "stored"]);
  const env = { ...Object.fromEntries(stored), ...io.env };
  return Promise.all(externalNames(io).map((name) => findProgram(name, { cwd: io.cwd, env })));
}

/** The agents that profiles of the user describe, those of a registry, and the programs that Holdfast knows. */
export function externalNames(io: Pick<Io, "cwd" | "env">): readonly string[] {
  const own = [...readProfileAgents(agentPlaces(io)).map(({ name }) => name), ...installedAgents(io).names()];
  return [...new Set(own.filter((name) => !isIncluded(name))), ...EXTERNAL_AGENT_NAMES];
}

async function findProgram(name: string, io: Pick<Io, "cwd" | "env">): Promise<ExternalProgram> {
  try {
    const protocol = protocolOf(name, io);
    const { version } = await protocol.find();
    const { resume, steer, followUp, usage } = protocol.capabilities();
    const access = protocol.keyAccess?.();
    const abilities = [
      resume === "none" ? "sessions end with their process" : "resumes sessions",
      MESSAGES[steer],
      ...(followUp === "queue" ? ["keeps messages for after its answer"] : []),
      usage === "none" ? "reports no usage" : `reports usage per ${usage}`,
      protocol.ownFolders?.() === undefined ? "works in no sandbox" : "works in a sandbox",
      ...(access === undefined ? [] : [keyReachText(access)]),
    ];
    return { name, status: "ready", found: `${name} ${version} (${abilities.join(", ")})` };
  } catch (error) {
    if (!HoldfastError.is(error)) throw error;
    const { code, message, got, fix } = error;
    if (code === "program_missing" && isIncluded(name))
      return { name, status: "missing", found: `${name} is not installed` };
    const found = got === undefined ? message : `${message}: ${got}`;
    return { name, status: "refused", found, ...(fix === undefined ? {} : { fix }) };
  }
}

const MESSAGES: Readonly<Record<ExternalAgentCapabilities["steer"], string>> = {
  inject: "takes messages while it works",
  restart: "is interrupted for a message",
  none: "takes no message while it works",
};

export function installedAgents(io: Pick<Io, "cwd" | "env">): InstalledAgents {
  return new InstalledAgents(installedAgentsFolder(io));
}

export function isOfProfile(name: string, places: Pick<AgentPlaces, "home">): boolean {
  return readProfileAgents(places).some((profile) => profile.name === name);
}

/** A profile of the user counts more than an installed agent of its name, and an installed agent more than a program on the PATH. */
function protocolOf(name: string, io: Pick<Io, "cwd" | "env">): ExternalAgentProtocol {
  const place = { environment: io.env, folder: io.cwd };
  // No registry replaces an agent with an adapter of its own.
  const own = ["claude-code", "codex", "pi"].includes(name) ? knownAgent(name, place) : undefined;
  if (own !== undefined) return own;
  if (!isIncluded(name) && isOfProfile(name, agentPlaces(io)))
    return profileAgent(findUsableProfile(name, agentPlaces(io)), place);
  const store = installedAgents(io);
  const installed = store.get(name);
  if (installed !== undefined) return new AcpAgent({ facts: store.facts(installed), ...place });
  return knownAgent(name, place) ?? profileAgent(findUsableProfile(name, agentPlaces(io)), place);
}
