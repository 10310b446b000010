// `KnownAgents`: the agents a process can run, by name and the version their author gave them.
//
//   agent-registry-1. There is one agent for each name and version. A session that is resumed runs in the
//       version it was started with. Another version takes it over only when a person allows that.

import { ConflictError, HoldfastError, NotFoundError, type AgentRef } from "@holdfast/core";
import type { Agent } from "./define.ts";

export class KnownAgents {
  /** The versions of each name, in the order in which they became known. */
  readonly #agents = new Map<string, Agent[]>();

  get names(): readonly string[] {
    return [...this.#agents.keys()];
  }

  /** Answers whether it is a new one. @throws ConflictError */
  add(agent: Agent): boolean {
    const versions = this.#agents.get(agent.name) ?? [];
    const known = versions.find(({ version }) => version === agent.version);
    if (known === agent) return false;
    if (known !== undefined) {
      throw new ConflictError("usage", `two different agents are named "${agent.name}"`, {
        expected: "one agent for each name and version in a runtime",
        fix: "rename one of them, or give it another `version`",
      });
    }
    this.#agents.set(agent.name, [...versions, agent]);
    return true;
  }

  /** The version that became known last; children of this name are of it. */
  latest(name: string): Agent | undefined {
    return this.#agents.get(name)?.at(-1);
  }

  describe(name: string): AgentRef | undefined {
    const agent = this.latest(name);
    return agent === undefined ? undefined : { name, version: agent.version };
  }

  /**
   * agent-registry-1. The agent a session is to be given to.
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
