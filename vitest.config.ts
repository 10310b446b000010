import { availableParallelism } from "node:os";
import { defineConfig, type Plugin } from "vitest/config";
import { edited, type Edit } from "./scripts/mutant-edit.ts";
import { TestOrder } from "./scripts/test-order.ts";

/** Plants a mutant of `scripts/mutants.ts` as its file is loaded. */
function mutant(edit: Edit): Plugin {
  return {
    name: "mutant",
    enforce: "pre",
    transform: (code, id) => (id.endsWith(edit.file) ? edited(code, edit) : undefined),
  };
}

const planted = process.env["HOLDFAST_MUTANT"];

export default defineConfig({
  plugins: planted === undefined ? [] : [mutant(JSON.parse(planted) as Edit)],
  test: {
    globalSetup: [
      // Starts a PostgreSQL server for the first test that asks for one.
      "packages/storage/src/postgres/testing/global-setup.ts",
      // Builds the page if its sources have changed; before the command, which contains it.
      "scripts/build-page.ts",
      // Bundles the command, which many tests start.
      "scripts/installed-command.ts",
    ],
    setupFiles: [
      "scripts/processor-time-setup.ts",
      // Searches what each file of tests leaves and receives for a secret.
      "scripts/canary-suite.ts",
    ],
    // The cache must mix no file with a mutant in it and the same file without one.
    fsModuleCache: planted === undefined,
    include: [
      "packages/*/src/**/*.test.ts",
      "scripts/**/*.test.ts",
      "examples/**/*.test.ts",
      "bench/**/*.test.ts",
    ],
    // Processes, not threads: tests start programs, send signals and change directories.
    pool: "forks",
    // No module of ours holds state, so the files of one worker can share what is loaded; it saves most of the time.
    isolate: false,
    // Half the time of the tests is waiting for programs that they started, so two workers keep one core busy.
    maxWorkers: 2 * availableParallelism(),
    sequence: { sequencer: TestOrder },
    // A test that waits for several programs takes a minute on a machine with much other work.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // The default of a second is a limit of time that no test means.
    expect: { poll: { timeout: 30_000 } },
    tags: [
      {
        name: "campaign",
        description:
          "Costs more than half a second of processor time. `npm test` leaves it to `npm run campaign -- tests`.",
      },
    ],
    includeTaskLocation: true, // test.ts reads the reason of a skip from its line
  },
});
