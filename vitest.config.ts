import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
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
