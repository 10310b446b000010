// `CostSums`: the costs of sessions summed by day, model, agent and session.
//
//   cost-sums-1. A session that keeps no journal has an unknown cost, and is counted apart.

import { addCosts, costText, NO_COST, UNKNOWN_COST, type Cost } from "./cost.ts";

export interface PlainSessionCost {
  readonly sessionId: string;
  readonly agent: string;
  readonly parts: readonly (Cost & {
    readonly model: string;
    /** UTC, as `2026-11-27`. */
    readonly day: string;
  })[];
  /** The session keeps no journal. */
  readonly unrecorded: boolean;
}

export interface CostSum {
  readonly name: string;
  readonly cost: Cost;
}

export interface CostSums {
  readonly total: Cost;
  /** The sessions whose cost is unknown. */
  readonly unrecorded: number;
  /** The oldest day first. */
  readonly days: readonly CostSum[];
  /** The dearest first. */
  readonly models: readonly CostSum[];
  readonly agents: readonly CostSum[];
  readonly sessions: readonly (CostSum & { readonly agent: string })[];
}

/** @param fromDay only calls of this day and later. */
export function sumCosts(costs: readonly PlainSessionCost[], fromDay = ""): CostSums {
  const days = new Map<string, Cost>();
  const models = new Map<string, Cost>();
  const agents = new Map<string, Cost>();
  const sessions: (CostSum & { readonly agent: string })[] = [];
  let total = NO_COST;
  for (const { sessionId, agent, parts } of costs) {
    let own = NO_COST;
    for (const part of parts) {
      if (part.day < fromDay) continue;
      own = addCosts(own, part);
      add(days, part.day, part);
      add(models, part.model, part);
    }
    if (own.calls === 0) continue;
    total = addCosts(total, own);
    add(agents, agent, own);
    sessions.push({ name: sessionId, agent, cost: own });
  }
  return {
    total,
    unrecorded: costs.filter(({ unrecorded }) => unrecorded).length,
    days: listOf(days).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    models: listOf(models).toSorted(dearestFirst),
    agents: listOf(agents).toSorted(dearestFirst),
    sessions: sessions.toSorted(dearestFirst),
  };
}

/** The total as a text. Sessions without a journal make it unknown in part. */
export function totalText({ total, unrecorded }: Pick<CostSums, "total" | "unrecorded">): string {
  const known = costText(total);
  if (unrecorded === 0) return known === "" ? "$0.00" : known;
  if (known === "" || known === UNKNOWN_COST) return UNKNOWN_COST;
  return known.endsWith(UNKNOWN_COST) ? known : `${known} + ${UNKNOWN_COST}`;
}

function add(sums: Map<string, Cost>, name: string, cost: Cost): void {
  sums.set(name, addCosts(sums.get(name) ?? NO_COST, cost));
}

function listOf(sums: ReadonlyMap<string, Cost>): readonly CostSum[] {
  return [...sums].map(([name, cost]) => ({ name, cost }));
}

function dearestFirst({ cost: a }: CostSum, { cost: b }: CostSum): number {
  return b.costMicroUsd - a.costMicroUsd || b.unpriced - a.unpriced || b.inputTokens - a.inputTokens;
}
