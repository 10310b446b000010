// `AgentTree`: the agents that an agent file may start, with the hooks, scripts and skills of all of them.
// Each is looked up once.
//
//   agent-tree-1. An agent has one definition in a process, however many agents may start it and however
//       often its file is loaded. Agents that may start it in different sandboxes are refused, unless it
//       names one.
//   - A process that continues a session begins those below it, and the session itself where it has read no
//     agent yet. They have the hooks, servers and scripts of that moment, as in every other process. A mistake
//     in these refuses such a session and no continued one, which keeps those of its start.
//   - Among agents that may start all others, only the one that a person starts may start the rest of them.
//   - The agents that a pushed file starts are not made here. Each is an agent of its own, whose version the
//     coordinator chooses when a child begins.
//   - An agent below another one has the name by which the file above names it (`claude:reviewer`). Two files
//     of one name are then two agents. They are refused where both have the bare name.

import {
  agentsByName,
  findScripts,
  hookAgentsOf,
  listAgents,
  proceduralAgent,
  scriptsOf,
  usableRecord,
  withHooks,
  type AgentPlaces,
  type AgentRecord,
  type ListedAgent,
  type OfferedAgent,
  type ProceduralAgentOptions,
  type Script,
  type Skill,
  type Tool,
  unmetDemands,
} from "@holdfast/agents";
import { defined, HoldfastError } from "@holdfast/core";
import type { Agent, TaskDefinition } from "@holdfast/runtime";
import { taskToolsOf } from "./agent-tasks.ts";
import type { MachinePrograms } from "../programs/machine-programs.ts";
import type { SessionVariables } from "./session-variables.ts";

/** The agents that a file may start and the skills of all of them, looked up once. */
export interface AgentTreeOptions {
  readonly variables: SessionVariables;
  /** Sessions that a usage limit pauses continue without a person at its reset, whatever the agent files say. */
  readonly resumesAtReset?: boolean;
  /** The tasks that a file of code exports. It may throw, and may be called twice for one file. */
  readonly loadTasks?: ((file: string) => Promise<readonly TaskDefinition[]>) | undefined;
  /** External agents; `undefined` where none of the agents may start another one. */
  readonly programs: MachinePrograms | undefined;
}

export class AgentTree {
  /** `undefined` where skills are not checked. */
  readonly skills: readonly Skill[] | undefined;
  readonly places: AgentPlaces;
  /** Demands that are for runners, where this process is none. */
  readonly demandNotes: string[] = [];
  /** The sandboxes of the agents that were made. */
  readonly sandboxes = new Set<string>();
  /** Why no session of an agent can begin here, by its name. */
  readonly refusals = new Map<string, HoldfastError>();
  readonly variables: SessionVariables;
  readonly #resumesAtReset: boolean;
  readonly #loadTasks: AgentTreeOptions["loadTasks"];
  readonly #programs: MachinePrograms | undefined;
  /** agent-tree-1. The agents below the first one, by their names. */
  readonly #made = new Map<string, { readonly sandbox: string | null; readonly agent: Promise<Agent> }>();
  #listed: readonly ListedAgent[] | undefined;
  #named: ((name: string) => ListedAgent | undefined) | undefined;
  #externals: readonly string[] | undefined;

  constructor(
    places: AgentPlaces,
    skills: readonly Skill[] | undefined,
    { variables, resumesAtReset = false, loadTasks, programs }: AgentTreeOptions,
  ) {
    this.places = places;
    this.skills = skills;
    this.variables = variables;
    this.#resumesAtReset = resumesAtReset;
    this.#loadTasks = loadTasks;
    this.#programs = programs;
  }

  /** The fields that the call which starts a session sets in place of the agent files. */
  get overrides(): Pick<AgentRecord, "resumeAtReset"> {
    return this.#resumesAtReset ? { resumeAtReset: true } : {};
  }

