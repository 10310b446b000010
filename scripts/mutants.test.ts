import { expect, test } from "vitest";
import { MUTANTS, runMutant } from "./mutants.ts";

test.each(MUTANTS)("planted mutant is killed: $name", { timeout: 120_000 }, async (mutant) => {
  const { isKilled, output } = await runMutant(mutant);
  expect(isKilled, output.slice(-2_000)).toBe(true);
});
