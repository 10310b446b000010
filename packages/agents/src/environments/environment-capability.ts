// `environmentCapability`: the variables of a session, as a line in the system prompt. The shell gets their
// values. Also `ownValues`, those of its MCP servers.
//
// A session keeps the values of its start, and of secrets their names. No value is in a prompt.

import type { TaskContext } from "@holdfast/runtime";

import type { OwnValues } from "../mcp/mcp-servers.ts";
import type { Capability } from "../model-loop/capability.ts";
import { readEnvironments } from "./environment-file.ts";
import { sessionEnvironment, type SessionEnvironment } from "./session-environment.ts";

/** @param path the file of environments. */
export function environmentCapability(path: string): Capability<SessionEnvironment> {
  return {
    name: "environment",
    prepare: async ({ agent, environment: given }) => {
      const environment = sessionEnvironment(agent, readEnvironments(path), given);
      return agent.variables.length === 0 ? null : environment;
    },
    offer: ({ values, secrets }) => ({
      instructions: `The shell has these environment variables: ${[...Object.keys(values), ...secrets].join(", ")}.`,
    }),
  };
}

/** The values of secrets are looked up here, so that no record has them. @throws as `task.secret` does. */
export function ownValues(
  environment: SessionEnvironment | undefined,
  task: Pick<TaskContext, "secret">,
): { readonly own?: OwnValues } {
  if (environment === undefined) return {};
  const secrets = environment.secrets.map((name) => [name, task.secret(name)] as const);
  return { own: { values: environment.values, secrets: Object.fromEntries(secrets) } };
}
