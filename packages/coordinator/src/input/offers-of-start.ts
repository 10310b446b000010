// `offersOf`: the announcements of an agent by the runners that would take a session of it, in the order of
// their registration.

import type { Placement } from "@holdfast/core";
import { fits } from "../dispatch/rules.ts";
import { fitnessOf, type OfferedAgent, type Registry } from "../store/registry.ts";

/** A start, as far as it decides which runners would take the session. */
export interface StartOf {
  readonly agent: { readonly name: string; readonly version: string };
  readonly placement?: Placement | undefined;
}

export async function offersOf(
  registry: Registry,
  { agent: { name, version }, placement }: StartOf,
): Promise<readonly OfferedAgent[]> {
  const needs = { agent: name, version, ...placement };
  return (await registry.all())
    .filter((runner) => fits(fitnessOf(runner), needs))
    .flatMap(({ agents }) => agents)
    .filter((offer) => offer.name === name && (offer.version === undefined || offer.version === version));
}
