// `announcedAgents` reads the agents that a runner registers with, and the schemas of their inputs.

import { checkBudget, defined, UsageError } from "@holdfast/core";
import { budgetOf, type RegisterRequest } from "@holdfast/proto";
import { textOf } from "../call/json-field.ts";
import type { OfferedAgent } from "../store/registry.ts";

/** They are part of the runner's stored document. */
const SCHEMA_BYTES = 262_144;
/** Characters of letters outside of the first plane count twice. */
const TAG_CHARS = 100;

/** The agents of a registration, with the schemas of their inputs. @throws UsageError */
export function announcedAgents(agents: RegisterRequest["agents"]): readonly OfferedAgent[] {
  let bytes = 0;
  return agents.map((agent, at) => {
    const inputSchema = textOf(agent.inputSchema, `agents/${at}/inputSchema`);
    bytes += agent.inputSchema?.length ?? 0;
    if (bytes > SCHEMA_BYTES)
      throw new UsageError("the schemas of the agents are too large", {
        at: `agents/${at}/inputSchema`,
        expected: `at most ${SCHEMA_BYTES} bytes for all agents together`,
        fix: "leave out the largest ones; inputs of these agents are then not checked at the start",
      });
    if (agent.tags.some((tag) => tag === "" || tag.length > TAG_CHARS))
      throw new UsageError("a tag of an agent is too long, or empty", {
        at: `agents/${at}/tags`,
        expected: `1 to ${TAG_CHARS} characters`,
        fix: "correct the tags of the agent",
      });
    return {
      ...offeredOf(agent),
      ...defined({ inputSchema }),
      ...(agent.inputOptional ? { isInputOptional: true as const } : {}),
      ...defined({
        description: agent.description,
        budget: agent.budget && checkBudget(budgetOf(agent.budget)),
      }),
      ...(agent.tags.length === 0 ? {} : { tags: agent.tags }),
      ...(agent.requiredVariables.length === 0 ? {} : { requiredVariables: agent.requiredVariables }),
      ...(agent.environments === undefined ? {} : { environments: agent.environments.names }),
    };
  });
}

/** The agent of a poll or a list, without its schema. */
export function offeredOf({
  name,
  version,
}: {
  readonly name: string;
  readonly version?: string | undefined;
}): Pick<OfferedAgent, "name" | "version"> {
  return version === undefined ? { name } : { name, version };
}
