// The tools that a turn offers to the model. Pure.

import type { AgentRecord } from "../../record/agent-record.ts";
import { READ_RESULT } from "../compaction/read-result.ts";
import { submitOutput } from "../tools/loop-tools.ts";
import { matchesName } from "../../record/tool-names.ts";
import type { Tool } from "../tools/tool.ts";
import { withCondition } from "./tool-conditions.ts";

/**
 * The tools of an agent's record, by name.
 *
 * @param hasEarlier whether results can be read that the conversation does not show whole.
 */
export function offeredTools(
  agent: AgentRecord,
  all: readonly Tool[],
  hasEarlier: boolean,
): ReadonlyMap<string, Tool> {
  const { tools, deniedTools, outputSchema, planFirst } = agent;
  const isOffered = ({ offered: { name } }: Tool): boolean => {
    if (deniedTools.some((pattern) => matchesName(pattern, name))) return false;
    if (name === "propose_plan") return planFirst;
    if (name === READ_RESULT) return hasEarlier;
    return tools === null || tools.some((pattern) => matchesName(pattern, name));
  };
  const offered = all.filter(isOffered).map((tool) => withCondition(tool, agent));
  const submit = outputSchema === null ? [] : [submitOutput(outputSchema)];
  return new Map([...offered, ...submit].map((tool) => [tool.offered.name, tool]));
}
