// `checkDemands`: whether the runner that offers an agent has the labels which the agent and its scripts demand (demands-1).

import { unmetDemands, type AgentRecord, type Script } from "@holdfast/agents";
import { HoldfastError } from "@holdfast/core";

/**
 * @param labels those of the runner; `undefined` in a process that is none.
 * @returns notes on demands that do not count here. @throws HoldfastError `agent_invalid` for one that the runner does not meet.
 */
export function checkDemands(
  { name: agent, labels: own, source }: Pick<AgentRecord, "name" | "labels" | "source">,
  scripts: readonly Script[],
  labels: Readonly<Record<string, string>> | undefined,
): readonly string[] {
  const demanding = [
    [`agent "${agent}"`, own ?? {}, source.path] as const,
    ...scripts.map(
      ({ name, manifest, path }) =>
        [`the script "${name}" of agent "${agent}"`, manifest?.demands ?? {}, path] as const,
    ),
  ];
  return demanding.flatMap(([what, demands, at]) => {
    const unmet = unmetDemands(demands, labels ?? {});
    const [first] = unmet;
    if (first === undefined) return [];
    if (labels === undefined)
      return [`${what} demands ${unmet.join(", ")} of a runner, and runs in this process all the same`];
    throw new HoldfastError("agent_invalid", `${what} demands ${unmet.join(", ")}, which this runner lacks`, {
      at,
      fix: `start the runner with --label ${first.includes("=") ? first : `${first}=true`} if its machine has that, or start another runner`,
    });
  });
}
