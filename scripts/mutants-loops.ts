// Planted mutants of loops that run for as long as their process (`mutants.ts`).

import type { Mutant } from "./mutant-run.ts";

export const LOOP_MUTANTS: readonly Mutant[] = [
  {
    name: "repeat-1: a look that fails is followed by another",
    marker: "loop-ended-by-error",
    becomes: "throw error;",
    tests: ["packages/core/src/time/repeat.test.ts"],
    test: "repeat-1: a look that rejects is followed by another",
  },
  {
    name: "D1: a session whose storage failed in a way that nobody foresaw is tried again",
    marker: "unforeseen-error-not-retried",
    becomes: "",
    tests: ["packages/runtime/src/behaviour/failing-calls.test.ts"],
    test: "the process works after an error that is not ours",
  },
  {
    name: "due-sessions-6: a failed look is followed by another",
    marker: "failed-look-ends-adoption",
    becomes: "",
    tests: ["packages/runtime/src/sessions/due-sessions.test.ts"],
    test: "due-sessions-6: a recover() that fails with storage_full is followed by a look that adopts what is due",
  },
];
