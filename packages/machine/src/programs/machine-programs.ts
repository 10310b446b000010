// `MachinePrograms`: the agents of external programs in a process. It is loaded only where an agent may start
// others, because the adapters take long to load.

import type { AgentPlaces } from "@holdfast/agents";
import type { ChosenProgram, ExternalAgentProtocol } from "@holdfast/programs";
import type { Agent } from "@holdfast/runtime";
import { refuseDoubledName } from "./doubled-names.ts";
import { externalAgentOf, externalNames, protocolOf, type ExternalPlace } from "./external-agents.ts";
import type { MachineOptions } from "../machine-options.ts";
import { projectRulesOf } from "../project-rules.ts";

export class MachinePrograms {
  readonly #options: Pick<MachineOptions, "user" | "deleteSession">;
  /** One agent for each program and folder, because the tasks of a process are known by their names. */
  readonly #agents = new Map<string, Agent>();
  /** The adapters of these agents. Each remembers what its program has said of itself. */
  readonly #protocols = new Map<string, ExternalAgentProtocol>();

  constructor(options: Pick<MachineOptions, "user" | "deleteSession">) {
    this.#options = options;
  }

  /** The agent of an external program. Its sessions look for the program. */
  agent(name: string, place: ExternalPlace): Agent {
    const { places, folder } = place;
    const key = keyOf(name, place);
    const made = this.#agents.get(key);
    if (made !== undefined) return made;
    const { user, deleteSession } = this.#options;
    return externalAgentOf(name, place, {
      protocol: this.#protocol(name, place),
      projectRules: projectRulesOf(places, user),
      deleteSession:
        deleteSession === undefined ? undefined : (id) => deleteSession(id, { cwd: folder, env: places.env }),
      made: (agent) => void this.#agents.set(key, agent), // Agents may start each other.
      startable: (started) => this.agent(started, place),
    });
  }

  /**
   * Looks at the program before a session is made for it.
   *
   * @throws HoldfastError when the program is missing or too old.
   */
  async check(name: string, place: ExternalPlace, chosen: ChosenProgram | undefined): Promise<void> {
    await this.#protocol(name, place).find(chosen);
  }

  #protocol(name: string, place: ExternalPlace): ExternalAgentProtocol {
    const key = keyOf(name, place);
    const protocol = this.#protocols.get(key) ?? protocolOf(name, place);
    this.#protocols.set(key, protocol);
    return protocol;
  }

  names(places: AgentPlaces): readonly string[] {
    return externalNames(places);
  }

  /** @throws HoldfastError `agent_invalid` for a name that an agent file has, too. */
  refuseDoubled(name: string, places: AgentPlaces): void {
    refuseDoubledName(name, places);
  }
}

function keyOf(name: string, { places, folder }: ExternalPlace): string {
  return `${name} ${folder} ${places.servesOthers === true}`;
}