  /** @throws HoldfastError for hooks that cannot be run, unless a session is continued. */
  withHooks(record: AgentRecord): AgentRecord {
    return this.#begun(record, () =>
      withHooks(record, this.places, (places) => findScripts(places).map(withInactive)),
    );
  }

  /** @throws HoldfastError for a server that cannot be used, unless a session is continued. */
  withServers(record: AgentRecord): AgentRecord {
    return this.#begun(record, () => this.variables.withServers(record));
  }

  /** The record with which a session begins. */
  #begun(record: AgentRecord, begin: () => AgentRecord): AgentRecord {
    if (this.skills !== undefined) return begin();
    try {
      return begin();
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      this.refusals.set(record.name, error);
      return record;
    }
  }

  /** A session that has begun keeps the scripts of its start. @throws HoldfastError for one that cannot be used. */
  checkScripts(record: AgentRecord): void {
    if (this.skills === undefined) return;
    const scripts = scriptsOf(record, this.places, () => findScripts(this.places).map(withInactive));
    this.demandNotes.push(...checkDemands(record, scripts, this.places.labels));
  }

  /** @throws HoldfastError for a script that cannot be used, unless a session is continued. */
  procedural(
    record: AgentRecord & { readonly script: string },
    parts: Pick<ProceduralAgentOptions, "calls" | "environment" | "workspace" | "place">,
    version: string | undefined,
  ): Agent {
    const script = this.#scriptOf(record);
    const secrets = [...new Set([...record.secrets, ...this.variables.secretsOf(record)])];
    return proceduralAgent(
      { ...record, secrets },
      {
        ...parts,
        places: this.places,
        script,
        requiredVariables: this.variables.requiredOf(record),
        ...defined({ version }),
      },
    );
  }

  #scriptOf(record: AgentRecord): Script | undefined {
    try {
      return scriptsOf(record, this.places, () => findScripts(this.places).map(withInactive))[0];
    } catch (error) {
      if (this.skills !== undefined || !HoldfastError.is(error)) throw error;
      return undefined; // A new session says that there is no version of it.
    }
  }

  /** The tasks of the project that are tools of an agent. @throws HoldfastError for a file that may not be loaded. */
  async taskToolsOf(record: Pick<AgentRecord, "tasks" | "source">): Promise<readonly Tool[]> {
    return taskToolsOf(record, this.places, this.#loadTasks);
  }

  /** The agents that an agent may start, or that its hooks name. @throws HoldfastError for a name without a file. */
  childrenOf(
    { agents, source }: Pick<AgentRecord, "agents" | "source">,
    { isFirst = false }: { readonly isFirst?: boolean } = {},
  ): readonly AgentRecord[] {
    if (agents.length === 0 || this.places.pushed !== undefined) return [];
    // A session that has begun keeps the agents of its start.
    if (this.skills !== undefined)
      for (const name of agents)
        if (this.#isExternalName(name)) this.#programs?.refuseDoubled(name, this.places);
    if (agents.includes("*"))
      return this.#loaded().filter(
        // Only the first agent that may start all others starts the rest of them.
        (record) => record.source.path !== source.path && (isFirst || !record.agents.includes("*")),
      );
    return agents
      .filter((name) => !this.#isExternal(name))
      .map((name) => {
        const record = this.#recordNamed(name);
        if (record !== undefined) return record;
        throw invalidAgents(`the agent may start "${name}", and no agent file has this name`, source.path);
      });
  }

  /** The agents that a pushed file may start. */
  othersOf({ agents }: Pick<AgentRecord, "agents">): readonly OfferedAgent[] {
    const { pushed } = this.places;
    return pushed === undefined ? [] : agents.map((name) => pushed.agent(name));
  }

  /** @throws HoldfastError for agents that start each other without end. */
  refuseCircles(first: AgentRecord): void {
    const seen = new Map<string, string>();
    const visit = (record: AgentRecord, above: readonly AgentRecord[]): void => {
      const { name, source } = record;
      const way = [...above, record];
      if (above.some((one) => one.source.path === source.path)) {
        const names = way.map((one) => one.name).join(" → ");
        throw invalidAgents(`agents start each other without end: ${names}`, source.path);
      }
      const known = seen.get(name);
      if (known !== undefined && known !== source.path)
        throw sameNames(name, [known, source.path], source.dialect);
      if (known !== undefined) return;
      seen.set(name, source.path);
      if (isProcedural(record)) return;
      const hooks = { agents: hookAgentsOf(this.withHooks(record)), source: record.source };
      const below = [...this.childrenOf(record, { isFirst: record === first }), ...this.childrenOf(hooks)];
      for (const child of below) visit(child, way);
    };
    visit(first, []);
  }

  /** agent-tree-1. @throws HoldfastError for an agent that would have two sandboxes. */
  once(record: AgentRecord, make: () => Promise<Agent>): Promise<Agent> {
    const { name, sandbox, source } = record;
    const known = this.#made.get(name);
    if (known === undefined) {
      const agent = make();
      this.#made.set(name, { sandbox, agent });
      return agent;
    }
    if (known.sandbox === sandbox) return known.agent;
    throw invalidAgents(
      `agents in different sandboxes may start "${name}", which names none: ${known.sandbox} and ${sandbox}`,
      source.path,
      "name its sandbox in this file (`holdfast: { sandbox: … }`)",
    );
  }

  #recordNamed(name: string): AgentRecord | undefined {
    this.#named ??= agentsByName(this.#allFiles());
    const file = this.#named(name);
    const record = file === undefined ? undefined : usableRecord(file);
    return record === undefined ? undefined : { ...record, name };
  }

  #loaded(): readonly AgentRecord[] {
    return this.#allFiles().flatMap(({ status, record }) =>
      status === "loaded" && record !== null ? [record] : [],
    );
  }

  #allFiles(): readonly ListedAgent[] {
    return (this.#listed ??= listAgents(this.places));
  }

  /** The external agents among these names. In a session that has begun, an agent file of the same name counts more. */
  externalsOf(agents: readonly string[], root: string): readonly Agent[] {
    if (this.places.pushed !== undefined) return [];
    const place = { places: this.places, folder: root };
    return [...new Set(agents)]
      .filter((name) => this.#isExternal(name))
      .flatMap((name) => this.#programs?.agent(name, place) ?? []);
  }

  #isExternal(name: string): boolean {
    return this.#isExternalName(name) && this.#recordNamed(name) === undefined;
  }

  #isExternalName(name: string): boolean {
    this.#externals ??= this.#programs?.names(this.places) ?? [];
    return this.#externals.includes(name);
  }
}

