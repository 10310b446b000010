// `Cost`, `addUsage`, `costText`: what calls of models cost, as far as sessions record it.
//
//   cost-1. A call without a recorded price has an unknown cost. A sum with such a call says so, and never
//       counts the call as free.
//   cost-2. Calls that nobody has counted are recorded as one usage of the model `unknown` without tokens,
//       such as those of a killed coding agent.

import type { PlainUsage } from "./journal-event.ts";

/** The recorded usage of some calls. */
export interface Cost {
  readonly calls: number;
  /** The calls whose cost is unknown. */
  readonly unpriced: number;
  /** The cost of all other calls, in millionths of a US dollar. */
  readonly costMicroUsd: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The records of a usage that nobody has counted (cost-2). Absent without one. */
  readonly uncounted?: number;
}

export const NO_COST: Cost = { calls: 0, unpriced: 0, costMicroUsd: 0, inputTokens: 0, outputTokens: 0 };

/** cost-2. */
export function isUncounted({ model, inputTokens, outputTokens }: PlainUsage): boolean {
  return model === "unknown" && inputTokens === 0 && outputTokens === 0;
}

export function addUsage(cost: Cost, usage: PlainUsage): Cost {
  const { inputTokens, outputTokens, costMicroUsd } = usage;
  return addCosts(cost, {
    ...(isUncounted(usage) ? { uncounted: 1 } : {}),
    calls: 1,
    unpriced: costMicroUsd === undefined ? 1 : 0, // cost-1.
    costMicroUsd: costMicroUsd ?? 0,
    // A journal records each of these as far as it is known.
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
  });
}

export function addCosts(a: Cost, b: Cost): Cost {
  const uncounted = (a.uncounted ?? 0) + (b.uncounted ?? 0);
  return {
    ...(uncounted === 0 ? {} : { uncounted }),
    calls: a.calls + b.calls,
    unpriced: a.unpriced + b.unpriced,
    costMicroUsd: a.costMicroUsd + b.costMicroUsd,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
  };
}

/**
 * "$0.12", "$0.12 + unknown" or "unknown"; empty when nothing was called.
 *
 * @param cost `undefined` when the session records no usage.
 */
export function costText(cost: Cost | undefined): string {
  if (cost === undefined) return UNKNOWN_COST;
  const { calls, unpriced, costMicroUsd } = cost;
  if (calls === 0) return "";
  if (unpriced === calls) return UNKNOWN_COST;
  return unpriced === 0 ? usdText(costMicroUsd) : `${usdText(costMicroUsd)} + ${UNKNOWN_COST}`;
}

/** The cost of a session's own calls as a fact of it; empty when nothing was called. */
export function ownCostText(cost: Cost | undefined): string {
  const text = costText(cost);
  if (text === "") return "";
  return text === UNKNOWN_COST ? "the cost of its own calls is unknown" : `own calls cost ${text}`;
}

/** "the usage of 2 turns is not known in full, and in no sum and no budget"; `undefined` where all of it was counted. */
export function uncountedText({ uncounted = 0 }: Cost): string | undefined {
  if (uncounted === 0) return undefined;
  const turns = uncounted === 1 ? "one turn" : `${uncounted} turns`;
  return `the usage of ${turns} is not known in full, and what is missing is in no sum and no budget`;
}

/** The text of a cost that nobody knows. */
export const UNKNOWN_COST = "unknown";

/** "$0.48", "$0.088", "$12.30": at least cents, and below a dollar up to four digits. A cost above zero is never "$0.00". */
export function usdText(microUsd: number): string {
  if (microUsd > 0 && microUsd < 50) return "<$0.0001";
  const step = microUsd < 1_000_000 ? 100 : 10_000;
  return exactUsdText(Math.round(microUsd / step) * step);
}

/** "$0.0045": at least cents, and as many digits as it takes. For limits, which nothing rounds. */
export function exactUsdText(microUsd: number): string {
  const [whole = "", fraction = ""] = (microUsd / 1e6).toFixed(6).split(".");
  return `$${whole.replaceAll(/\B(?=(\d{3})+$)/g, ",")}.${fraction.replace(/0{1,4}$/, "")}`;
}
