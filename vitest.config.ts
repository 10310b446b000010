import { defineConfig, type Plugin } from "vitest/config";

/** Plants the mutant that `scripts/mutants.ts` names, as the file is loaded. */
function mutant(planted: { file: string; find: string; replace: string }): Plugin {
  return {
    name: "mutant",
    enforce: "pre",
    transform(code, id) {
      if (!id.endsWith(planted.file)) return undefined;
      if (!code.includes(planted.find))
        throw new Error(`the text of the mutant is no longer in the source: ${planted.file}`);
      return code.replace(planted.find, () => planted.replace);
    },
  };
}

const planted = process.env["HOLDFAST_MUTANT"];

export default defineConfig({
  plugins: planted === undefined ? [] : [mutant(JSON.parse(planted) as Parameters<typeof mutant>[0])],
  test: {
    // Starts a PostgreSQL server for the first test that asks for one.
    globalSetup: ["packages/storage/src/postgres/testing/global-setup.ts"],
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
    // Many tests wait for a program they started, so a second worker is worth it even on two cores.
    maxWorkers: "100%",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    includeTaskLocation: true, // test.ts reads the reason of a skip from its line
  },
});
