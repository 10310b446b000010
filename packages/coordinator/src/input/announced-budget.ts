// `announcedBudget`: the budget that a session has whose start gives none.

import type { Budget, Placement } from "@holdfast/core";
import { fits } from "../dispatch/rules.ts";
import { fitnessOf, type Registry } from "../store/registry.ts";

interface StartOf {
  readonly agent: { readonly name: string; readonly version: string };
  readonly placement?: Placement | undefined;
}

/** From the runner that registered last, of those that would take the session. */
export async function announcedBudget(
  registry: Registry,
  { agent: { name, version }, placement }: StartOf,
): Promise<Budget | undefined> {
  const needs = { agent: name, version, ...placement };
  const offers = (await registry.all())
    .filter((runner) => fits(fitnessOf(runner), needs))
    .flatMap(({ agents }) => agents)
    .filter((offer) => offer.name === name && (offer.version === undefined || offer.version === version));
  return offers.at(-1)?.budget;
}
