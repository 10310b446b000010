// The names of the external agents (`externalAgentName`), apart from their code, which loads slowly.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Io } from "../frame/command.ts";
import { dataFolder } from "../place/coordinator-storage.ts";

export const EXTERNAL_AGENT_NAMES = ["claude-code", "codex", "opencode", "gemini", "pi"] as const;

export type ExternalAgentName = (typeof EXTERNAL_AGENT_NAMES)[number];

/** Before the name, it stands for the file of the agent in a session. */
export const EXTERNAL = "external:";

/** The external agent that an argument of `run` names. A file of this name in the folder counts more. */
export function externalAgentName(
  nameOrPath: string,
  { cwd, env }: Pick<Io, "cwd" | "env">,
): string | undefined {
  const isExact = nameOrPath.startsWith(EXTERNAL);
  const name = isExact ? nameOrPath.slice(EXTERNAL.length) : nameOrPath;
  const found = EXTERNAL_AGENT_NAMES.find((one) => one === name) ?? installedName(name, { cwd, env });
  return isExact || found === undefined || !existsSync(resolve(cwd, name)) ? found : undefined;
}

/** The folder of the agents that the user installed from a registry. */
export function installedAgentsFolder(io: Pick<Io, "cwd" | "env">): string {
  return join(dataFolder(io), "external-agents");
}

function installedName(name: string, io: Pick<Io, "cwd" | "env">): string | undefined {
  const isName = /^[a-z][a-z0-9-]*$/.test(name);
  return isName && existsSync(join(installedAgentsFolder(io), name, "install.json")) ? name : undefined;
}
