// The usage of a session of an external agent, summed over its turns (`usageAfter`). Pure.

import type { TokenUsage } from "@holdfast/core";

import { modelPrices } from "@holdfast/agents";
import type { ExternalState, ExternalUsage } from "../external-state.ts";

const prices = modelPrices();

/** external-agent-4. */
export function usageAfter(before: ExternalUsage, used: readonly TokenUsage[]): ExternalUsage {
  return used.reduce(
    (sum, one) => ({
      inputTokens: sum.inputTokens + one.inputTokens,
      outputTokens: sum.outputTokens + one.outputTokens,
      costMicroUsd: added(sum.costMicroUsd, prices(one)),
    }),
    before,
  );
}

/**
 * The bytes of the program's own record whose calls were counted before the present turn; `null` where that
 * is not known.
 */
export function countedBytes({ countedBytes: counted, receipt, mode }: ExternalState): number | null {
  if (counted !== undefined) return counted;
  return receipt?.sessionFile?.bytes ?? (mode === "start" ? 0 : null);
}

function added(sum: number | null, cost: number | undefined): number | null {
  return sum === null || cost === undefined ? null : sum + cost;
}

/** @param isCounted whether the agent reports usage. Nothing reported is not nothing used. */
export function usageForPeople(
  { inputTokens, outputTokens, costMicroUsd }: ExternalUsage,
  isCounted: boolean,
): Readonly<Record<string, number | "unknown">> {
  if (!isCounted) return { inputTokens: "unknown", outputTokens: "unknown", costMicroUsd: "unknown" };
  return { inputTokens, outputTokens, costMicroUsd: costMicroUsd ?? "unknown" };
}
