// `turnCost`: what one turn of an external agent reserves of the budget of its session, before it starts.
//
//   - Nobody can tell what a turn will use. It reserves nothing, and is ended at the limit (turn-task-5).
//   - An agent that reports no usage would never reach a budget in tokens or money. Its turn is refused.

import { HoldfastError, type TaskCost } from "@holdfast/core";

import type { ExternalAgentProtocol, ExternalIntent } from "../external-agent-protocol.ts";

/** A turn, and the rest of its session's budget: `null` without a limit. */
interface PaidTurn {
  readonly intent: ExternalIntent;
  readonly tokensLeft: number | null;
  readonly costMicroUsdLeft: number | null;
}

/** @throws HoldfastError `unknown_price` */
export function turnCost(
  protocol: Pick<ExternalAgentProtocol, "name" | "capabilities">,
  { intent, tokensLeft, costMicroUsdLeft }: PaidTurn,
): TaskCost {
  const { name } = protocol;
  const { pricePrefix = `${name}/`, usage } = protocol.capabilities(intent.profile);
  if (usage === "none" && (tokensLeft !== null || costMicroUsdLeft !== null))
    throw new HoldfastError("unknown_price", `${name} reports no usage, and its session has a budget`, {
      got: `a limit in ${tokensLeft === null ? "money" : "tokens"}, which could never be reached`,
      expected: "limits in time, steps or turns",
      fix: "limit it otherwise (`--ttl 30m`, `--budget 20turns`), or let an agent do the work that reports its usage; `holdfast doctor` lists both",
    });
  return { maxTokens: 0, ...(intent.model === null ? {} : { model: `${pricePrefix}${intent.model}` }) };
}
