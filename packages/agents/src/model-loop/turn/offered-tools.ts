// The tools that a turn offers to the model. Pure.

import type { AgentRecord } from "../../agent-files/agent-record.ts";
import { submitOutput } from "../loop-tools.ts";
import { matchesName } from "../permission/permissions.ts";
import type { Tool } from "../tool.ts";

/** The tools of an agent's record, by name. */
export function offeredTools(agent: AgentRecord, all: readonly Tool[]): ReadonlyMap<string, Tool> {
  const { tools, deniedTools, outputSchema, planFirst } = agent;
  const isOffered = ({ offered: { name } }: Tool): boolean => {
    if (deniedTools.some((pattern) => matchesName(pattern, name))) return false;
    if (name === "propose_plan") return planFirst;
    return tools === null || tools.some((pattern) => matchesName(pattern, name));
  };
  const offered = all.filter(isOffered);
  const submit = outputSchema === null ? [] : [submitOutput(outputSchema)];
  return new Map([...offered, ...submit].map((tool) => [tool.offered.name, tool]));
}
