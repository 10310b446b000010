// `SessionAgents`: the agents of the sessions of one place, as a process that continues them would load them.

import type { Session } from "@holdfast/core";
import type { Database, StackDatabase } from "@holdfast/place/project";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { KnownAgents, type Agent } from "@holdfast/runtime";
import { loadAgents } from "../load-agent.ts";
import { agentOf } from "../recorded-agent.ts";

export class SessionAgents {
  readonly #place: Database;
  readonly #args: Arguments;
  readonly #io: Io;
  #given: Promise<KnownAgents> | undefined;

  /** @param args with the files of `--agents`, whose agents count more than those that sessions have recorded. */
  constructor(place: Database, args: Arguments, io: Io) {
    this.#place = place;
    this.#args = args;
    // Notes of a loading agent would not name the session.
    this.#io = Object.assign(Object.create(io) as Io, { note: () => {} });
  }

  /**
   * The agent that continues a session. A coordinator knows no source of an agent: `undefined` where no file of
   * `--agents` has it.
   *
   * @throws HoldfastError when it cannot be loaded, or has another version than the session began with.
   */
  async of(session: Session): Promise<Agent | undefined> {
    this.#given ??= this.#load();
    let known = await this.#given;
    if (!known.names.includes(session.agent.name)) {
      if (this.#place.coordinator !== undefined) return undefined;
      known = knownAgents([await agentOf(session, this.#place, this.#args, this.#io)]);
    }
    return known.of(session.sessionId, session.agent, false);
  }

  async #load(): Promise<KnownAgents> {
    const { sources = [] } = this.#place as Partial<StackDatabase>;
    const { cwd, env } = this.#io;
    const loaded: Agent[] = [];
    for (const file of [...this.#args.texts("agents"), ...sources])
      loaded.push(...(await loadAgents(file, { cwd, env, onSlow: () => {} })).map(({ agent }) => agent));
    return knownAgents(loaded);
  }
}

function knownAgents(agents: readonly Agent[]): KnownAgents {
  const known = new KnownAgents();
  known.addAll(agents, true, () => {});
  return known;
}
