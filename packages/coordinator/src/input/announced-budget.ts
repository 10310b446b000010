// `announcedBudget`: the budget that a session has whose start gives none.

import type { Budget } from "@holdfast/core";
import type { Registry } from "../store/registry.ts";
import { offersOf, type StartOf } from "./offers-of-start.ts";

/** From the runner that registered last, of those that would take the session. */
export async function announcedBudget(registry: Registry, start: StartOf): Promise<Budget | undefined> {
  return (await offersOf(registry, start)).at(-1)?.budget;
}
