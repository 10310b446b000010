// The names of the external agents (`externalAgentName`), apart from their code, which loads slowly.

import { existsSync } from "node:fs";
import { resolve } from "node:path";

export const EXTERNAL_AGENT_NAMES = ["claude-code", "codex", "opencode", "gemini", "pi"] as const;

export type ExternalAgentName = (typeof EXTERNAL_AGENT_NAMES)[number];

/** Before the name, it stands for the file of the agent in a session. */
export const EXTERNAL = "external:";

/** The external agent that an argument of `run` names. A file of this name in the folder counts more. */
export function externalAgentName(nameOrPath: string, cwd: string): ExternalAgentName | undefined {
  const isExact = nameOrPath.startsWith(EXTERNAL);
  const name = isExact ? nameOrPath.slice(EXTERNAL.length) : nameOrPath;
  const found = EXTERNAL_AGENT_NAMES.find((one) => one === name);
  return isExact || found === undefined || !existsSync(resolve(cwd, name)) ? found : undefined;
}
