// `KnownAgents`: the agents a process can run, by name and the version their author gave them.
//
//   - There is one agent for each name and version. A session that is resumed runs in the version it was
//     started with. Another version takes it over only when a person allows that.
//   agent-registry-3. A coordinator chooses the version of a child by its name where it has the versions of
//       this agent. This process knows some of them, and none of them is the newest.
//   agent-registry-2. Where definitions are replaced, the newest one of a name and version counts, as after a
//       restart with edited code. Two of them that one call gives are a mistake there, too.

import { ConflictError, HoldfastError, NotFoundError, type AgentRef } from "@holdfast/core";
import { inputNow } from "./agent-input.ts";
import type { Agent } from "./define.ts";

export class KnownAgents {
  /** The versions of each name, in the order in which they became known. */
  readonly #agents = new Map<string, Agent[]>();
  /** agent-registry-3. The current versions, as this process knows them; `undefined` for one that it does not know. */
  readonly #chosen = new Map<string, Agent | undefined>();

  get names(): readonly string[] {
    return [...this.#agents.keys()];
  }

  /**
   * Add agents and the agents that they name. Answers whether any of these agents is new.
   *
   * @param added called for each new one. @param together the agents that the same call has given before.
   * @throws ConflictError
   */
  addAll(
    agents: readonly Agent[],
    mayReplace: boolean,
    added: (agent: Agent) => void,
    together = new Set<Agent>(),
  ): boolean {
    const isNew = agents.map((agent) => {
      const isAmbiguous = hasTwin(agent, together);
      together.add(agent);
      if (!this.#add(agent, mayReplace && !isAmbiguous)) return false;
      added(agent);
      this.addAll(agent.agents, mayReplace, added, together);
      return true;
    });
    return isNew.includes(true);
  }

  /** Answers whether it is a new one. @throws ConflictError, unless it may replace (agent-registry-2). */
  #add(agent: Agent, mayReplace: boolean): boolean {
    const known = this.#exactly(agent);
    if (known === agent) return false;
    if (known !== undefined && !mayReplace) {
      throw new ConflictError(
        "usage",
        `two different agents are named "${agent.name}" and have the version "${agent.version}"`,
        {
          expected: "one agent for each name and version in a runtime",
          fix:
            "rename one of them, or give it another `version`. If a development server has loaded an edited file again, " +
            "make the runtime by createRuntime({ replaceAgents: true })",
        },
      );
    }
    const others = (this.#agents.get(agent.name) ?? []).filter((one) => one !== known);
    this.#agents.set(agent.name, [...others, agent]);
    return true;
  }

  /** agent-registry-3. @param current the versions that are current now, as far as they are known here. */
  chooseElsewhere(agents: readonly Agent[], current: readonly Agent[]): void {
    for (const { name } of agents) this.#chosen.set(name, undefined);
    for (const agent of current) this.#chosen.set(agent.name, agent);
  }

  /** agent-registry-2. Whether another definition has taken the place of this one. */
  isReplaced(agent: Agent | undefined): boolean {
    return agent !== undefined && this.#exactly(agent) !== agent;
  }

  #exactly({ name, version }: AgentRef): Agent | undefined {
    return this.#agents.get(name)?.find((one) => one.version === version);
  }

  /** The current version where a coordinator chooses it, or else the one that became known last. */
  latest(name: string): Agent | undefined {
    return this.#chosen.get(name) ?? this.#agents.get(name)?.at(-1);
  }

  /** @throws HoldfastError `invalid_input` for an input that does not match the schema of the agent that it is for. */
  acceptInput(name: string, version: string | undefined, input: unknown): unknown {
    const agent = version === undefined ? this.latest(name) : this.#exactly({ name, version });
    return agent === undefined ? input : inputNow(agent, input);
  }

  /** The version of children of this name; `undefined` where this process does not know it. */
  describe(name: string): AgentRef | undefined {
    // mutant: child-in-a-known-version
    if (this.#chosen.has(name)) return undefined;
    const agent = this.latest(name);
    return agent === undefined ? undefined : { name, version: agent.version };
  }

  /**
   * The agent a session is to be given to.
   *
   * @throws HoldfastError `agent_not_found` or `agent_version`.
   */
  of(sessionId: string, { name, version }: AgentRef, anyVersion: boolean): Agent {
    const versions = this.#agents.get(name);
    if (versions === undefined) {
      throw new NotFoundError(
        "agent_not_found",
        `session ${sessionId} needs agent "${name}", which is not known here`,
        {
          expected: this.#agents.size === 0 ? "an agent; none was given" : `one of ${this.names.join(", ")}`,
          fix: "give it to createRuntime({ agents })",
        },
      );
    }
    const agent =
      versions.find((one) => one.version === version) ?? (anyVersion ? versions.at(-1) : undefined);
    if (agent !== undefined) return agent;
    throw new HoldfastError(
      "agent_version",
      `session ${sessionId} was started by version "${version}" of agent "${name}", which is not known here`,
      {
        got: versions.map((one) => `"${one.version}"`).join(", "),
        expected: `version "${version}"`,
        fix: "resume it with that code, or with --accept-drift if this version asks for the same things in the same order",
      },
    );
  }
}

/** agent-registry-2. */
function hasTwin(agent: Agent, together: ReadonlySet<Agent>): boolean {
  const isTwin = (one: Agent): boolean =>
    one !== agent && one.name === agent.name && one.version === agent.version;
  return [...together].some(isTwin);
}
