// `worksInFolder`: whether sessions of an agent may change the files of a folder. It is apart from the
// warning, whose modules are loaded only then.

import type { AgentSource } from "@holdfast/machine/agent-source";
import type { Agent } from "@holdfast/runtime";
import { everyAgent } from "../agent-tree.ts";

/** The tasks of `defineWorkspaceTasks` that change files. */
export const CHANGING_TASKS: readonly string[] = ["write_file", "edit_file", "shell", "git_commit"];

export interface PlacedAgent {
  readonly agent: Agent;
  readonly source: AgentSource;
}

/** An agent of code works in a folder where it, or an agent below it, declares such a task. */
export function worksInFolder({ agent, source }: PlacedAgent): boolean {
  if (source.kind !== "code") return true;
  return [...everyAgent(agent)].some(({ tasks }) => tasks.some(({ name }) => CHANGING_TASKS.includes(name)));
}
