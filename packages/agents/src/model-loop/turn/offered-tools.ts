// The tools that a turn offers to the model (`offeredTools`), and when each of them can be called (`when` of
// an agent's record). Pure.
//
//   - A tool that cannot be called yet is offered all the same, and its description says when. The list of
//     tools stays the same during the session, so that the provider's prompt cache stays valid.
//   - The result that fulfils a condition says that the tool can be called now.

import type { AgentRecord } from "../../record/agent-record.ts";
import { READ_RESULT } from "../compaction/read-result.ts";
import { submitOutput } from "../tools/loop-tools.ts";
import { matchesName } from "../../record/tool-names.ts";
import type { Tool } from "../tools/tool.ts";

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

type Conditions = Pick<AgentRecord, "when">;

function withCondition(tool: Tool, { when }: Conditions): Tool {
  const after = when[tool.offered.name]?.after;
  if (after === undefined) return tool;
  const { offered } = tool;
  const description = `${offered.description} It can be called only after a successful call of ${after.join(" and ")}.`;
  return { ...tool, offered: { ...offered, description } };
}

/** @returns why a tool cannot be called yet. */
export function whyNotYet(
  tool: string,
  { when }: Conditions,
  succeeded: readonly string[],
): string | undefined {
  const missing = when[tool]?.after.filter((name) => !succeeded.includes(name)) ?? [];
  return missing.length === 0
    ? undefined
    : `${tool} is not possible yet: first a call of ${missing.join(" and ")} must succeed.`;
}

/** The tools with a condition that names this tool have waited for its success. */
export function noteSuccess(
  tool: string,
  { when }: Conditions,
  before: readonly string[],
): { readonly succeeded: readonly string[]; readonly opened: readonly string[] } {
  const isAwaited = Object.values(when).some(({ after }) => after.includes(tool));
  if (!isAwaited || before.includes(tool)) return { succeeded: before, opened: [] };
  const succeeded = [...before, tool];
  const opened = Object.keys(when).filter(
    (name) =>
      whyNotYet(name, { when }, before) !== undefined && whyNotYet(name, { when }, succeeded) === undefined,
  );
  return { succeeded, opened };
}
