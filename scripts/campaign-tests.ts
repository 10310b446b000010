// Campaigns that are runs of tests: `runTests`, and `runWithFigures` for tests that measure something.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Outcome } from "./agents/real-campaigns.ts";
import { withFigures } from "./evidence.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

export function runTests(
  what: string,
  tests: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Outcome {
  const { status } = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...tests], {
    cwd: root,
    env: { ...process.env, HOLDFAST_CAMPAIGN: "yes", ...env },
    stdio: "inherit",
  });
  return { passed: status === 0, what };
}

/** Tests that write what they have measured into the file of a variable. */
export function runWithFigures(
  what: string,
  tests: readonly string[],
  variable: string,
  env: Readonly<Record<string, string>> = {},
): Outcome {
  const { passed, figures = "nothing was measured" } = withFigures((file) =>
    runTests(what, tests, { ...env, [variable]: file }),
  );
  return { passed, what: `${what}; ${figures}` };
}
