// `environmentCapability`: the variables of a session, as a line in the system prompt. The shell gets their
// values. Also `ownValues`, those of its MCP servers.
//
// A session keeps the values of its start, and of secrets their names. No value is in a prompt.

import type { Environments } from "@holdfast/core";
import type { TaskContext } from "@holdfast/runtime";

import type { OwnValues } from "@holdfast/mcp";
import type { AgentRecord } from "../record/agent-record.ts";
import { secretsOf } from "../tasks/shell-task.ts";
import type { Capability } from "../model-loop/capability.ts";
import { readEnvironments } from "./environment-file.ts";
import { sessionEnvironment, type SessionEnvironment } from "./session-environment.ts";

/**
 * @param path the file of environments.
 * @param stored those of the coordinator of a session; none by default.
 */
export function environmentCapability(
  path: string,
  stored?: StoredEnvironmentsOf,
): Capability<SessionEnvironment> {
  return {
    name: "environment",
    prepare: async ({ agent, environment: given }, { sessionId }) => {
      const released = await storedFor(agent, stored, sessionId);
      const environment = sessionEnvironment(agent, readEnvironments(path), given, released);
      return agent.variables.length === 0 ? null : environment;
    },
    offer: ({ values, secrets, stored: ofCoordinator = {} }) => {
      const names = [...Object.keys(values), ...secrets, ...Object.keys(ofCoordinator)];
      return { instructions: `The shell has these environment variables: ${names.join(", ")}.` };
    },
  };
}

/** The environments of the coordinator of a session, without the values of their secrets. May throw. */
export type StoredEnvironmentsOf = (sessionId: string) => Promise<Environments>;

/** Only an agent of the coordinator gets its environments. */
export async function storedFor(
  { source }: Pick<AgentRecord, "source">,
  stored: StoredEnvironmentsOf | undefined,
  sessionId: string,
): Promise<Environments> {
  return source.storedEnvironments === undefined || stored === undefined ? {} : stored(sessionId);
}

/** The values of secrets are looked up here, so that no record has them. @throws as `task.secret` does. */
export function ownValues(
  environment: SessionEnvironment | undefined,
  task: Pick<TaskContext, "secret">,
): { readonly own?: OwnValues } {
  if (environment === undefined) return {};
  return { own: { values: environment.values, secrets: secretsOf(environment, task) } };
}