function sameNames(name: string, paths: readonly string[], tool: string): HoldfastError {
  return invalidAgents(
    `two files have the agent "${name}", and a session may start only one agent of a name`,
    paths.join(", "),
    `name the second one with its tool in \`agents\`: \`${tool}:${name}\``,
  );
}

function invalidAgents(message: string, at: string, fix?: string): HoldfastError {
  return new HoldfastError("agent_invalid", message, {
    at,
    fix:
      fix ??
      "correct the agents that this file names, also as hooks; `holdfast agents list` shows all agents",
  });
}

/** An inactive item of a coordinator refuses the start of a session, and not the agent: sessions that exist go on. */
export function withInactive<Found extends Skill | Script>(found: Found): Found {
  return found.status === "inactive" ? { ...found, status: "loaded" } : found;
}

/** Whether a script is the whole agent. */
export function isProcedural(record: AgentRecord): record is AgentRecord & { readonly script: string } {
  return record.script !== undefined;
}

/**
 * Whether the runner that offers an agent has the labels which the agent and its scripts demand (demands-1).
 *
 * @param labels those of the runner; `undefined` in a process that is none.
 * @returns notes on demands that do not count here. @throws HoldfastError `agent_invalid` for one that the
 *   runner does not meet.
 */
function checkDemands(
  { name: agent, labels: own, source }: Pick<AgentRecord, "name" | "labels" | "source">,
  scripts: readonly Script[],
  labels: Readonly<Record<string, string>> | undefined,
): readonly string[] {
  const demanding = [
    [`agent "${agent}"`, own ?? {}, source.path] as const,
    ...scripts.map(
      ({ name, manifest, path }) =>
        [`the script "${name}" of agent "${agent}"`, manifest?.demands ?? {}, path] as const,
    ),
  ];
  return demanding.flatMap(([what, demands, at]) => {
    const unmet = unmetDemands(demands, labels ?? {});
    const [first] = unmet;
    if (first === undefined) return [];
    if (labels === undefined)
      return [`${what} demands ${unmet.join(", ")} of a runner, and runs in this process all the same`];
    throw new HoldfastError("agent_invalid", `${what} demands ${unmet.join(", ")}, which this runner lacks`, {
      at,
      fix: `start the runner with --label ${first.includes("=") ? first : `${first}=true`} if its machine has that, or start another runner`,
    });
  });
}
