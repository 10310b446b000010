// `describeFailure`: a failed simulation as text, with the broken promise, the last events and the command
// that repeats it.

import type { SimulationReport } from "./simulation.ts";

const LAST_EVENTS = 50;

/** `undefined` when nothing failed. */
export function describeFailure({ seed, violation, log }: SimulationReport): string | undefined {
  if (violation === undefined) return undefined;
  return [
    `seed ${seed} broke ${violation.promise}: ${violation.what}`,
    `the last ${LAST_EVENTS} events:`,
    ...log(LAST_EVENTS),
    `again: npm run sim -- --seed ${seed} --verbose`,
  ].join("\n");
}
