// The campaign `field`: its tests, and the row of its evidence.

import { withFigures } from "../evidence.ts";
import type { Outcome } from "../agents/real-campaigns.ts";

const TESTS = ["scripts/field/field.test.ts"];

type RunTests = (what: string, tests: readonly string[], env: Readonly<Record<string, string>>) => Outcome;

/** @param programs their folder; one beside the checkout by default. */
export function fieldCampaign(programs: string | undefined, run: RunTests) {
  return {
    name: "field",
    tests: TESTS,
    onlyByName: true,
    run: (): Outcome => {
      const what = "programs that play what users of other systems reported in public, and attacks";
      const { passed, figures } = withFigures((file) =>
        run(what, TESTS, {
          HOLDFAST_FIELD_FIGURES: file,
          ...(programs === undefined ? {} : { HOLDFAST_FIELD_PROGRAMS: programs }),
        }),
      );
      // Skipped tests pass.
      return figures === undefined
        ? { passed: false, what: `${what}; none was played` }
        : { passed, what: `${what}; ${figures}` };
    },
  } as const;
}
