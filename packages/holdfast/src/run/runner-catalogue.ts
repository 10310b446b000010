// `catalogueOf`: the option of a runner by which it offers the agent files at its coordinator.

import { PROVIDER_KEYS, readEnvironments, type AgentRecord, type OfferedAgent } from "@holdfast/agents";
import { type Redactor, type WantedSecrets, dataFolder } from "@holdfast/system";
import { SessionEnvironments, type RunnerOptions, type RunnerPolicy } from "@holdfast/runner";
import type { Machine } from "@holdfast/machine";
import { environmentsFile } from "../library/given-environment.ts";
import { agentPlaces, type AgentSearch } from "../agents/agent-places.ts";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine } from "@holdfast/terminal/frame/plain-text";
import type { Agent } from "@holdfast/runtime";
import type { LoadedAgent } from "./load-agent.ts";
import type { FoundPolicy } from "@holdfast/place/settings/runner-policy-file";

const MESSAGE_CHARS = 300;

/** The agents that a runner offers besides, and those of them that were loaded from files. */
interface OwnAgents {
  readonly agents: readonly Agent[];
  readonly loaded: readonly Pick<LoadedAgent, "agent" | "record">[];
}

/**
 * The agents that the runner makes of the agent files at its coordinator, where its policy allows some.
 *
 * @param offered called with the records of the current versions, after each change of the catalogue.
 */
export async function catalogueOf(
  { agentFiles, ...policy }: FoundPolicy["policy"],
  search: AgentSearch,
  held: Redactor,
  own: OwnAgents,
  io: Io,
  offered: (current: readonly AgentRecord[]) => void,
): Promise<Pick<RunnerOptions, "catalogueAgents">> {
  if (agentFiles === undefined) return {};
  const { pushedAgents } = await import("@holdfast/machine/pushed-agents");
  const home = io.env["HOME"] ?? "";
  const { thisMachine, userSettings } = await import("../agents/this-machine.ts");
  const { notes: _notes, ...settings } = userSettings(search, search.mode);
  return {
    catalogueAgents: pushedAgents({
      places: agentPlaces(search, { project: search.cwd }),
      make: (record, places, version) =>
        thisMachine(search).agentOfRecord(record, places, { ...settings, version, isOffered: true }),
      own: offeredOf(own),
      offered,
      dataFolder: dataFolder(io),
      policy: { ...policy, agentFiles },
      sandbox: settings.sandbox.name,
      refused: (what, reason) =>
        io.note(
          `${io.notes.symbols.warn} ${plainLine(`the ${what} is not offered: ${reason}`, MESSAGE_CHARS)}`,
        ),
      announced: (reason) => announcedReason(reason, held, home),
    }),
  };
}

/** The agents of the runner's own code and files, with those that they name. */
function offeredOf({ agents, loaded }: OwnAgents): ReadonlyMap<string, OfferedAgent> {
  const records = new Map(loaded.map(({ agent, record }) => [agent, record]));
  const offered = new Map<string, OfferedAgent>();
  const add = (agent: Agent): void => {
    const { name, description } = agent;
    if (offered.has(name)) return;
    offered.set(name, { name, description, record: records.get(agent) });
    for (const below of agent.agents) add(below);
  };
  for (const agent of agents) add(agent);
  return offered;
}

/**
 * The environments of the coordinator for agents of the runner, where its policy gives them, with the machine that
 * makes these agents.
 */
export async function coordinatorEnvironments(
  { agentFiles }: FoundPolicy["policy"],
  cwd: string,
  held: Redactor,
  io: Pick<Io, "env">,
): Promise<{ readonly environments?: SessionEnvironments; readonly machine?: Machine }> {
  if (agentFiles?.coordinatorEnvironments !== true) return {};
  const environments = new SessionEnvironments((values) => {
    for (const value of values) held.add(value);
  });
  const { newMachine } = await import("../agents/this-machine.ts");
  const machine = newMachine({ cwd, env: io.env }, (sessionId) => environments.of(sessionId));
  return { environments, machine };
}

/**
 * With the secrets that agents pushed later may need. These are the keys of all providers, and the secrets of the
 * environments that the policy gives.
 */
export function withPushedSecrets(
  { required, optional }: WantedSecrets,
  { environments: given = [] }: NonNullable<RunnerPolicy["agentFiles"]>,
  io: Pick<Io, "cwd" | "env">,
): WantedSecrets {
  const all = readEnvironments(environmentsFile(io));
  const ofEnvironments = given
    .flatMap((name) => Object.entries(all[name] ?? {}))
    .flatMap(([key, { secret }]) => (secret === true ? key : []));
  const names = [...Object.values(PROVIDER_KEYS), ...ofEnvironments];
  return { required, optional: [...optional, ...names.map((name) => ({ anyOf: [name], isAsked: false }))] };
}

/** A reason for people at the coordinator: as in the runner's own output, and without the place of the home folder. */
export function announcedReason(reason: string, redactor: Redactor, home: string): string {
  const text = redactor.text(reason);
  return plainLine(home.length > 1 ? text.replaceAll(home, "~") : text, MESSAGE_CHARS);
}
